"""What stands under a null view may be anything: it is never looked at."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from contrada import Matcher
from contrada.files.null_views import clear_null_views

VIEWS = [pa.string_view(), pa.binary_view()]
ZEROS = bytes(16)


def spoilt(kind: pa.DataType, length: int = -65536, validity: bytes | None = b"\x02") -> pa.Array:
    """Two views, nonsense and `a`; the first is null unless there is no validity."""
    views = struct.pack("<iiii", length, -1, -1, -1) + struct.pack("<i12s", 1, b"a")
    known = None if validity is None else pa.py_buffer(validity)
    return pa.Array.from_buffers(kind, 2, [known, pa.py_buffer(views)])


def in_a_null_struct(kind: pa.DataType) -> pa.Array:
    """A struct whose first row is null, around views of which none is."""
    inside = pa.struct([pa.field("m", kind)])
    return pa.Array.from_buffers(
        inside, 2, [pa.py_buffer(b"\x02")], children=[spoilt(kind, validity=None)]
    )


def one_each(values: pa.Array, make: Any, offset: type) -> pa.Array:
    return make(pa.array(np.arange(2, dtype=offset)), pa.array(np.ones(2, offset)), values)


def in_a_union(values: pa.Array) -> pa.Array:
    return pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [values])


def in_a_dense_union(values: pa.Array) -> pa.Array:
    places = pa.array([0, 1], pa.int32())
    return pa.UnionArray.from_dense(pa.array([0, 0], pa.int8()), places, [values])


def with_an_extension(values: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.opaque(values.type, "a", "b"), values)


STARTS = pa.array([0, 1, 2], pa.int32())
MAKERS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "flat": lambda v: v,
    "list": lambda v: pa.ListArray.from_arrays(STARTS, v),
    "large_list": lambda v: pa.LargeListArray.from_arrays(STARTS.cast(pa.int64()), v),
    "list_view": lambda v: one_each(v, pa.ListViewArray.from_arrays, np.int32),
    "large_list_view": lambda v: one_each(v, pa.LargeListViewArray.from_arrays, np.int64),
    "fixed_size_list": lambda v: pa.FixedSizeListArray.from_arrays(v, 1),
    "map": lambda v: pa.MapArray.from_arrays(STARTS, pa.array(["k", "k"]), v),
    "struct": lambda v: pa.StructArray.from_arrays([v], ["m"]),
    "dictionary": lambda v: pa.DictionaryArray.from_arrays(pa.array([0, 1]), v),
    "runs": lambda v: pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), v),
    "union": in_a_union,
    "dense_union": in_a_dense_union,
    "extension": with_an_extension,
    "struct_of_lists": lambda v: pa.StructArray.from_arrays(
        [pa.ListArray.from_arrays(STARTS, v)], ["m"]
    ),
}
READ = {
    **dict.fromkeys(("struct", "in_a_null_struct"), "c.m = 'a'"),
    "map": "c.k = 'a'",
    "struct_of_lists": "A_CONTAINS(c.m, ('a'))",
    **{name: "A_CONTAINS(c, ('a'))" for name in MAKERS if "list" in name and "_of_" not in name},
}
BESIDE = {"geometry": ["POINT(1 1)"] * 2}


@pytest.mark.parametrize("kind", VIEWS, ids=str)
@pytest.mark.parametrize("name", MAKERS)
def test_what_stands_under_a_null_view_does_no_harm(name: str, kind: pa.DataType) -> None:
    table = pa.table({**BESIDE, "c": MAKERS[name](spoilt(kind))})
    table.validate(full=True)
    matcher = Matcher()
    matcher.add("all", geometry="POINT(1 1)")
    matcher.add("a", READ.get(name, "c = 'a'"))
    found = matcher.match_many(table, keep=["c"]).to_pylist()
    is_text = kind == pa.string_view()
    wanted = [(0, "all"), (1, "a"), (1, "all")] if is_text else [(0, "all"), (1, "all")]
    assert [(pair["event"], pair["subscription"]) for pair in found] == wanted


@pytest.mark.parametrize("kind", VIEWS, ids=str)
def test_a_view_that_is_null_because_its_struct_is_does_no_harm(kind: pa.DataType) -> None:
    matcher = Matcher()
    matcher.add("absent", "c.m IS NULL")
    table = pa.table({**BESIDE, "c": in_a_null_struct(kind)})
    assert matcher.match_many(table, keep=["c"]).to_pylist() == [
        {"event": 0, "subscription": "absent", "c": None}
    ]


def test_subscriptions_are_read_from_views_with_nonsense_under_a_null() -> None:
    matcher = Matcher()
    matcher.add_many(pa.table({**BESIDE, "subscriber": spoilt(pa.string_view())}))
    assert [matcher.get(id_).subscriber for id_ in matcher] == [None, "a"]


@pytest.mark.parametrize("length", [-(2**31), -1, 5, 13, 2**20, 2**31 - 1])
def test_a_null_view_may_state_any_length(length: int) -> None:
    cleared = clear_null_views(spoilt(pa.string_view(), length))
    assert cleared.cast(pa.string()).to_pylist() == [None, "a"]


@pytest.mark.parametrize("name", MAKERS)
def test_clearing_changes_no_value_and_no_type(name: str) -> None:
    whole = MAKERS[name](spoilt(pa.string_view()))
    for array in (whole, whole.slice(1), whole.slice(0, 1), whole.slice(2)):
        cleared = clear_null_views(array)
        cleared.validate(full=True)
        assert cleared.type == array.type
        assert cleared.to_pylist() == array.to_pylist()
        assert cleared.null_count == array.null_count


def test_nulls_of_the_lists_themselves_stay() -> None:
    lists = pa.array([["a", None], None, [], ["b" * 20]], pa.list_(pa.string_view()))
    spoilt_lists = pa.Array.from_buffers(
        lists.type, 4, lists.buffers()[:2], children=[_with_nonsense(lists.values)]
    )
    cleared = clear_null_views(spoilt_lists.slice(0, 4))
    assert cleared.to_pylist() == [["a", None], None, [], ["b" * 20]]
    assert bytes(cleared.values.buffers()[1])[16:32] == ZEROS


def _with_nonsense(views: pa.Array) -> pa.Array:
    """Put nonsense under the second view, which is null."""
    validity, raw, *data = views.buffers()
    written = bytearray(raw)
    written[16:32] = b"\xff" * 16
    parts = [validity, pa.py_buffer(bytes(written)), *data]
    return pa.Array.from_buffers(views.type, len(views), parts)


def test_views_without_nonsense_are_not_copied() -> None:
    views = pa.array(["a", None], pa.string_view())
    zeros = pa.Array.from_buffers(
        views.type, 2, [views.buffers()[0], pa.py_buffer(bytes(views.buffers()[1])[:16] + ZEROS)]
    )
    assert clear_null_views(zeros) is zeros
    numbers = pa.array([1, None])
    assert clear_null_views(numbers) is numbers
