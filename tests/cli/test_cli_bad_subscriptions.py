"""Bad subscription rows on the command line: shown all at once, or set aside in a file."""

import csv
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from contrada.cli import main

SQUARE = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
BOW_TIE = "POLYGON((0 0,4 4,4 0,0 4,0 0))"
ZONES = f"""id,note,wkt,where
a,"over two
lines","{SQUARE}",
b,,"{BOW_TIE}",
c,,"{SQUARE}",speed LIEK 1
a,,"{SQUARE}",
e,,"{SQUARE}",
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: subscriptions of which three are bad, and events."""
    (tmp_path / "zones.csv").write_text(ZONES)
    (tmp_path / "events.csv").write_text("id,lon,lat,speed\n1,1,1,5\n2,9,9,5\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(capsys: pytest.CaptureFixture[str], *args: str) -> list[str]:
    assert main(["match", *args]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    return [line for line in lines if not line.startswith("reading ")]  # said on a busy machine


def test_bad_subscriptions_are_shown_all_at_once_with_the_options_that_help(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *rows, last = refusal(capsys, "zones.csv", "events.csv", "-o", "pairs.csv")
    assert first == "contrada: zones.csv: 3 of 5 subscriptions cannot be used:"
    assert [row.split(", ")[:2] for row in rows] == [
        ["  line 4 (row 1)", "id 'b'"],
        ["  line 5 (row 2)", "id 'c'"],
        ["  line 6 (row 3)", "id 'a': the id 'a' is already taken"],
    ]
    for option in ("--repair", "--quarantine-subscriptions FILE", "--id COLUMN"):
        assert option in last
    assert "=" not in last
    assert not (folder / "pairs.csv").exists()


def test_ids_that_repeat_in_the_column_asked_for_are_met_with_better_advice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "zones.csv").write_text(f'ugc,wkt\nx,"{SQUARE}"\nx,"{SQUARE}"\n')
    (line,) = refusal(capsys, "zones.csv", "events.csv", "--id", "ugc")
    assert line == (
        "contrada: zones.csv, line 3 (row 1), id 'x': the id 'x' is already taken; leave out --id "
        "to number the rows, and use --keep subscription.COLUMN to write that column beside the "
        "pairs"
    )
    args = ["zones.csv", "events.csv", "--keep", "subscription.ugc", "-o", "-"]
    assert main(["match", *args]) == 0  # as it advises
    assert capsys.readouterr().out.splitlines()[1:] == ["1,0,x", "1,1,x"]


def test_other_bad_rows_beside_them_can_still_be_set_aside(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "zones.csv").write_text(f'ugc,wkt\nx,"{SQUARE}"\nx,"{SQUARE}"\ny,nowhere\n')
    *_, last = refusal(capsys, "zones.csv", "events.csv", "--id", "ugc")
    assert last.startswith("leave out --id to number the rows, ")
    assert "--quarantine-subscriptions FILE" in last
    (folder / "zones.csv").write_text(f'id,ugc,wkt\n1,x,"{SQUARE}"\n2,x,"{SQUARE}"\n')
    (line,) = refusal(capsys, "zones.csv", "events.csv", "--id", "ugc")
    assert "leave out --id" not in line  # the rows would have other ids, and no numbers


def test_a_column_in_other_letters_than_it_should_be_is_noted_once(folder: Path) -> None:
    (folder / "zones.csv").write_text(f'id,wkt,Where\na,"{SQUARE}",speed > 9\n')
    words = "^zones.csv: the column 'Where' is ignored; rename it to 'where' to use it$"
    with pytest.warns(UserWarning, match=words) as heard:
        assert main(["match", "zones.csv", "events.csv"]) == 0
    assert len(heard) == 1


def test_no_value_of_a_stranger_begins_a_line_of_its_own(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "zones.csv").write_text('id,filter\na,"x >\ncontrada: fine"\nb,"x >\x1b[2J"\n')
    lines = refusal(capsys, "zones.csv", "events.csv")
    assert len(lines) == 4
    assert [line[:9] for line in lines] == ["contrada:", "  line 2 ", "  line 4 ", "--quarant"]
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_bad_subscriptions_are_set_aside_and_the_others_matched(
    folder: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = f"bad{suffix}"
    args = ["zones.csv", "events.csv", "-o", "-", "--json", "--quarantine-subscriptions", bad]
    assert main(["match", *args]) == 0
    said = capsys.readouterr()
    *pairs, figures = said.out.splitlines()
    assert pairs == ["event,subscription", "1,a", "1,e"]
    counts = json.loads(figures)
    assert (counts["subscriptions"], counts["subscriptions_left_out"]) == (5, 3)
    assert counts["quarantine_subscriptions"] == bad
    assert re.search(r"^subscriptions +5\n  matched +2\n  left out +3\n", said.err, re.MULTILINE)
    rows = read(folder / bad)
    assert [(int(row["row"]), int(row["line"]), row["id"]) for row in rows] == [
        (1, 4, "b"),
        (2, 5, "c"),
        (3, 6, "a"),
    ]
    words = [
        "column 'geometry': invalid Polygon",
        "column 'where': ",
        "the id 'a' is already taken",
    ]
    assert all(str(row["reason"]).startswith(w) for row, w in zip(rows, words, strict=True))


def read(path: Path) -> list[dict[str, str]]:
    if path.suffix == ".parquet":
        rows: list[dict[str, str]] = pq.read_table(path).to_pylist()
        return rows
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_rows_that_repair_cannot_mend_are_set_aside_too(folder: Path) -> None:
    (folder / "zones.csv").write_text(f'id,wkt\na,"{SQUARE}"\nb,"{BOW_TIE}"\nc,POINT(1 x)\n')
    args = ["zones.csv", "events.csv", "--repair", "--quarantine-subscriptions", "bad.csv"]
    assert main(["match", *args]) == 0
    assert [row["id"] for row in read(folder / "bad.csv")] == ["c"]


def test_a_quarantine_of_subscriptions_without_a_bad_row_has_its_header(folder: Path) -> None:
    (folder / "zones.csv").write_text(f'id,wkt\na,"{SQUARE}"\n')
    args = ["zones.csv", "events.csv", "--quarantine-subscriptions", "bad.csv"]
    assert main(["match", *args]) == 0
    assert (folder / "bad.csv").read_text() == "row,line,id,reason\n"


def test_nothing_is_set_aside_where_the_run_fails_later(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "events.csv").write_text("id,lon,lat\n1,1,1\n2,x,1\n")
    args = ["zones.csv", "events.csv", "--quarantine-subscriptions", "bad.csv"]
    lines = refusal(capsys, *args)
    assert "events.csv, line 3 (row 1), column 'lon': 'x' is not a number" in lines[-1]
    assert lines[-1].endswith("; --quarantine FILE lists bad events and continues without them")
    assert not (folder / "bad.csv").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--quarantine-subscriptions", "zones.csv"], "is also the input zones.csv"),
        (["--quarantine-subscriptions", "a.csv", "-o", "a.csv"], "is also --output"),
        (["--quarantine-subscriptions", "bad.txt"], "unknown suffix"),
        (["--id", "code"], "--id COLUMN"),
        (["--event-id", "code", "--quarantine-subscriptions", "b.csv"], "--event-id COLUMN"),
    ],
)
def test_a_wrong_option_is_refused_in_the_words_of_the_command(
    args: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = refusal(capsys, "zones.csv", "events.csv", *args)
    assert words in line
    assert "id=" not in line


def test_the_quarantine_of_events_has_their_lines(folder: Path) -> None:
    (folder / "zones.csv").write_text(f'id,wkt\na,"{SQUARE}"\n')
    (folder / "events.csv").write_text('id,note,lon,lat\n1,"a\nb",x,1\n2,,1,1\n3,,1,y\n')
    assert main(["match", "zones.csv", "events.csv", "--quarantine", "bad.csv"]) == 0
    assert [(row["row"], row["line"]) for row in read(folder / "bad.csv")] == [
        ("0", "2"),
        ("2", "5"),
    ]
