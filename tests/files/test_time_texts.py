"""Moments that Python cannot hold are texts wherever rows are written, shown or put in a frame."""

import csv
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contrada
from contrada.cli import main
from contrada.files.time_texts import iso_times, python_values, written_values

FAR, FAR_US = 2**30, 2**62  # days, and microseconds, since 1970


def moments(kind: pa.DataType, *ticks: int | None) -> pa.Array:
    width = pa.int32() if kind == pa.date32() else pa.int64()
    return pa.array(ticks, width).view(kind)


COLUMNS: dict[str, tuple[pa.Array, list[Any]]] = {
    "dates": (moments(pa.date32(), FAR, 5, None), ["2941775-04-07", "1970-01-06", None]),
    "dates in milliseconds": (
        moments(pa.date64(), -FAR * 86_400_000, 86_400_000, None),
        ["-2937836-09-26", "1970-01-02", None],
    ),
    "moments": (
        moments(pa.timestamp("us"), FAR_US, 0, None),
        ["148108-07-06T14:00:27.387904", "1970-01-01T00:00:00.000000", None],
    ),
    "moments with a zone": (
        moments(pa.timestamp("us", "Europe/Rome"), FAR_US, 0, None),
        ["148108-07-06T14:00:27.387904Z", "1970-01-01T00:00:00.000000Z", None],
    ),
    "an unknown zone": (
        moments(pa.timestamp("ms", "Foo/Bar"), 0, 1, None),
        ["1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.001Z", None],
    ),
}
INNER = moments(pa.timestamp("ms"), 2**50 * 1_000, 0, None)
FAR_TEXT, NEAR_TEXT = "35680317-09-25T18:57:04.000", "1970-01-01T00:00:00.000"
NESTED: dict[str, tuple[pa.Array, list[Any]]] = {
    "structs": (
        pa.StructArray.from_arrays([INNER], ["a"], mask=pa.array([False, False, True])),
        [{"a": FAR_TEXT}, {"a": NEAR_TEXT}, None],
    ),
    "lists": (
        pa.ListArray.from_arrays([0, 2, 3, 3], INNER, mask=pa.array([False, False, True])),
        [[FAR_TEXT, NEAR_TEXT], [None], None],
    ),
    "maps": (
        pa.MapArray.from_arrays([0, 1, 2, 3], ["a", "b", "c"], INNER),
        [{"a": FAR_TEXT}, {"b": NEAR_TEXT}, {"c": None}],
    ),
    "maps with structs for keys": (
        pa.array(
            [[({"x": 1}, 1)], None, []],
            pa.map_(pa.struct([("x", pa.int64())]), pa.int64()),
        ),
        [[[{"x": 1}, 1]], None, []],
    ),
}
ALL = COLUMNS | NESTED


@pytest.mark.parametrize("name", COLUMNS)
def test_a_moment_is_written_however_far_away_it_is(name: str) -> None:
    column, texts = COLUMNS[name]
    assert iso_times(column).to_pylist() == texts
    assert iso_times(pa.chunked_array([column[:1], column[1:]])).to_pylist() == texts
    assert python_values(column) == texts
    assert python_values(column[2:]) == [None]


def in_unions(values: pa.Array) -> dict[str, pa.Array]:
    """Put three values into unions: dense, sparse, of lists, in lists, and not from their start."""
    codes, places = pa.array([0, 0, 0], pa.int8()), pa.array([0, 1, 2], pa.int32())
    starts = pa.array([0, 1, 2, 3], pa.int32())
    dense = pa.UnionArray.from_dense(codes, places, [values])
    lists = pa.ListArray.from_arrays(starts, values)
    longer = pa.concat_arrays([values[2:], values])
    return {
        "dense": dense,
        "sparse": pa.UnionArray.from_sparse(codes, [values]),
        "lists": pa.UnionArray.from_sparse(codes, [lists]),
        "in lists": pa.ListArray.from_arrays(starts, dense),
        "sliced": pa.UnionArray.from_dense(
            pa.array([0, 0, 0, 0], pa.int8()), pa.array([0, 1, 2, 3], pa.int32()), [longer]
        )[1:],
    }


