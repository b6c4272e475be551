"""Sheets with bad cells and ragged rows on the command line: refused by line, or set aside."""

import csv
import json
from pathlib import Path

import pytest

from contrada.cli import main

ZONES = """id,filter,note
deep,depth > 5,a
all,"S_INTERSECTS(geometry, POLYGON((-20 0,20 0,20 20,-20 20,-20 0)))",b
"""
EVENTS = "id,lon,lat,depth,mag\n" + "".join(f"e{n},{n},1,{n},{n}.5\n" for n in range(20))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: subscriptions, and events without a fault."""
    (tmp_path / "zones.csv").write_text(ZONES)
    (tmp_path / "events.csv").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spoil(folder: Path) -> None:
    """Write events with a bad cell, two ragged rows and two coordinates that are swapped."""
    lines = EVENTS.splitlines()
    lines[4], lines[6], lines[8] = "e3,3,1,4o,3.5", "e5,5,1,5", "e7,7,1,7,7.5,7"
    lines[10] = "e9,1,-118.2,9,9.5"
    (folder / "events.csv").write_text("\n".join(lines))


REASONS = [
    ["3", "5", "e3", "column 'depth': '4o' is not a number"],
    ["5", "7", "", "the row has 4 cells; the header has 5"],
    ["7", "9", "", "the row has 6 cells; the header has 5"],
    ["9", "11", "e9", "column 'lat': -118.2 is not a latitude (swapped with 'lon'?)"],
]


def test_bad_cells_and_ragged_rows_are_set_aside_with_their_lines(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(folder)
    args = ["zones.csv", "events.csv", "-o", "-", "--json", "--quarantine", "bad.csv"]
    assert main(["match", *args]) == 0
    *pairs, figures = capsys.readouterr().out.splitlines()
    assert len(pairs) == 1 + 16 + 12
    counts = json.loads(figures)
    assert (counts["events"], counts["events_left_out"]) == (20, 4)
    with (folder / "bad.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["row", "line", "id", "reason"], *REASONS]


@pytest.mark.parametrize("bad", range(4))
def test_a_refusal_names_the_place_and_the_option(
    folder: Path, bad: int, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(folder)
    spoilt, lines = (folder / "events.csv").read_text().splitlines(), EVENTS.splitlines()
    row, line, _, reason = REASONS[bad]
    lines[int(line) - 1] = spoilt[int(line) - 1]
    (folder / "events.csv").write_text("\n".join(lines))
    assert main(["match", "zones.csv", "events.csv", "-o", "pairs.csv"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    joint = ", " if reason.startswith("column ") else ": "
    place = f"contrada: events.csv, line {line} (row {row}){joint}{reason}"
    assert said == f"{place}; --quarantine FILE lists bad events and continues without them"
    assert not (folder / "pairs.csv").exists()


def test_a_bad_cell_that_is_only_kept_is_null_with_one_warning(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "events.csv").write_text(EVENTS.replace(",19.5", ",N/A"))
    args = ["zones.csv", "events.csv", "-o", "pairs.csv", "--keep", "mag", "--map", "map.html"]
    said = "events.csv: column 'mag' holds numbers, but 'N/A' is not a number and is read as empty"
    with pytest.warns(UserWarning, match=said) as told:
        assert main(["match", *args]) == 0
    assert len(told) == 1
    assert "e19,deep,\n" in (folder / "pairs.csv").read_text()


def test_ragged_subscriptions_are_set_aside_and_what_is_kept_of_the_others_is_theirs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zones = ZONES.replace("note\n", "note\nbroken\n") + "broken,too,many,cells\n"
    (folder / "zones.csv").write_text(zones)
    assert main(["match", "zones.csv", "events.csv"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert "  line 2 (row 0): the row has 1 cell; the header has 3" in said
    assert (
        said[-1]
        == "--quarantine-subscriptions FILE lists bad subscriptions and continues without them"
    )
    args = ["-o", "pairs.csv", "--keep", "subscription.note", "--map", "map.html"]
    args += ["--quarantine-subscriptions", "bad.csv"]
    assert main(["match", "zones.csv", "events.csv", *args]) == 0
    assert "e19,all,b\ne19,deep,a\n" in (folder / "pairs.csv").read_text()
    assert (folder / "bad.csv").read_text().splitlines()[1:] == [
        "0,2,,the row has 1 cell; the header has 3",
        "3,5,,the row has 4 cells; the header has 3",
    ]


def test_a_map_of_events_with_ragged_rows_shows_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(folder)
    args = ["zones.csv", "events.csv", "--quarantine", "bad.csv", "--map", "map.html"]
    assert main(["match", *args]) == 0
    assert "e19" in (folder / "map.html").read_text()


def test_a_sheet_with_another_separator_is_refused_with_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "events.csv").write_text(EVENTS.replace(",", ";"))
    assert main(["match", "zones.csv", "events.csv", "--quarantine", "bad.csv"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(
        "its cells seem to be separated by ';', not by commas; "
        "save the file with commas, or as .tsv with tabs"
    )
