"""`contrada stream --transitions`: rows, what it counts, and how it goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stream_desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

HEAD = "id,ship,time,lon,lat\n"
FIRST = f"""{HEAD}1,elba,2026-03-02T08:00:00Z,0.5,0.5
2,elba,2026-03-02T08:01:00Z,3,0.5
3,,2026-03-02T08:01:00Z,3,0.5
4,capri,2026-03-02T08:01:00Z,0.2,0.5
"""
SECOND = f"""{HEAD}4,capri,2026-03-02T08:01:00Z,0.2,0.5
5,capri,2026-03-02T08:02:00Z,0.3,0.5
6,elba,2026-03-02T07:59:50Z,9,9
7,capri,2026-03-02T08:02:40Z,0.3,0.5
"""
OPTIONS = ("--transitions", "--object", "ship", "--lateness", "30 s", "--shards", "2", "--json")


def counted(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def test_a_stream_of_the_command_follows_objects_and_goes_on_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk, metrics = Desk(tmp_path), tmp_path / "counts.prom"
    desk.send("1.csv", FIRST)
    assert desk.run(*OPTIONS, "--metrics", str(metrics)) == 0
    first = counted(capsys)
    names = ("events", "set_aside", "applied", "late", "repeated", "held", "objects", "visits")
    assert [first[name] for name in names] == [4, 1, 1, 0, 0, 2, 2, 1]
    desk.send("2.csv", SECOND)
    assert desk.run(*OPTIONS, "--metrics", str(metrics)) == 0
    second = counted(capsys)
    assert [second[name] for name in names] == [4, 0, 3, 1, 1, 1, 2, 1]
    columns = ("object", "subscription", "transition", "event")
    assert sorted(tuple(row[name] or "" for name in columns) for row in desk.rows("out")) == [
        ("capri", "a", "enter", 4),
        ("capri", "a", "inside", 5),
        ("elba", "", "late", 6),
        ("elba", "a", "enter", 1),
        ("elba", "a", "exit", 2),
        ("elba", "b", "cross", 2),
    ]
    (bad,) = desk.rows("state/quarantine")
    assert (bad["event"], bad["error"]["code"]) == (3, "null_object")
    text = metrics.read_text()
    for line in ("positions_late_total 1", "positions_held 1", "objects 2", "transitions_total 5"):
        assert f"contrada_stream_{line}" in text
    assert f"contrada_stream_state_bytes {second['state_bytes']}\n" in text


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--keep", "lon"], "--keep cannot be combined with --transitions"),
        (["--repair"], "--repair cannot be combined with --transitions"),
        (["--strict"], "--strict cannot be combined with --transitions"),
        (["--plan", "partitioned"], "--plan partitioned cannot be combined with --transitions"),
        (["--lateness", "soon"], "--lateness must be a duration"),
        (["--ahead", "-1 s"], "--ahead"),
        (["--kinds", "leave"], "unknown kind of transition 'leave'"),
    ],
)
def test_what_does_not_go_with_transitions_is_refused_before_spark_starts(
    more: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Desk(tmp_path).run("--transitions", *more) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["lateness", "ahead", "shards", "object"])
def test_options_of_positions_need_transitions(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Desk(tmp_path).run(f"--{option}", "1") == 2
    assert f"--{option} needs --transitions" in capsys.readouterr().err
