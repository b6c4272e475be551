"""Cells that are no numbers in columns of numbers, and degrees that are none: bad where read."""

import gzip
import re
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from contrada import Matcher
from contrada.errors import InvalidInput
from contrada.files import Rows, read_rows
from contrada.files.numerals import Numerals
from contrada.files.text_types import ColumnTypes

NUMBERS = [str(n) for n in range(19)]


def save(folder: Path, *columns: tuple[str, list[str]], name: str = "x.csv") -> Path:
    """Write a sheet of columns, each with its name and its cells."""
    delimiter = "\t" if ".tsv" in name else ","
    rows = [[title for title, _ in columns], *zip(*(cells for _, cells in columns), strict=True)]
    text = "".join(delimiter.join(row) + "\n" for row in rows).encode()
    path = folder / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def deep() -> Matcher:
    matcher = Matcher()
    matcher.add("deep", "depth > 5")
    return matcher


def type_of(folder: Path, cells: list[str]) -> pa.DataType:
    return read_rows(save(folder, ("n", ["1"] * len(cells)), ("v", cells))).schema.field("v").type


def values_of(rows: Rows, column: str) -> list[Any]:
    return [value for batch, _ in rows.judged() for value in batch.column(column).to_pylist()]


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz"])
@pytest.mark.parametrize("cell", ["4o", "N/A", "12,5", "2024-05-01", "007a", " - "])
def test_a_cell_that_is_no_number_among_numbers_is_refused_where_a_subscription_reads_it(
    tmp_path: Path, cell: str, name: str
) -> None:
    quoted = f'"{cell}"' if "," in cell else cell
    path = save(tmp_path, ("depth", [*NUMBERS[:11], quoted, *NUMBERS[11:]]), name=name)
    place = rf"{name}, line 13 \(row 11\), column 'depth': '{re.escape(cell)}' is not a"
    with pytest.raises(InvalidInput, match=f"{place} number; quarantine=True leaves"):
        deep().match_many(path)


def test_with_quarantine_the_row_of_a_bad_cell_is_set_aside_and_the_others_matched(
    tmp_path: Path,
) -> None:
    told: list[tuple[int, Any, str]] = []
    matcher = deep()
    path = save(tmp_path, ("id", list("abcdefghijklmnopqrst")), ("depth", ["4o", *NUMBERS]))
    found = matcher.match_many(path, quarantine=True, on_bad=lambda *row: told.append(row))
    assert isinstance(found, pa.Table)
    assert found.column("event").to_pylist() == list("hijklmnopqrst")
    assert told == [(0, "a", "column 'depth': '4o' is not a number")]
    stats = matcher.stats()
    assert (stats["events"], stats["events_left_out"]) == (20, 1)


def test_a_bad_cell_in_the_last_of_many_batches_counts_as_one_in_the_first(tmp_path: Path) -> None:
    told: list[int] = []
    for cells in (["x", *["7"] * 70_000], [*["7"] * 70_000, "x"]):
        path = save(tmp_path, ("depth", cells))
        found = deep().match_many(path, quarantine=True, on_bad=lambda row, *_: told.append(row))
        assert isinstance(found, pa.Table)
        assert found.num_rows == 70_000
    assert told == [0, 70_000]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1"] * 10 + ["x"], pa.int64()),
        (["1.5"] * 10 + ["x"], pa.float64()),
        (["1"] * 9 + ["1.5", "x"], pa.float64()),
        (["1"] * 10 + ["", "", "x"], pa.int64()),
        (["1"] * 9 + ["x"], pa.string()),
        (["1"] * 20 + ["x", "y"], pa.int64()),
        (["1"] * 18 + ["x", "y"], pa.string()),
        (["1"] * 30 + ["x", "007"], pa.string()),
        (["1"] * 30 + ["+5"], pa.string()),
        (["1"] * 30 + ["x", "1e400"], pa.int64()),
        (["0.5"] * 30 + ["x", "9007199254740993"], pa.float64()),
        (["0.5"] * 9 + ["9007199254740993"], pa.string()),
        (["9007199254740993"] * 30 + ["x"], pa.int64()),
        (["9007199254740993"] * 30 + ["0.5"], pa.int64()),
        (["9007199254740993"] * 30 + ["9223372036854775808"], pa.int64()),
        (["1"] * 30 + ["99999999999999999999"], pa.float64()),
        (["1"] * 9 + ["99999999999999999999"], pa.string()),
        (["1"] + ["100000000000000000000"] * 30, pa.float64()),
        (["99999999999999999999"] * 30, pa.string()),
        (["1"] * 30 + ["1" * 400], pa.int64()),
        (["1"] * 9 + ["1" * 400], pa.string()),
        (["true"] * 30 + ["x"], pa.string()),
        (["2024-05-01"] * 30 + ["x"], pa.string()),
        (["x"] * 30 + ["1"] * 20, pa.string()),
    ],
)
def test_more_than_nine_numbers_in_ten_make_a_column_of_numbers(
    tmp_path: Path, cells: list[str], kind: pa.DataType
) -> None:
    assert type_of(tmp_path, cells) == kind
    assert type_of(tmp_path, cells[::-1]) == kind


