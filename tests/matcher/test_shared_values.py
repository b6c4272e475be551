"""One long value for many rows: it is read, judged and tested once, however the rows share it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada import InvalidInput, Matcher
from contrada.errors import BadRows
from contrada.files import expanding
from contrada.files.reading import read_rows
from contrada.matching import columns
from contrada.matching.arrow_values import as_values
from contrada.matching.receiving import receive
from contrada.model.geometry import find_faults
from contrada.model.mending import mend

ROWS = 600
LONG = "x" * 20_000
ANGLES = np.linspace(0, 2 * np.pi, 2_000, endpoint=False)
ROUND = shapely.Polygon(np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1))
CROSSED = shapely.Polygon(np.stack([np.cos(2 * ANGLES), np.sin(ANGLES)], axis=1))
NEAR = "POLYGON((0 0,4 0,4 4,0 0))"


def coded(values: list[Any], kind: pa.DataType) -> pa.Array:
    codes = np.arange(ROWS, dtype=np.int32) % len(values)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(values, kind))


def in_runs(values: list[Any], kind: pa.DataType) -> pa.Array:
    ends = np.linspace(0, ROWS, len(values) + 1).astype(np.int32)[1:]
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends), pa.array(values, kind))


def views(values: list[Any], kind: pa.DataType) -> pa.Array:
    kind = pa.string_view() if kind == pa.string() else pa.binary_view()
    _, views, *data = pa.array(values, kind).buffers()
    whole = bytes(views)[: 16 * len(values)] * (ROWS // len(values))
    return pa.Array.from_buffers(kind, ROWS, [None, pa.py_buffer(whole), *data])


def in_a_struct(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.StructArray.from_arrays([coded(values, kind)], ["m"])


def views_in_a_struct(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.StructArray.from_arrays([views(values, kind)], ["m"])


MAKERS = [coded, in_runs, views, in_a_struct, views_in_a_struct]
Make = Callable[[list[Any], pa.DataType], pa.Array]


def name_of(make: Make) -> str:
    return '"a.m"' if make in (in_a_struct, views_in_a_struct) else "a"


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many geometries were judged at a time."""
    counts: list[int] = []

    def count(shapes: Any) -> Any:
        counts.append(len(shapes))
        return find_faults(shapes)

    monkeypatch.setattr(columns, "find_faults", count)
    return counts


@pytest.mark.parametrize("make", MAKERS)
def test_a_text_that_many_rows_share_is_one_value(make: Make) -> None:
    table = pa.table({"a": make([LONG, LONG + "y"], pa.string())})
    [(batch, _)] = read_rows(table).judged(compact=["a"])
    received = receive(
        batch,
        0,
        geometry_attributes=(),
        geometry_columns=(),
        id_column=None,
        name="table",
        repair=False,
    )
    codes = received.batch.codes(name_of(make).strip('"'))
    assert codes is not None
    assert codes.values == [LONG, LONG + "y"]
    matcher = Matcher()
    matcher.add("y", f"{name_of(make)} LIKE '%y'")
    assert len(matcher.match_many(table)) == ROWS // 2


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("text", ["S_INTERSECTS({}, {})", "NOT S_TOUCHES({}, {})"])
def test_a_geometry_that_many_rows_share_is_judged_once(
    make: Make, text: str, judged: list[int]
) -> None:
    values = [shapely.to_wkb(ROUND), shapely.to_wkb(shapely.transform(ROUND, lambda c: c + 0.5))]
    matcher = Matcher()
    matcher.add("near", text.format(name_of(make), NEAR))
    answer = matcher.match_many(pa.table({"a": make(values, pa.binary())}), threads=1)
    assert len(answer) == ROWS
    assert sum(judged) == 2


@pytest.mark.parametrize("make", [coded, in_runs, views])
def test_a_geometry_that_many_subscriptions_share_is_judged_once(
    make: Make, judged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expanding, "PIECE_BYTES", 100_000)  # less than what they take written out
    matcher = Matcher()
    matcher.add_many(pa.table({"geometry": make([ROUND.wkb], pa.binary())}))
    assert sum(judged) == 1
    assert len(matcher.match({"geometry": "POINT(0 0)"})) == ROWS