FAR_ALONE = {name: in_unions(column) for name, (column, _) in COLUMNS.items()}
DURATIONS = in_unions(pa.array([2**62, 0, None], pa.duration("s")))
UNIONS = [(name, where) for name, unions in FAR_ALONE.items() for where in unions]


@pytest.mark.parametrize(("name", "where"), UNIONS)
def test_moments_in_a_union_are_written_however_far_away_they_are(name: str, where: str) -> None:
    texts = [[text] if "lists" in where else text for text in COLUMNS[name][1]]
    assert written_values(FAR_ALONE[name][where]) == texts


@pytest.mark.parametrize(("name", "where"), [*UNIONS, *(("durations", w) for w in DURATIONS)])
def test_moments_and_durations_in_a_union_are_read_however_far_away_they_are(
    name: str, where: str
) -> None:
    column = DURATIONS[where] if name == "durations" else FAR_ALONE[name][where]
    table = pa.table({"c": column, "n": [1, 2, 3], "geometry": ["POINT(0 0)"] * 3})
    matcher = contrada.Matcher()
    matcher.add("one", "c <> TIMESTAMP('1969-01-01T00:00:00Z')")
    is_moment = name != "durations" and "lists" not in where
    found = matcher.match_many(table, keep=["c"])
    assert found["event"].to_pylist() == ([0, 1] if is_moment else [])
    assert found["c"].type == column.type
    with pytest.raises(contrada.InvalidInput, match="column 'subscriber'"):
        contrada.Matcher().add_many(pa.table({"subscriber": column, "filter": ["n > 0"] * 3}))


@pytest.mark.parametrize("name", NESTED)
def test_moments_are_written_however_deep_they_lie(name: str) -> None:
    column, values = NESTED[name]
    assert json.loads(json.dumps(written_values(column))) == values
    assert json.loads(json.dumps(written_values(pa.chunked_array([column[1:]])))) == values[1:]


@pytest.mark.parametrize("name", ALL)
def test_what_is_kept_of_far_moments_is_written_shown_and_put_in_a_frame(
    name: str, tmp_path: Path
) -> None:
    column, values = ALL[name]
    table = pa.table({"c": column, "n": [1, 2, 3], "geometry": ["POINT(0 0)"] * 3})
    pq.write_table(table, tmp_path / "events.parquet")
    pq.write_table(pa.table({"id": [7], "filter": ["n > 0"]}), tmp_path / "subs.parquet")
    paths = [str(tmp_path / name) for name in ("subs.parquet", "events.parquet")]
    for suffix in ("csv", "jsonl"):
        out = tmp_path / f"out.{suffix}"
        drawn = ["--map", str(tmp_path / f"{suffix}.html")]
        assert main(["match", *paths, "-o", str(out), "--keep", "c", *drawn]) == 0
    with (tmp_path / "out.jsonl").open() as lines:
        assert [json.loads(line)["c"] for line in lines] == values
    with (tmp_path / "out.csv").open(newline="") as file:
        cells = [row["c"] for row in csv.DictReader(file)]
    texts = ["" if value is None else value for value in values]
    if name in NESTED:
        cells = [json.loads(cell) if cell else "" for cell in cells]
    assert cells == texts
    matcher = contrada.Matcher()
    matcher.add("all", "n > 0")
    assert len(matcher.match_frame(table)) == 3
    assert matcher.match_many(table, keep=["c"]).num_rows == 3


@pytest.mark.parametrize("name", ALL)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_moments_where_others_belong_are_refused_or_unknown(name: str) -> None:
    column, _ = ALL[name]
    for key in ("geometry", "filter", "where", "relation", "attribute", "subscriber", "id"):
        columns = {"id": ["a", "b", "c"], "geometry": ["POINT(0 0)"] * 3, "filter": [None] * 3}
        table = pa.table(columns | {key: column})
        with suppress(contrada.InvalidInput):
            contrada.Matcher().add_many(table)
            assert key != "geometry"
    matcher = contrada.Matcher()
    matcher.add("here", geometry="POINT(0 0)")
    with suppress(contrada.InvalidInput):
        assert matcher.match_many(pa.table({"geometry": column})).num_rows == 0