@pytest.mark.parametrize("large", ["9223372036854775808", "-9223372036854775809", "9" * 20])
def test_an_integer_beyond_64_bits_makes_numbers_of_integers(tmp_path: Path, large: str) -> None:
    rows = read_rows(save(tmp_path, ("depth", ["5"] * 30 + [large]), ("n", ["1"] * 31)))
    assert values_of(rows, "depth") == [5.0] * 30 + [float(large)]
    found = deep().match_many(save(tmp_path, ("depth", ["6"] * 30 + [large])))
    assert isinstance(found, pa.Table)
    assert found.num_rows == 30 + (float(large) > 5)


@pytest.mark.parametrize(
    ("others", "cell", "reason"),
    [
        ("5", "1e999", "1e999 is not a 64-bit integer like the other cells"),
        ("5", "1" * 400, f"{'1' * 39}… is not a 64-bit integer like the other cells"),
        ("5.5", "-1e999", "-1e999 is too large for a 64-bit number"),
        ("5.5", "1.8e308", "1.8e308 is too large for a 64-bit number"),
        (
            "5.5",
            "9007199254740993",
            (
                "9007199254740993 is an integer above 2^53 in a column with fractions, which would "
                "round it"
            ),
        ),
        (
            "9007199254740993",
            "9223372036854775808",
            "9223372036854775808 is not a 64-bit integer like the other cells",
        ),
    ],
)
def test_a_number_that_the_type_of_its_column_does_not_hold_is_a_bad_cell(
    tmp_path: Path, others: str, cell: str, reason: str
) -> None:
    path = save(tmp_path, ("depth", [*[others] * 11, cell, *[others] * 8]))
    place = re.escape(f"x.csv, line 13 (row 11), column 'depth': {reason}; quarantine=True")
    with pytest.raises(InvalidInput, match=place):
        deep().match_many(path)


def test_the_share_of_numbers_does_not_depend_on_the_order_of_cells() -> None:
    for first in (["x"] * 9, ["1"] * 50):
        column = ColumnTypes("v", 109)
        column.see(pa.array(first))
        column.see(pa.array(["x"] * 9 if first[0] == "1" else ["1"] * 50))
        column.see(pa.array(["2"] * 50))
        assert column.best() == pa.int64()
        assert column.misfits is not None
        assert "9 of 109 values are read as empty (the first: 'x' is" in column.misfits


@pytest.mark.parametrize("column", ["id", "subscriber"])
def test_any_text_is_an_id(tmp_path: Path, column: str) -> None:
    path = save(tmp_path, ("n", ["1"] * 20), (column, [*NUMBERS, "A7"]))
    assert values_of(read_rows(path), column) == [*NUMBERS, "A7"]


def test_a_bad_cell_in_another_column_of_ids_is_a_bad_row(tmp_path: Path) -> None:
    path = save(tmp_path, ("depth", ["9"] * 20), ("code", [*NUMBERS, "A7"]))
    with pytest.raises(InvalidInput, match=r"\(row 19\), column 'code': 'A7' is not a number"):
        deep().match_many(path, id="code")
    found = deep().match_many(path, id="code", quarantine=True)
    assert isinstance(found, pa.Table)
    assert found.column("event").to_pylist() == list(range(19))

    zones = save(tmp_path, ("filter", ["true"] * 20), ("code", [*NUMBERS, "A7"]), name="z.csv")
    matcher = Matcher()
    with pytest.raises(InvalidInput, match=r"z\.csv, line 21 \(row 19\), column 'code': 'A7' is"):
        matcher.add_many(zones, id="code")
    assert matcher.add_many(zones, id="code", quarantine=True) == 19
    assert matcher.stats()["subscriptions_left_out"] == 1


def test_a_column_that_nobody_reads_is_not_judged(tmp_path: Path) -> None:
    path = save(tmp_path, ("depth", ["9"] * 20), ("other", [*NUMBERS, "N/A"]))
    found = deep().match_many(path)
    assert isinstance(found, pa.Table)
    assert found.num_rows == 20


def test_a_bad_cell_that_is_only_kept_is_null_with_a_warning(tmp_path: Path) -> None:
    path = save(tmp_path, ("depth", ["9"] * 20), ("other", [*NUMBERS, "N/A"]))
    said = r"x\.csv: column 'other' holds numbers, but 'N/A' is not a number and is read as empty"
    with pytest.warns(UserWarning, match=said) as told:
        found = deep().match_many(path, keep=["other"])
    assert len(told) == 1
    assert isinstance(found, pa.Table)
    assert found.column("other").to_pylist() == [*range(19), None]
    pytest.importorskip("geopandas")
    with pytest.warns(UserWarning, match=said):
        frame = deep().match_frame(save(tmp_path, *COLUMNS), id="depth")
    assert frame.other.isna().sum() == 1


