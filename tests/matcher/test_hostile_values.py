"""Values that are deep, huge, cyclic or broken end in an answer or in an error of ours."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import contrada
from contrada import InvalidInput, Matcher
from contrada.errors import ContradaError
from contrada.limits import COLUMN_DEPTH_MAX
from contrada.matcher.inside import freeze
from contrada.matcher.match_run import match_received
from contrada.matching.receiving import receive
from exact_engines import every_engine


class Broken:
    """A value that cannot be compared, hashed or shown."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("eq")

    def __hash__(self) -> int:
        raise ValueError("hash")

    def __repr__(self) -> str:
        raise ValueError("repr")


def nest(kind: str, depth: int = 100_000) -> Any:
    value: Any = 5
    for _ in range(depth):
        value = {"a": value} if kind == "dict" else [value] if kind == "list" else (value,)
    return value


def share(times: int, depth: int = 60) -> Any:
    """Nest lists that are in each other several times."""
    value: Any = 5
    for _ in range(depth):
        value = [value] * times
    return value


def share_members(depth: int = 60) -> Any:
    value: Any = {"type": "Point", "coordinates": [1, 1]}
    for _ in range(depth):
        value = {"type": "GeometryCollection", "geometries": [value, value], "a": value}
    return value


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
ROUND: dict[str, Any] = {"type": "GeometryCollection"}
ROUND |= {"geometries": [ROUND], "a": ROUND}

VALUES = {
    "a huge integer": 10**5000,
    "a huge decimal": Decimal("1e999999999"),
    "a signalling NaN": Decimal("sNaN"),
    "NaN": float("nan"),
    "infinity": float("-inf"),
    "the last moment": dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-23))),
    "the first day": dt.date.min,
    "the longest time": dt.timedelta.max,
    "bytes": b"\xff\x00",
    "a strided view": np.zeros((2, 2)).data[::2],
    "broken": Broken(),
    "broken inside": [Broken()],
    "deep mappings": nest("dict"),
    "deep lists": nest("list"),
    "deep tuples": nest("tuple"),
    "a cyclic list": CYCLE,
    "a cyclic mapping": ROUND,
    "lists in two places": share(2),
    "lists in very many places": share(50),
    "mappings in several places": share_members(),
    "a lone surrogate": "\ud800",
    "a deep geometry": {"type": "Polygon", "coordinates": nest("list")},
    "a cyclic geometry": {"type": "Point", "coordinates": CYCLE},
    "a broken geometry": {"type": "Point", "coordinates": [Broken(), 1]},
    "a huge geometry": {"type": "Point", "coordinates": [10**400, 1]},
    "an array": np.array([1, 2]),
    "an array of objects": np.array([Broken()], object),
    "a record": np.zeros(1, dtype=[("a", "i4")])[0],
    "no time": np.datetime64("NaT"),
    "a complex number": 1j,
    "a set": {1},
}
every_value = pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())

PREDICATES = (
    "x = 5",
    "x <> 'a'",
    "x > 5",
    "x LIKE 'a%'",
    "x IN (1, 'a')",
    "x.a = 5",
    "x = y",
    "x + 1 > 2",
    "NOT S_INTERSECTS(x, POINT(1 1))",
    "T_AFTER(x, TIMESTAMP('2020-01-01T00:00:00Z'))",
    "A_EQUALS(x, y)",
)


def attempt(call: Any, *args: Any, **options: Any) -> None:
    """Call something that may refuse, if it does so in our way."""
    with suppress(ContradaError):
        call(*args, **options)


@every_engine
@every_value
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_hostile_attribute_is_answered_or_refused(engine: str, value: Any) -> None:
    event = {"x": value, "y": value}
    for predicate in PREDICATES:
        matcher = Matcher(engine)
        matcher.add("s", predicate, subscriber="u")
        attempt(matcher.match, event)
        attempt(matcher.subscribers, event)
        attempt(matcher.match_many, [event])
        attempt(matcher.match_many, [event], repair=True)
        attempt(lambda m: str(m.why("s", event)), matcher)
        attempt(lambda m: m.why("s", event)._repr_html_(), matcher)


