"""Intervals of months, and of days and milliseconds, of which PyArrow has no arrays."""

import ctypes
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from contrada import InvalidInput, Matcher, Tracker

MONTHS, DAYS = b"tiM", b"tiD"
STORED = {MONTHS: pa.array([5, None, -1], pa.int32()), DAYS: pa.array([2**32 + 3, None, -1])}
HELD = {MONTHS: [(5, 0, 0), None, (-1, 0, 0)], DAYS: [(0, 3, 10**6), None, (0, -1, -(10**6))]}
STARTS = pa.array([0, 1, 2, 3], pa.int32())
every_kind = pytest.mark.parametrize("form", STORED)


def interval_type(form: bytes) -> pa.DataType:
    """The type of a format of Arrow's C interface, for which PyArrow has no function."""
    schema = (ctypes.c_char * 72)()
    name = ctypes.create_string_buffer(form)
    pa.int32()._export_to_c(ctypes.addressof(schema))
    start = ctypes.cast(ctypes.addressof(schema), ctypes.POINTER(ctypes.c_void_p))
    start[0] = ctypes.addressof(name)
    return pa.DataType._import_from_c(ctypes.addressof(schema))


def table_of(stored: pa.Array, kind: pa.DataType, name: str = "c", **others: Any) -> pa.Table:
    """A table with a column of a type of which one cannot make an array."""
    others = {"geometry": ["POINT(1 1)"] * len(stored), "n": range(len(stored)), **others}
    known = pa.record_batch({**others, name: stored})

    class Foreign:
        def __arrow_c_array__(self, requested: object = None) -> Any:
            schema = pa.schema([*known.drop_columns([name]).schema, pa.field(name, kind)])
            return schema.__arrow_c_schema__(), known.__arrow_c_array__()[1]

    return pa.Table.from_batches([pa.record_batch(Foreign())])


@pytest.fixture
def matcher() -> Matcher:
    matcher = Matcher()
    matcher.add("all", geometry="POINT(1 1)")
    return matcher


@every_kind
def test_an_interval_that_nobody_reads_does_no_harm(form: bytes, matcher: Matcher) -> None:
    table = table_of(STORED[form], interval_type(form))
    assert matcher.match_many(table)["event"].to_pylist() == [0, 1, 2]
    assert matcher.match_many(table.slice(1))["event"].to_pylist() == [0, 1]
    assert matcher.match_many(table.slice(3)).num_rows == 0
    matcher.add_many(table.append_column("id", [["a", "b", "c"]]))
    assert len(matcher) == 4


@every_kind
def test_an_interval_is_kept_as_months_days_and_nanoseconds(form: bytes, matcher: Matcher) -> None:
    table = table_of(STORED[form], interval_type(form))
    kept = matcher.match_many(table, keep=["c"])["c"]
    assert kept.type == pa.month_day_nano_interval()
    assert kept.to_pylist() == HELD[form]
    frame = matcher.match_frame(table)
    months, days, ns = HELD[form][0] or (0, 0, 0)
    assert frame.c[0] == pd.DateOffset(months=months, days=days, nanoseconds=ns)


@every_kind
def test_an_interval_that_is_read_is_unknown_or_refused_by_name(
    form: bytes, matcher: Matcher
) -> None:
    kind = interval_type(form)
    matcher.add("read", "c = 5 OR c LIKE 'a%'")
    found = matcher.match_many(table_of(STORED[form], kind))
    assert set(found["subscription"].to_pylist()) == {"all"}
    for column in ("where", "subscriber", "id"):
        with pytest.raises(InvalidInput, match=column):
            Matcher().add_many(table_of(STORED[form], kind, column))
    with pytest.raises(InvalidInput, match="column 'c'"):
        matcher.match_many(table_of(STORED[form], kind), id="c")
    matcher.remove("read")
    positions = table_of(STORED[form], kind, "time", object=["a"] * 3)
    with pytest.raises(InvalidInput, match="time"):
        Tracker(matcher, object="object", time="time").follow(positions)


def dictionary_of(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), values)


NESTED: dict[str, tuple[Callable[[pa.Array], pa.Array], Callable[[pa.DataType], pa.DataType]]] = {
    "list": (lambda v: pa.ListArray.from_arrays(STARTS, v), pa.list_),
    "large list": (
        lambda v: pa.LargeListArray.from_arrays(STARTS.cast(pa.int64()), v),
        pa.large_list,
    ),
    "list of a fixed size": (
        lambda v: pa.FixedSizeListArray.from_arrays(v, 1),
        lambda k: pa.list_(k, 1),
    ),
    "list view": (
        lambda v: pa.ListViewArray.from_arrays(STARTS[:3], pa.array([1] * 3, pa.int32()), v),
        pa.list_view,
    ),
    "struct": (
        lambda v: pa.StructArray.from_arrays([v], ["m"]),
        lambda k: pa.struct([pa.field("m", k)]),
    ),
    "map": (
        lambda v: pa.MapArray.from_arrays(STARTS, ["m"] * 3, v),
        lambda k: pa.map_(pa.string(), k),
    ),
    "dictionary": (dictionary_of, lambda k: pa.dictionary(pa.int64(), k)),
    "runs": (
        lambda v: pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), v),
        lambda k: pa.run_end_encoded(pa.int32(), k),
    ),
    "union": (
        lambda v: pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [v]),
        lambda k: pa.sparse_union([pa.field("0", k)]),
    ),
}


@every_kind
@pytest.mark.parametrize("name", NESTED)
def test_intervals_inside_other_columns_are_read_too(
    name: str, form: bytes, matcher: Matcher
) -> None:
    wrap, wrap_type = NESTED[name]
    table = table_of(wrap(STORED[form]), wrap_type(interval_type(form)))
    expected = wrap(pa.array(HELD[form], pa.month_day_nano_interval()))
    for first in (0, 1):
        kept = matcher.match_many(table.slice(first), keep=["c"])["c"]
        assert kept.to_pylist() == expected[first:].to_pylist()