def test_a_warning_of_many_bad_cells_counts_them(tmp_path: Path) -> None:
    path = save(tmp_path, ("depth", ["9"] * 40), ("other", [*NUMBERS, *NUMBERS, "N/A", "?"]))
    with pytest.warns(UserWarning, match="but 2 of 40 values are read as empty .the first: 'N/A'"):
        deep().match_many(path, keep=["other"])


COLUMNS = (
    ("depth", ["9"] * 20),
    ("other", [*NUMBERS, "N/A"]),
    ("lon", ["1"] * 20),
    ("lat", ["2"] * 20),
)


def test_a_column_that_is_read_and_kept_is_judged_without_a_warning(tmp_path: Path) -> None:
    path = save(tmp_path, ("depth", [*NUMBERS, "N/A"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = deep().match_many(path, keep=["depth"], quarantine=True)
    assert isinstance(found, pa.Table)
    assert found.column("depth").to_pylist() == list(range(6, 19))


def test_a_bad_coordinate_is_a_bad_cell_of_its_column_too(tmp_path: Path) -> None:
    path = save(tmp_path, ("lon", ["1", "2", "3"]), ("lat", ["1", "x", "3"]))
    matcher = Matcher()
    matcher.add("north", "lat > 2")
    with pytest.raises(InvalidInput, match=r"line 3 \(row 1\), column 'lat': 'x' is not a number"):
        matcher.match_many(path)


@pytest.mark.parametrize(
    ("lon", "lat", "reason"),
    [
        ("34.1", "-118.2", "column 'lat': -118.2 is not a latitude (swapped with 'lon'?)"),
        ("8", "90.001", "column 'lat': 90.001 is not a latitude (swapped with 'lon'?)"),
        (
            "361",
            "47",
            "column 'lon': 361 is not a longitude (use columns x and y for other coordinates)",
        ),
        (
            "2683000",
            "1248000.5",
            "column 'lon': 2683000 is not a longitude (use columns x and y for other coordinates)",
        ),
    ],
)
def test_degrees_that_are_none_are_bad_cells(
    tmp_path: Path, lon: str, lat: str, reason: str
) -> None:
    path = save(tmp_path, ("lon", ["1", lon, "-360"]), ("lat", ["2", lat, "-90"]))
    matcher = Matcher()
    matcher.add("all", geometry="POLYGON((-1e9 -1e9,1e9 -1e9,1e9 1e9,-1e9 1e9,-1e9 -1e9))")
    with pytest.raises(InvalidInput, match=re.escape(f"x.csv, line 3 (row 1), {reason};")):
        matcher.match_many(path)
    told: list[str] = []
    found = matcher.match_many(path, quarantine=True, on_bad=lambda *row: told.append(row[2]))
    assert isinstance(found, pa.Table)
    assert found.column("event").to_pylist() == [0, 2]
    assert told == [reason]
    with pytest.raises(InvalidInput, match=re.escape(f"x.csv, line 3 (row 1), {reason};")):
        Matcher().add_many(path)


def test_degrees_that_are_none_stay_numbers_for_those_who_read_the_column(tmp_path: Path) -> None:
    path = save(tmp_path, ("lon", ["34.1"]), ("lat", ["-118.2"]))
    matcher = Matcher()
    matcher.add("south", "lat < -100")
    found = matcher.match_many(path)
    assert isinstance(found, pa.Table)
    assert found.num_rows == 1


def test_x_and_y_may_be_metres(tmp_path: Path) -> None:
    path = save(tmp_path, ("x", ["2683000"]), ("y", ["1248000"]))
    matcher = Matcher()
    matcher.add("all", geometry="POLYGON((-1e9 -1e9,1e9 -1e9,1e9 1e9,-1e9 1e9,-1e9 -1e9))")
    found = matcher.match_many(path)
    assert isinstance(found, pa.Table)
    assert found.num_rows == 1


@pytest.mark.parametrize(
    "columns",
    [
        [("lon", ["x"] * 5_000), ("lat", ["y"] * 5_000)],
        [("depth", (["1"] * 11 + ["x"]) * 400), ("id", ["1"] * 4_800)],
    ],
    ids=["coordinates", "numbers"],
)
def test_many_bad_cells_are_not_judged_one_by_one(
    tmp_path: Path, columns: list[tuple[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []
    start = Numerals.__init__

    def count(self: Numerals, cells: pa.Array) -> None:
        judged.append(len(cells))
        start(self, cells)

    monkeypatch.setattr(Numerals, "__init__", count)
    matcher = deep()
    matcher.add("bay", geometry="POLYGON((0 0,9 0,9 9,0 0))")
    path = save(tmp_path, *columns)
    told: list[tuple[Any, ...]] = []
    matcher.match_many(path, quarantine=True, on_bad=lambda *row: told.append(row))
    assert len(told) >= 400
    assert "'x' is not a number" in told[-1][2]
    assert len(judged) < 40
