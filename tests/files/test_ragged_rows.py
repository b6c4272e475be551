"""Rows of a CSV with too few or too many cells: refused by line, or set aside one by one."""

import csv
import gzip
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Matcher
from contrada.errors import InvalidInput
from contrada.files import Rows, ragged, read_rows, sheet
from contrada.files.sheet_scan import SCAN_BYTES

SQUARE = '"POLYGON((0 0,9 0,9 9,0 9,0 0))"'


def save(folder: Path, text: str | bytes, name: str = "x.csv") -> Path:
    raw = text.encode() if isinstance(text, str) else text
    path = folder / name
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def read_all(path: Path) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Give all rows, and what is wrong with some of them by their number."""
    rows: list[dict[str, Any]] = []
    faults: dict[int, str] = {}
    for batch, told in read_rows(path, batch_rows=3).judged():
        faults |= {len(rows) + row: fault.message for row, fault in told.items()}
        rows += batch.to_pylist()
    return rows, faults


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", r"x\.csv, line 3 \(row 1\): the row has 1 cell; the header has 2"),
        ("a,b\n1,2\n\n3,4,5\n", r"line 4 \(row 1\): the row has 3 cells; the header has 2"),
        ('a,b\n"x\ny",2\n3', r"line 4 \(row 1\): the row has 1 cell; the header has 2"),
        ("a\n1\n2,3\n", r"line 3 \(row 1\): the row has 2 cells; the header has 1"),
    ],
)
def test_a_ragged_row_is_refused_with_its_line_and_the_option_that_helps(
    tmp_path: Path, text: str, message: str
) -> None:
    path = save(tmp_path, text)
    with pytest.raises(InvalidInput, match=message):
        list(read_rows(path).batches())
    matcher = Matcher()
    matcher.add("all", True)
    with pytest.raises(InvalidInput, match=f"{message}; quarantine=True leaves bad events out"):
        matcher.match_many(path)


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz"])
@pytest.mark.parametrize("option", ["quarantine", "repair"])
def test_ragged_events_are_set_aside_and_the_others_matched(
    tmp_path: Path, name: str, option: str
) -> None:
    text = "id,lon,lat\n1,1,1\n2,2\n3,3,3\n4,4,4,4\n\n5\n6,6,6"
    path = save(tmp_path, text.replace(",", "\t") if ".tsv" in name else text, name)
    told: list[tuple[Any, ...]] = []
    matcher = Matcher()
    matcher.add("all", geometry="POLYGON((0 0,9 0,9 9,0 9,0 0))")
    found = matcher.match_many(
        path,
        quarantine=option == "quarantine",
        repair=option == "repair",
        on_bad=lambda *row: told.append(row),
    )
    assert isinstance(found, pa.Table)
    assert found.column("event").to_pylist() == [1, 3, 6]
    assert told == [
        (1, None, "the row has 2 cells; the header has 3"),
        (3, None, "the row has 4 cells; the header has 3"),
        (4, None, "the row has 1 cell; the header has 3"),
    ]
    assert [read_rows(path).place(row)[-14:] for row in (1, 4)] == [
        "line 3 (row 1)",
        "line 7 (row 4)",
    ]
    stats = matcher.stats()
    assert (stats["events"], stats["events_left_out"]) == (6, 3)


def test_ragged_subscriptions_are_refused_all_at_once_or_set_aside(tmp_path: Path) -> None:
    path = save(tmp_path, f"id,geometry\n1,{SQUARE}\n2\n3,{SQUARE},3\n4,{SQUARE}\n")
    matcher = Matcher()
    with pytest.raises(InvalidInput) as refusal:
        matcher.add_many(path)
    assert str(refusal.value).splitlines()[1:] == [
        "  line 3 (row 1): the row has 1 cell; the header has 2",
        "  line 4 (row 2): the row has 3 cells; the header has 2",
        "quarantine=True leaves bad subscriptions out",
    ]
    told: list[tuple[Any, ...]] = []
    assert matcher.add_many(path, quarantine=True, on_bad=lambda *row: told.append(row)) == 2
    assert list(matcher) == [1, 4]
    assert [row[0] for row in told] == [1, 2]
    assert matcher.stats()["subscriptions_left_out"] == 2


@pytest.mark.parametrize(
    "text",
    [
        'id,lon,lat\n1,1,1\n"2,2,2\n3,3,3\n4,4,4"\n5,5,5\n',
        'id,lon,lat\n1,"1\n2,2,2"\n3,3,3\n',
        'id,lon,lat\n1,1,"1\n2,2,2",1\n3,3,3\n',
    ],
)
def test_a_ragged_row_that_may_have_swallowed_others_is_refused_with_the_file(
    tmp_path: Path, text: str
) -> None:
    message = r"line \d has \d cells?; the header has 3; the row continues to line \d; was a quote"
    with pytest.raises(InvalidInput, match=message):
        read_rows(save(tmp_path, text))


def test_a_ragged_row_over_several_lines_is_set_aside(tmp_path: Path) -> None:
    path = save(tmp_path, 'id,note,n,m\n1,"a\nb",2,3\n2,"a\nb",2\n3,c,2,3\n')
    rows, faults = read_all(path)
    assert [row["id"] for row in rows] == [1, None, 3]
    assert faults == {1: "the row has 3 cells; the header has 4"}


def test_the_bytes_of_a_ragged_row_may_be_any(tmp_path: Path) -> None:
    rows, faults = read_all(save(tmp_path, b"a,b\nZ\xfcrich\n1,2\n"))
    assert [row["a"] for row in rows] == [None, 1]
    assert list(faults) == [0]


def test_all_rows_may_be_ragged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragged, "RAGGED_AT_ONCE", 7)
    rows, faults = read_all(save(tmp_path, "a,b\n" + "1,2,\n" * 50))
    assert rows == [{"a": None, "b": None}] * 50
    assert list(faults) == list(range(50))


def test_a_column_without_a_name_is_no_reason(tmp_path: Path) -> None:
    text = "a,b,\n" + "1,2,3\n4\n" * 4
    rows, faults = read_all(save(tmp_path, text))
    assert rows == [{"a": 1, "b": 2, "": 3}, {"a": None, "b": None, "": None}] * 4
    assert list(faults) == [1, 3, 5, 7]


def test_a_ragged_row_may_lie_across_blocks(tmp_path: Path) -> None:
    long = "x" * (SCAN_BYTES - 20)
    text = "a,b\n" + f"1,{long}\n{long}\n2,y\n3\n" * 3
    rows, faults = read_all(save(tmp_path, text))
    assert [row["a"] for row in rows] == [1, None, 2, None] * 3
    assert sorted(faults) == [1, 3, 5, 7, 9, 11]


@given(
    st.lists(st.lists(st.sampled_from(["", "x", "7", '"a,b"']), min_size=1, max_size=4)),
    st.integers(1, 5),
)
def test_rows_and_faults_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], at_once: int
) -> None:
    text = "".join(",".join(row) + "\n" for row in [["a", "b"], *rows])
    path = save(tmp_path_factory.mktemp("ragged"), text)
    expected = [row for row in csv.reader(io.StringIO(text)) if row][1:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ragged, "RAGGED_AT_ONCE", at_once)
        found, faults = read_all(path)
    assert len(found) == len(expected)
    for number, (row, cells) in enumerate(zip(found, expected, strict=True)):
        assert (number in faults) == (len(cells) != 2)
        values = cells if len(cells) == 2 else ["", ""]
        assert [str(value or "") for value in row.values()] == values


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.csv", "id;lon;lat\n1;8,5;47\n", "by ';', not by commas; save the file with commas, or"),
        (
            "x.csv",
            "id\tlon\n1\t2\n",
            "by tabs, not by commas; save the file with commas, or name it",
        ),
        ("x.csv", "id|lon\n1|2\n", r"by '\|', not by commas; .* or as \.tsv with tabs"),
        ("x.tsv", "id,lon\n1,2\n", r"by commas, not by tabs; .* tabs, or name it \.csv"),
        ("x.tsv.gz", "id;lon\n1;2\n", r"by ';', not by tabs; .* or as \.csv with commas"),
    ],
)
def test_another_separator_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    header = re.escape(repr(text.splitlines()[0]))
    with pytest.raises(
        InvalidInput, match=rf"{name}: the header has one column, {header}: .*{message}"
    ):
        read_rows(save(tmp_path, text, name))


def test_a_single_column_and_names_with_other_separators_are_read(tmp_path: Path) -> None:
    assert read_rows(save(tmp_path, "filter\nx > 1\n")).schema.names == ["filter"]
    assert read_rows(save(tmp_path, "a;b,c\n1,2\n")).schema.names == ["a;b", "c"]


def test_short_rows_of_a_wide_sheet_take_no_room_in_columns_that_nobody_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = ",".join(f"c{n}" for n in range(2_000))
    path = save(tmp_path, f"{header}\n{',' * 1_999}\n" + "1\n" * 3_000)
    rows = read_rows(path).narrowed(["c7"])
    assert max(cells.num_columns for cells in batches_of_cells(monkeypatch, rows)) == 1


def test_short_rows_of_a_wide_sheet_come_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ragged, "_RAGGED_CELLS_AT_ONCE", 1_000)
    path = save(tmp_path, f"{','.join('abcdefghij')}\n" + "1\n" * 1_050)
    rows = read_rows(path)
    assert max(cells.num_rows for cells in batches_of_cells(monkeypatch, rows)) == 100
    assert rows.count == sum(len(faults) for _, faults in rows.judged()) == 1_050


def batches_of_cells(monkeypatch: pytest.MonkeyPatch, rows: Rows) -> list[pa.RecordBatch]:
    """List the batches of cells from which rows with faults are made."""
    found: list[pa.RecordBatch] = []
    insert = ragged.insert_ragged

    def list_batches(*given: Any) -> Iterator[tuple[pa.RecordBatch, dict[int, int]]]:
        for batch, widths in insert(*given):
            found.append(batch)
            yield batch, widths

    monkeypatch.setattr(sheet, "insert_ragged", list_batches)
    assert sum(len(faults) for _, faults in rows.judged()) > 0
    return found
