"""The line at which a row of a text file begins, as an editor counts it."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.files import Rows, read_rows


def lines_of(rows: Rows) -> list[int | None]:
    """The lines of all rows, and of one that is not there."""
    find = rows.line_finder()
    assert rows.count is not None
    return [find(row) for row in range(rows.count + 1)]


def save(folder: Path, name: str, text: str) -> Rows:
    path = folder / name
    path.write_bytes(text.encode())
    return read_rows(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_row_of_csv_begins_after_the_header_the_blank_lines_and_the_long_cells(
    tmp_path: Path, end: str
) -> None:
    lines = ["", 'id,"a', 'b"', '1,"x', "", 'y"', "", "2,z", '3,"', '"', "4,z"]
    rows = save(tmp_path, "x.csv", end.join(lines))
    assert lines_of(rows) == [4, 8, 9, 11, None]
    assert rows.place(2) == f"{tmp_path}/x.csv, line 9 (row 2)"


def test_lines_of_csv_are_counted_through_all_blocks(tmp_path: Path) -> None:
    cell = "x" * 1_000
    text = "id,name\n" + "".join(f'{row},"{cell}\n{cell}"\n' for row in range(2_000))
    assert lines_of(save(tmp_path, "x.csv", text)) == [*range(2, 4_002, 2), None]


@given(st.lists(st.lists(st.sampled_from(["a", "\n", ",", '""', "\r\n"]), max_size=4), max_size=8))
def test_a_row_begins_where_the_text_before_it_ends(
    tmp_path_factory: pytest.TempPathFactory, cells: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("sheet")
    text, starts = "id,name\n", []
    for row, parts in enumerate(cells):
        starts.append(text.count("\n") + 1)
        text += f'{row},"{"".join(parts)}","x"\n'
    text = text.replace("id,name", "id,name,end")
    assert lines_of(save(folder, "x.csv", text)) == [*starts, None]


def test_rows_of_json_lines_begin_at_their_lines(tmp_path: Path) -> None:
    rows = save(tmp_path, "x.ndjson", '{"n": 1}\n\n{"n": 2}\n{"n": 3}')
    assert lines_of(rows) == [1, 3, 4, None]
    assert lines_of(rows.narrowed(["n"])) == [1, 3, 4, None]
    sequence = save(tmp_path, "x.geojsons", '\x1e{"n":\n1}\n\x1e{"n": 2}\n')
    assert lines_of(sequence) == [1, 3, None]


@pytest.mark.parametrize("indent", [None, 1])
def test_features_begin_at_their_lines(tmp_path: Path, indent: int | None) -> None:
    features = [
        {"type": "Feature", "properties": {"n": n, "text": "x" * 400_000}, "geometry": None}
        for n in range(6)
    ]
    collection = {"type": "FeatureCollection", "name": "a\nb", "features": features}
    text = json.dumps(collection, indent=indent)
    rows = save(tmp_path, "x.geojson", text)
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines, 1) if line == "  {"] if indent else [1] * 6
    assert lines_of(rows) == [*starts, None]


def test_a_single_feature_begins_at_its_brace(tmp_path: Path) -> None:
    text = '\n\n{"type": "Feature",\n "properties": {"n": 1},\n "geometry": null}\n'
    assert lines_of(save(tmp_path, "x.geojson", text)) == [3, None]


def test_rows_may_be_asked_for_in_any_order(tmp_path: Path) -> None:
    find = save(tmp_path, "x.csv", "id\n1\n2\n3\n").line_finder()
    assert [find(row) for row in (2, 0, 1, 1)] == [4, 2, 3, 3]


def test_what_is_no_text_has_rows_and_no_lines(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "x.parquet")
    rows = read_rows(tmp_path / "x.parquet")
    assert lines_of(rows) == [None, None, None]
    assert rows.place(1) == f"{tmp_path}/x.parquet, row 1"


def test_a_file_that_has_gone_has_no_lines(tmp_path: Path) -> None:
    rows = save(tmp_path, "x.csv", "id\n1\n")
    (tmp_path / "x.csv").unlink()
    assert rows.place(0) == f"{tmp_path}/x.csv, row 0"
