"""What `contrada match` says of files that fit badly, and of answers without a match."""

import json
import re
from pathlib import Path

import pytest

from contrada.cli import main

SQUARE = 'id,wkt\nsquare,"POLYGON((40 7,46 7,46 15,40 15,40 7))"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a subscription to a square."""
    (tmp_path / "zones.csv").write_text(SQUARE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def notes(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]


def write_speeds(folder: Path, others: dict[int, str]) -> None:
    """Write twenty events with a speed, of which some are no numbers, and their subscriptions."""
    cells = [others.get(row, str(row)) for row in range(20)]
    lines = "".join(f"{row},{cell},x\n" for row, cell in enumerate(cells))
    (folder / "events.csv").write_text(f"id,speed,kind\n{lines}")
    filters = ["speed > 5", "speed BETWEEN 2 AND 3", "speed * 2 > 5", "kind = 'x'"]
    (folder / "wanted.csv").write_text("filter\n" + "".join(f"{one}\n" for one in filters))


def test_a_column_that_a_few_cells_make_text_is_told_with_the_first_of_them(folder: Path) -> None:
    write_speeds(folder, {0: "N/A", 7: "unknown"})
    said = (
        "events.csv: column 'speed' holds text, and 3 subscriptions compare it with numbers, "
        "which is never true: speed > 5; 18 of 20 cells are numbers, and line 2 has 'N/A'"
    )
    with pytest.warns(UserWarning, match="speed") as told:
        assert main(["match", "wanted.csv", "events.csv"]) == 0
    assert [str(one.message) for one in told] == [said]


def test_of_a_column_with_few_numbers_no_share_is_told(folder: Path) -> None:
    write_speeds(folder, dict.fromkeys(range(11), "slow"))
    with pytest.warns(UserWarning, match=r"with numbers, which is never true: speed > 5$"):
        assert main(["match", "wanted.csv", "events.csv"]) == 0


def test_strict_refuses_comparisons_with_another_type(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_speeds(folder, {0: "N/A", 7: "unknown"})
    assert main(["match", "wanted.csv", "events.csv", "--strict"]) == 2
    assert "contrada: events.csv: column 'speed' holds text" in capsys.readouterr().err


def test_a_column_without_a_filled_cell_is_of_no_type(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_speeds(folder, dict.fromkeys(range(20), ""))
    assert main(["match", "wanted.csv", "events.csv", "--strict"]) == 0
    assert notes(capsys) == []


@pytest.mark.parametrize(
    ("events", "guess"),
    [
        ("lon,lat\n7,42\n15,46", "; are x and y swapped in one of the files?"),
        ("x,y\n700000,4.2e6\n800000,4.3e6", "; the events are not in degrees: reproject them"),
        (
            "x,y\n400,8",
            "; do longitudes go from 0 to 360 in one of the files, and from -180 in the other?",
        ),
        ("lon,lat\n-7,-42\n-15,-46\n,\n3,", ""),
        ('wkt\n"LINESTRING(-7 -42,-1 -3)"\n"POINT(-5 -45)"', ""),
    ],
)
def test_where_nothing_matches_boxes_that_lie_apart_are_told(
    folder: Path, events: str, guess: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "events.csv").write_text(events)
    assert main(["match", "zones.csv", "events.csv"]) == 0
    (told,) = notes(capsys)
    assert re.fullmatch(
        r"note: events and subscriptions lie apart: events have x from \S+ to \S+ and y from \S+ "
        rf"to \S+, subscriptions x from 40 to 46 and y from 7 to 15{re.escape(guess)}",
        told,
    )


def test_boxes_that_meet_are_not_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "events.csv").write_text("lon,lat\n1,1\n90,20\n")
    assert main(["match", "zones.csv", "events.csv"]) == 0
    assert notes(capsys) == []


def test_events_without_a_geometry_are_counted_where_one_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "events.csv").write_text("id,lon,lat\n1,41,8\n2,,\n3,41,\n")
    assert main(["match", "zones.csv", "events.csv"]) == 0
    assert re.search(r"^  without geometry +2$", capsys.readouterr().out, re.MULTILINE)
    (folder / "zones.csv").write_text("filter\nid > 1\n")
    assert main(["match", "zones.csv", "events.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events_without_geometry"] == 0


def test_where_all_rows_are_left_out_that_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "events.csv").write_text("lon,lat\n8,141\n8,142\n")
    assert main(["match", "zones.csv", "events.csv", "--quarantine", "bad.csv"]) == 0
    said = capsys.readouterr()
    assert "note: all 2 events were left out; bad.csv says why\n" in said.err
    assert re.search(r"^events +2\n  matched +0\n  left out +2$", said.out, re.MULTILINE)
    (folder / "zones.csv").write_text("id,wkt\n1,POINT EMPTY\n")
    (folder / "events.csv").write_text("lon,lat\n8,41\n")
    assert main(["match", "zones.csv", "events.csv", "--repair"]) == 0
    said = capsys.readouterr()
    assert said.err == "note: the only subscription was left out\n"
    assert re.search(r"^subscriptions +1\n  matched +0\n  left out +1$", said.out, re.MULTILINE)