def test_a_geometry_is_judged_once_also_where_its_rows_are_read_one_by_one(
    judged: list[int],
) -> None:
    table = pa.table({"geometry": coded([ROUND.wkb], pa.binary()), "relation": ["near"] * ROWS})
    with pytest.raises(BadRows, match="row 0"):
        Matcher().add_many(table)
    assert sum(judged) == 2  # among all rows, and then among those that are not plain


@pytest.mark.parametrize("empty", [None, b""])
def test_a_bad_geometry_that_many_subscriptions_share_is_bad_in_each(empty: bytes | None) -> None:
    codes = pa.array(np.arange(ROWS, dtype=np.int32) % 3)
    values = pa.array([ROUND.wkb, CROSSED.wkb, empty], pa.binary())
    table = pa.table({"geometry": pa.DictionaryArray.from_arrays(codes, values)})
    left_out: list[int] = []
    matcher = Matcher()
    with pytest.raises(BadRows, match="row 1"):
        matcher.add_many(table)
    matcher.add_many(table, quarantine=True, on_bad=lambda row, *_: left_out.append(row))
    assert left_out == [row for row in range(ROWS) if row % 3]
    assert sorted(matcher) == list(range(0, ROWS, 3))


def test_a_null_inside_of_a_dictionary_is_no_geometry() -> None:
    column = pa.DictionaryArray.from_arrays([0, 1], pa.array([ROUND.wkb, None], pa.binary()))
    matcher = Matcher()
    matcher.add_many(pa.table({"geometry": column, "filter": [None, "a > 1"]}))
    assert matcher.match({"a": 2}) == [1]


@pytest.mark.parametrize("make", MAKERS)
def test_a_bad_geometry_that_many_rows_share_is_bad_in_each(make: Make) -> None:
    bad: list[tuple[Any, ...]] = []
    matcher = Matcher()
    matcher.add("near", f"S_INTERSECTS({name_of(make)}, {NEAR})")
    table = pa.table({"a": make([shapely.to_wkb(CROSSED)], pa.binary())})
    matcher.match_many(table, quarantine=True, on_bad=lambda *row: bad.append(row))
    assert [row for row, *_ in bad] == list(range(ROWS))
    assert len({reason for *_, reason in bad}) == 1
    with pytest.raises(InvalidInput, match="row 0"):
        matcher.match_many(table)
    assert len(matcher.match_many(table, repair=True)) == ROWS


