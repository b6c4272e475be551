"""`--where` and `--relation`: one condition for all subscriptions that have none of their own."""

from pathlib import Path
from typing import Any

import geopandas
import pytest
import shapely

from contrada.cli import main

SHAPES = [shapely.box(0, 0, 4, 4), shapely.box(2, 2, 6, 6)]
EVENTS = """id,wkt,mag
1,POINT(1 1),5
2,POINT(3 3),7
3,POINT(4 4),6.5
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder with events; each test writes its subscriptions."""
    (tmp_path / "events.csv").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, **columns: Any) -> str:
    """Write the zones `a` and `b`, with more columns."""
    frame = geopandas.GeoDataFrame({"id": ["a", "b"], **columns}, geometry=SHAPES, crs=4326)
    if name.endswith(".csv"):
        frame.to_wkt().to_csv(name, index=False)
    elif name.endswith(".parquet"):
        frame.to_parquet(name)
    else:
        frame.to_file(name)
    return name


def match(capsys: pytest.CaptureFixture[str], name: str, *options: str) -> list[str]:
    assert main(["match", name, "events.csv", "-o", "-", *options]) == 0
    return capsys.readouterr().out.splitlines()[1:]


def refusal(capsys: pytest.CaptureFixture[str], name: str, *options: str) -> list[str]:
    assert main(["match", name, "events.csv", *options]) == 2
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("name", ["z.csv", "z.parquet", "z.geojson", "z.gpkg"])
def test_a_condition_goes_for_every_row(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(name)
    assert match(capsys, name, "--where", "mag > 6.6") == ["2,a", "2,b"]
    assert match(capsys, name, "--where", "mag > 6.6", "--relation", "touches") == []
    assert match(capsys, name, "--where", "mag > 6", "--relation", "touches") == ["3,a"]


@pytest.mark.parametrize("name", ["z.csv", "z.parquet", "z.geojson", "z.gpkg"])
def test_a_row_with_a_condition_of_its_own_keeps_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(name, where=["mag < 6", None], relation=[None, "within"])
    assert match(capsys, name, "--where", "mag > 6.6") == ["1,a", "2,b"]
    assert match(capsys, name, "--relation", "touches") == ["2,b", "3,b"]


def test_a_row_of_a_sheet_that_is_bad_anyway_keeps_its_reason(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / write("z.csv")).read_text()
    (folder / "z.csv").write_text(f"{text}c\n")
    said = match(capsys, "z.csv", "--where", "mag > 6.6", "--quarantine-subscriptions", "bad.csv")
    assert said == ["2,a", "2,b"]
    (row,) = (folder / "bad.csv").read_text().splitlines()[1:]
    assert row == "2,4,,the row has 1 cell; the header has 2"


def test_a_condition_or_relation_that_cannot_be_read_is_refused_by_its_option(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("z.csv")
    (line,) = refusal(capsys, "z.csv", "--where", "mag LIEK 1")
    assert line.startswith("contrada: --where: ")
    (line,) = refusal(capsys, "z.csv", "--relation", "inside-out")
    assert line.startswith("contrada: --relation: unknown relation 'inside-out'")


def test_a_condition_beside_a_filter_is_refused_as_it_is_in_a_column(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "z.csv").write_text("id,filter\na,mag > 6\n")
    (line,) = refusal(capsys, "z.csv", "--where", "mag > 6.6")
    assert "column 'where': 'mag > 6.6' needs a geometry, but this row has a filter" in line


def test_a_condition_cannot_stand_beside_others_that_are_not_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("z.parquet", where=[1, 2])
    (line,) = refusal(capsys, "z.parquet", "--where", "mag > 6")
    assert line == "contrada: z.parquet: column 'where' holds int64, not text"


def test_a_column_in_other_letters_is_noted_beside_the_option_too() -> None:
    write("z.csv", Where=["mag < 6", "mag < 6"])
    with pytest.warns(UserWarning, match="the column 'Where' is ignored") as heard:
        assert main(["match", "z.csv", "events.csv", "--where", "mag > 6"]) == 0
    assert len(heard) == 1


@pytest.mark.parametrize("options", [[], ["--where", "mag > 6"]])
def test_strict_refuses_a_column_in_other_letters(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write("z.csv", Where=["mag < 6", "mag < 6"])
    assert refusal(capsys, "z.csv", "--strict", *options) == [
        "contrada: z.csv: the column 'Where' is ignored; rename it to 'where' to use it"
    ]
