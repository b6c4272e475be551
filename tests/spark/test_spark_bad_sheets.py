"""Sheets with bad cells and ragged rows: `contrada match --spark` treats them as without Spark."""

import csv
import json
from pathlib import Path

import pytest

from contrada.cli import main

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]

SPARK = ["--spark", "local[2]"]
ZONES = """id,filter,note
deep,depth > 5,a
broken
all,"S_INTERSECTS(geometry, POLYGON((-20 0,20 0,20 20,-20 20,-20 0)))",b
"""
LINES = ["id,lon,lat,depth,mag", *(f"e{n},{n},1,{n},{n}.5" for n in range(20))]
SPOILT = {
    4: "e3,3,1,4o,3.5",
    6: "e5,5,1,5",
    8: "e7,7,1,7,7.5,7",
    10: "e9,1,-118.2,9,9.5",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a ragged subscription, and four bad events."""
    lines = [SPOILT.get(number, line) for number, line in enumerate(LINES)]
    (tmp_path / "zones.csv").write_text(ZONES)
    (tmp_path / "events.csv").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return sorted(csv.reader(file))


@pytest.mark.parametrize("more", [["--plan", "broadcast"], ["--plan", "partitioned", "--counts"]])
def test_spark_sets_the_same_rows_of_sheets_aside(
    folder: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    figures = []
    for name, options in (("plain", []), ("spark", [*SPARK, *more])):
        args = ["match", "zones.csv", "events.csv", "-o", f"{name}.csv", "--json", *options]
        bad = ["--quarantine", f"{name}-bad.csv", "--quarantine-subscriptions", f"{name}-zones.csv"]
        assert main([*args, *bad]) == 0
        counts = json.loads(capsys.readouterr().out.splitlines()[-1])
        names = ("events", "events_left_out", "matches", "subscriptions_left_out")
        figures.append([counts[key] for key in names])
    assert figures == [[20, 4, 28, 1]] * 2
    assert read(folder / "plain-zones.csv") == read(folder / "spark-zones.csv")
    found = read(folder / "spark-bad.csv")
    assert [row[:3] for row in found] == [row[:3] for row in read(folder / "plain-bad.csv")]
    reasons = [row[3] for row in read(folder / "plain-bad.csv")]
    for row, reason in zip(found, reasons, strict=True):
        assert row[3].endswith(reason)
    if "--counts" not in more:
        assert read(folder / "plain.csv") == read(folder / "spark.csv")


@pytest.mark.parametrize("options", [[], SPARK])
def test_bad_rows_that_the_file_and_the_matching_find_are_in_one_order(
    folder: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bow_tie = '"POLYGON((0 0,4 4,4 0,0 4,0 0))"'
    rows = [f"{bow_tie},{n}" if n in (2, 7) else f"POINT(1 1),{n}" for n in range(20)]
    rows[4] = "POINT(1 1),4o"
    (folder / "events.csv").write_text("\n".join(["wkt,depth", *rows, ""]))
    (folder / "zones.csv").write_text(ZONES.replace("broken\n", ""))
    args = ["match", "zones.csv", "events.csv", *options]
    assert main([*args, "--quarantine", "bad.csv"]) == 0
    listed = (folder / "bad.csv").read_text().splitlines()[1:]
    assert [line.split(",")[:2] for line in listed] == [["2", "4"], ["4", "6"], ["7", "9"]]
    capsys.readouterr()
    assert main(args) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("contrada: events.csv, line 4 (row 2), column 'geometry': ")


def test_spark_refuses_a_bad_cell_with_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["zones.csv", "events.csv", "-o", "p.csv", "--quarantine-subscriptions", "bad.csv"]
    assert main(["match", *args, *SPARK]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    place = "contrada: events.csv, line 5 (row 3), column 'depth': '4o' is not a number"
    assert said == f"{place}; --quarantine FILE lists bad events and continues without them"
    assert not (folder / "p.csv").exists()


def test_spark_keeps_null_for_a_bad_cell_that_nobody_reads(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "events.csv").write_text("\n".join(LINES).replace(",19.5", ",N/A"))
    (folder / "zones.csv").write_text(ZONES.replace("broken\n", ""))
    args = ["zones.csv", "events.csv", "--keep", "mag", "-o"]
    for name, options in (("plain.csv", []), ("spark.csv", SPARK)):
        with pytest.warns(UserWarning, match="column 'mag' holds numbers, but 'N/A'") as told:
            assert main(["match", *args, name, *options]) == 0
        assert len(told) == 1
    assert read(folder / "plain.csv") == read(folder / "spark.csv")
    assert ["e19", "deep", ""] in read(folder / "spark.csv")