@every_value
def test_a_hostile_argument_is_refused(value: Any) -> None:
    matcher = Matcher()
    matcher.add("s", "x = 5 OR S_INTERSECTS(geometry, POINT(1 1))")
    feature = {"type": "Feature", "geometry": None, "properties": {"x": 5}}
    for event in (
        value,
        {"id": value, "x": 5},
        {**feature, "id": value},
        {**feature, "properties": value},
        {**feature, "geometry": value},
        {"type": value, "x": 5},
        {"specversion": "1.0", "data": value},
    ):
        attempt(matcher.match, event)
        attempt(matcher.match_many, [event])
    attempt(matcher.add, value, "x = 1")
    for name in ("geometry", "relation", "attribute", "subscriber"):
        attempt(matcher.add, "t", **{"geometry": "POINT(1 1)", name: value}, replace=True)
    attempt(matcher.add, "t", "x = 1", relation=value, replace=True)
    attempt(matcher.get, value)
    attempt(matcher.remove, value)
    attempt(contrada.relate, value, "POLYGON((0 0,1 0,1 1,0 0))")
    for option in ("id", "threads"):
        attempt(matcher.match_many, pa.table({"x": [1]}), **{option: value})
    attempt(matcher.match_many, [{"x": 1}], id=value)
    attempt(Matcher, value)
    attempt(Matcher, filters_max=value)
    for option in ("universe", "level"):
        attempt(Matcher, "ahs", **{option: value})
    assert value not in matcher if isinstance(value, int) else True


@every_value
def test_a_hostile_attribute_is_kept_or_refused(value: Any) -> None:
    matcher = Matcher()
    matcher.add("s", True)
    event = {"x": value, "geometry": "POINT(1 1)"}
    attempt(matcher.match_many, [event], keep=["x"])
    attempt(matcher.match_many, [event], keep=["x"], batches=True)
    matcher.match_frame([event])


def deep_type(depth: int, *, is_struct: bool) -> tuple[pa.DataType, Any]:
    kind, value = pa.int64(), 5
    for _ in range(depth):
        kind = pa.struct([("a", kind)]) if is_struct else pa.list_(kind)
        value = {"a": value} if is_struct else [value]  # type: ignore[assignment]
    return kind, value


def match_rows(matcher: Matcher, **columns: pa.Array) -> list[int]:
    """Match a batch as it is."""
    batch = pa.RecordBatch.from_pydict(columns)
    subscriptions = freeze(matcher)
    events = receive(
        batch,
        0,
        geometry_attributes=subscriptions.geometry_attributes,
        geometry_columns=(),
        id_column=None,
        name="events",
        repair=False,
    )
    found = match_received(events, subscriptions)
    return [int(rank) for rank in found.ranks]


@every_engine
def test_a_column_that_is_nested_too_deep_is_refused_where_it_is_read(engine: str) -> None:
    kind, value = deep_type(COLUMN_DEPTH_MAX + 1, is_struct=False)
    columns = {"x": pa.array([value], kind), "n": pa.array([1])}
    table = pa.table(columns)
    matcher = Matcher(engine)
    matcher.add("n", "n = 1")
    assert match_rows(matcher, **columns) == [0]
    assert matcher.match_many(table).num_rows == 1
    matcher.add("x", "x = 5")
    for match in (lambda: match_rows(matcher, **columns), lambda: matcher.match_many(table)):
        with pytest.raises(InvalidInput, match=r"column 'x': .* 64 levels \(COLUMN_DEPTH_MAX\)"):
            match()


@every_engine
def test_a_column_may_be_nested_as_deep_as_the_limit(engine: str) -> None:
    kind, value = deep_type(COLUMN_DEPTH_MAX, is_struct=True)
    matcher = Matcher(engine)
    matcher.add("x", f"{'.'.join(['x', *['a'] * COLUMN_DEPTH_MAX])} = 5")
    assert match_rows(matcher, x=pa.array([value], kind)) == [0]
