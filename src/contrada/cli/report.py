"""What a run says when it is done: a small table for people, or one JSON object."""

import json
from dataclasses import dataclass, field, fields

RARE = (
    "mended",
    "left_out",
    "without_geometry",
    "repeated",
    "late",
    "held",
)  # shown to people only where there are any


@dataclass(slots=True)
class RunReport:
    """The figures of one run, how long it took, and the files that it wrote.

    A figure is None where nobody has counted.
    """

    seconds: float = 0.0
    files: dict[str, str] = field(default_factory=dict)

    def figures(self) -> dict[str, int | None]:
        """Return the counts by name."""
        own = {part.name for part in fields(RunReport)}
        return {
            part.name: getattr(self, part.name) for part in fields(self) if part.name not in own
        }

    def as_json(self) -> str:
        """Write one JSON object on one line."""
        figures = self.figures()
        assert self.files.keys().isdisjoint(figures), "a file hides no figure"
        return json.dumps({**figures, "seconds": round(self.seconds, 3), **self.files})

    def __str__(self) -> str:
        rows = [
            (_label(name), f"{count:,}")
            for name, count in self.figures().items()
            if count or (count is not None and not name.endswith(RARE))
        ]
        rows.append(("seconds", f"{self.seconds:.1f}"))
        files = [(name.replace("_", " "), path) for name, path in self.files.items()]
        width = max(len(name) for name, _ in [*rows, *files])
        value_width = max(len(value) for _, value in rows)
        lines = [f"{name:<{width}}  {value:>{value_width}}" for name, value in rows]
        lines += [f"{name:<{width}}  {path}" for name, path in files]
        return "\n".join(lines)


@dataclass(slots=True)
class MatchReport(RunReport):
    """What was matched.

    Subscriptions and events are all rows of their files; the figures that begin with their names
    count some of these.
    """

    subscriptions: int = 0
    subscriptions_matched: int | None = 0
    subscriptions_mended: int = 0
    subscriptions_left_out: int = 0
    events: int = 0
    events_matched: int = 0
    events_mended: int = 0
    events_left_out: int = 0
    events_without_geometry: int = 0
    matches: int = 0


@dataclass(slots=True)
class TrackReport(RunReport):
    """What became of the objects whose positions are the events, in rows of each kind.

    All events were applied, late, repeated, held, left out or without a geometry.
    """

    subscriptions: int = 0
    subscriptions_mended: int = 0
    subscriptions_left_out: int = 0
    events: int = 0
    events_applied: int = 0
    events_late: int = 0
    events_repeated: int = 0
    events_held: int = 0
    events_mended: int = 0
    events_left_out: int = 0
    events_without_geometry: int = 0
    objects: int = 0
    transitions: int = 0
    transitions_enter: int = 0
    transitions_inside: int = 0
    transitions_exit: int = 0
    transitions_cross: int = 0
    transitions_dwell: int = 0
    transitions_late: int = 0

    @property
    def matches(self) -> int:
        """Count what came out."""
        return self.transitions


def _label(name: str) -> str:
    """Name a figure under the one that it is a part of."""
    whole, _, part = name.partition("_")
    return f"  {part.replace('_', ' ')}" if part else whole
