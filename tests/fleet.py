"""Files for tests of transitions on the command line: a few fences, and vehicles that pass them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

FENCES = """\
id,geometry,subscriber
bridge,"POLYGON((4.3 0.4, 4.7 0.4, 4.7 3.6, 4.3 3.6, 4.3 0.4))",
depot,"POLYGON((1 1, 3 1, 3 3, 1 3, 1 1))",gate 1
far,"POLYGON((16 1, 18 1, 18 3, 16 3, 16 1))",gate 3
yard,"POLYGON((6 1, 8 1, 8 3, 6 3, 6 1))",gate 2
"""
POSITIONS = """\
id,object_id,time,geometry
p4,van 7,2026-03-02T08:40Z,POINT(5.3 2.8)
p0,van 7,2026-03-02T08:00Z,POINT(0.2 2.4)
p1,van 7,2026-03-02T08:10Z,POINT(1.6 2.2)
p2,van 7,2026-03-02T08:20Z,POINT(2.5 1.5)
q0,car,2026-03-02T08:05Z,POINT(7.2 1.2)
p3,van 7,2026-03-02T08:30Z,POINT(3.7 1.2)
p5,van 7,2026-03-02T08:50Z,POINT(6.8 1.6)
p6,van 7,2026-03-02T09:30Z,POINT(7.5 2.4)
q1,car,2026-03-02T08:06Z,POINT(9.2 1.2)
p6,van 7,2026-03-02T09:30Z,POINT(7.5 2.4)
q2,idle,2026-03-02T08:06Z,POINT(10 3)
q3,idle,2026-03-02T08:09Z,
"""
BAD = "q4,,2026-03-02T08:06Z,POINT(10 3)\nq5,idle,noon,POINT(10 3)\n"
ROWS: list[tuple[Any, ...]] = [  # object, subscription, subscriber, transition, time, event, cause
    ("car", "yard", "gate 2", "enter", "08:05", "q0", "position"),
    ("car", "yard", "gate 2", "exit", "08:06", "q1", "position"),
    ("van 7", "depot", "gate 1", "enter", "08:10", "p1", "position"),
    ("van 7", "depot", "gate 1", "inside", "08:20", "p2", "position"),
    ("van 7", "depot", "gate 1", "exit", "08:30", "p3", "position"),
    ("van 7", "bridge", None, "cross", "08:40", "p4", "position"),
    ("van 7", "yard", "gate 2", "enter", "08:50", "p5", "position"),
    ("van 7", "yard", "gate 2", "dwell", "09:20", "p5", "clock"),
    ("van 7", "yard", "gate 2", "inside", "09:30", "p6", "position"),
]
COLUMNS = ("object", "subscription", "subscriber", "transition", "time", "event", "cause")


def write_fleet(folder: Path, more: str = "") -> list[str]:
    """Write the files, and return the words of a command that follows them."""
    (folder / "fences.csv").write_text(FENCES)
    (folder / "tracks.csv").write_text(POSITIONS + more)
    files = [str(folder / name) for name in ("fences.csv", "tracks.csv")]
    return ["match", *files, "--transitions", "--dwell", "30 min"]