@pytest.mark.parametrize("make", [coded, in_runs, views])
def test_a_kept_geometry_that_many_rows_share_is_mended_once_and_written_for_each(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    mended: list[Any] = []

    def note(shape: Any) -> Any:
        mended.append(shape)
        return mend(shape)

    monkeypatch.setattr(columns, "mend", note)
    matcher = Matcher()
    matcher.add("near", f"S_INTERSECTS(a, {NEAR})")
    table = pa.table({"a": make([shapely.to_wkb(CROSSED)], pa.binary())})
    [answer] = {
        *matcher.match_many(table, repair=True, keep=["a"], threads=1)["a"].to_pylist(),
    }
    assert shapely.from_wkb(answer).is_valid
    assert len(mended) == 1


@pytest.mark.parametrize("make", MAKERS)
def test_kept_texts_that_many_rows_share_have_the_declared_type(make: Make) -> None:
    table = pa.table({"a": make([LONG, "short"], pa.string()), "b": np.arange(ROWS)})
    matcher = Matcher()
    matcher.add("some", "b >= 10")
    answer = matcher.match_many(table, keep=["a"])
    assert answer["a"].type == read_rows(table).schema.field("a").type
    assert answer["a"].to_pylist() == table["a"].to_pylist()[10:]


def test_rows_that_are_read_plain_have_the_declared_types() -> None:
    table = pa.table({"a": views([LONG], pa.string()), "b": in_a_struct([LONG], pa.string())})
    rows = read_rows(table)
    assert {batch.schema for batch in rows.batches()} == {rows.schema}


def test_nulls_among_shared_values_stay_null() -> None:
    matcher = Matcher()
    matcher.add("null", "a IS NULL")
    for column in (in_runs([LONG, None, LONG], pa.string()), coded([LONG, None], pa.string())):
        expected = [row for row, value in enumerate(column.to_pylist()) if value is None]
        assert matcher.match_many(pa.table({"a": column}))["event"].to_pylist() == expected


def test_a_parquet_file_of_one_text_for_all_rows_is_read_as_codes(tmp_path: Path) -> None:
    path = tmp_path / "texts.parquet"
    text = "x" * 200_000
    pq.write_table(pa.table({"a": coded([text], pa.string())}), path, store_schema=False)
    rows = read_rows(path)
    assert rows.schema.field("a").type == pa.string()
    [(batch, _)] = rows.judged(compact=["a"])
    assert batch.column("a").type == pa.dictionary(pa.int32(), pa.string())
    assert len(batch.column("a").dictionary) == 1
    lengths = {len(value) for batch in rows.batches() for value in batch["a"].to_pylist()}
    assert lengths == {len(text)}


@pytest.mark.parametrize("store_schema", [True, False])
@pytest.mark.parametrize("vertices", [2_000, 20_000])
@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_a_geometry_that_a_parquet_file_states_once_is_judged_once(
    kind: pa.DataType, vertices: int, store_schema: bool, tmp_path: Path, judged: list[int]
) -> None:
    ring = shapely.segmentize(shapely.Point(5, 5).buffer(4), 25 / vertices)
    value = ring.wkt if kind == pa.string() else ring.wkb
    path = tmp_path / "x.parquet"
    table = pa.table({"geometry": coded([value], kind)})
    pq.write_table(table, path, store_schema=store_schema, row_group_size=ROWS // 2)
    matcher = Matcher()
    matcher.add("near", geometry=shapely.box(0, 0, 9, 9))
    assert len(matcher.match_many(path, threads=1)) == ROWS
    assert sum(judged) <= 2  # row groups


def test_views_that_overlap_without_end_are_refused_by_name() -> None:
    rows, length = 12_000, 100_000
    whole = bytes(length + rows)
    records = np.zeros((rows, 4), np.int32)
    records[:, 0], records[:, 3] = length, np.arange(rows)
    buffers = [None, pa.py_buffer(records.tobytes()), pa.py_buffer(whole)]
    column = pa.Array.from_buffers(pa.binary_view(), rows, buffers)
    matcher = Matcher()
    matcher.add("null", "a IS NULL")
    with pytest.raises(InvalidInput, match=r'column "a".*OVERLAP_BYTES_MAX'):
        matcher.match_many(pa.table({"a": column}))


def test_only_what_rows_use_of_a_long_dictionary_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    def count(array: pa.Array, *place: str) -> list[Any]:
        looked.append(len(array))
        return as_values(array, *place)

    monkeypatch.setattr(columns, "as_values", count)
    known = pa.array([f"text {i}" for i in range(10_000)])
    column = pa.DictionaryArray.from_arrays(pa.array([7, 9, None], pa.int32()), known)
    matcher = Matcher()
    matcher.add("nine", "a LIKE '% 9'")
    assert matcher.match_many(pa.table({"a": column}))["event"].to_pylist() == [1]
    assert max(looked) <= 3


@pytest.mark.parametrize("make", MAKERS)
def test_a_frame_has_shared_values_in_each_row(make: Make) -> None:
    values = [shapely.to_wkb(ROUND)]
    matcher = Matcher()
    matcher.add("near", f"S_INTERSECTS(geometry, {NEAR})")
    table = pa.table({"geometry": coded(values, pa.binary()), "a": make([LONG], pa.string())})
    frame = matcher.match_frame(table)
    assert len(frame) == ROWS
    assert frame.geometry.iloc[-1].equals(ROUND)
    assert len(str(frame["a"].iloc[-1])) >= len(LONG)
