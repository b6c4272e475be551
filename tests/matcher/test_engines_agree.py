"""The engines answer alike, whatever is asked: by event, by table, and whom to forward to.

`scan` evaluates each predicate as it is written; `strtree` brings it into normal form, looks it up
in trees and checks columns at a time. Random predicates over random events must not tell the two
apart. The one exception is Shapely's: see `shapely_agrees_with_itself`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contrada import Matcher
from strategies import geometries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shapely.geometry.base import BaseGeometry

Node = Any  # of CQL2 JSON
Row = dict[str, Any]

pytestmark = pytest.mark.filterwarnings("ignore:.*which is never true")  # of other types

ENGINES = ("scan", "strtree", "crtree")
OGC = ("intersects", "disjoint", "touches", "crosses", "within", "contains", "overlaps", "equals")
SPATIAL = (*(f"s_{name}" for name in OGC), "covers", "coveredBy")
EGENHOFER = tuple(
    f"eh{name}" for name in "Disjoint Meet Overlap Equals Inside CoveredBy Contains Covers".split()
)
PATTERNS = (
    "T********",
    "FF*FF****",
    "T*F**F***",
    "F***1****",
    "*********",
    "0FFFFF212",
    "T*T***T**",
)
GEOMETRY_ATTRIBUTES = ("geometry", "geometry", "area", "place.shape", "s", "tags")
NUMBERS = (0, 1, 2, 2.5, -1, 2**53 + 1, 1e300)
TEXTS = ("", "a", "ab", "É", "2020-01-01", "2", "POINT(1 1)", "LINESTRING(0 0,4 4)")
TIME_TEXTS = ("2020-01-01", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00+05:00", "soon")
MOMENTS = ({"timestamp": "2020-01-01T00:00:00Z"}, {"date": "2020-07-01"})
TIMES = (*TIME_TEXTS, *MOMENTS)
COMPARED = ("=", "<>", "<", "<=", ">", ">=")
MOMENT = datetime(2020, 1, 1, tzinfo=UTC)
EVENING = datetime(2019, 12, 31, 20, tzinfo=UTC)  # before 2020, and after 2020 in the east

COLUMNS: dict[str, tuple[tuple[pa.DataType, tuple[Any, ...]], ...]] = {
    "n": (
        (pa.int64(), (0, 1, 2, -1, 2**53, 2**53 + 1, 2**63 - 1)),
        (pa.float64(), (0.0, 1.0, 2.5, float("nan"), float("inf"), -float("inf"), 2.0**53)),
        (pa.uint64(), (0, 2, 2**64 - 1)),
        (pa.decimal128(20, 1), (Decimal("2.5"), Decimal("-1.0"), Decimal("0.1"))),
        (pa.bool_(), (True, False)),
        (pa.string(), ("2", "a", "")),
    ),
    "m": ((pa.int32(), (0, 1, 2)), (pa.float32(), (0.5, 2.5, float("nan")))),
    "s": (
        (pa.string(), TEXTS),
        (pa.dictionary(pa.int8(), pa.string()), TEXTS),
        (pa.int64(), (1, 2)),
    ),
    "t": (
        (pa.timestamp("us", "UTC"), (MOMENT, EVENING, MOMENT.replace(year=2021))),
        (pa.timestamp("ms"), (MOMENT.replace(tzinfo=None), EVENING.replace(tzinfo=None))),
        (pa.date32(), (MOMENT.date(), EVENING.date())),
        (pa.string(), TIME_TEXTS),
    ),
    "yes": ((pa.bool_(), (True, False)), (pa.string(), ("true",))),
    "tags": (
        (pa.list_(pa.int64()), ([], [1], [1, 2])),
        (pa.list_(pa.string()), (["a"], ["a", "2"])),
    ),
}


def named(name: str) -> Node:
    return {"property": name}


def call(name: str, *arguments: Node) -> Node:
    return {"op": name, "args": list(arguments)}


def as_literal(geometry: BaseGeometry) -> Node:
    return json.loads(shapely.to_geojson(geometry))


# Predicates


@st.composite
def spatial_tests(draw: st.DrawFn) -> Node:
    """A relation of an attribute to a literal, either way round, or of two attributes."""
    name = draw(st.sampled_from((*SPATIAL, *EGENHOFER, *["relate", "dwithin"] * 3)))
    sides = [named(draw(st.sampled_from(GEOMETRY_ATTRIBUTES)))]
    if draw(st.integers(0, 7)) == 7:
        sides.append(named(draw(st.sampled_from(GEOMETRY_ATTRIBUTES))))
    else:
        sides.append(as_literal(draw(geometries("area" if name in EGENHOFER else None))))
    if draw(st.booleans()):
        sides.reverse()
    if name == "relate":
        sides.append(draw(st.sampled_from(PATTERNS)))
    if name == "dwithin":
        sides.append(draw(st.sampled_from((0, 110_000, 111_320, 160_000, named("n")))))
    return call(name, *sides)


def numbers() -> st.SearchStrategy[Node]:
    """A number: an attribute, a literal, or made of both."""
    simple = st.sampled_from((*map(named, ("n", "m", "s")), *NUMBERS))
    made = st.builds(call, st.sampled_from(("+", "-", "*", "/", "%", "div")), simple, simple)
    return simple | made


def attribute_tests() -> st.SearchStrategy[Node]:
    """A test that looks at no geometry, with values of the right and of the wrong type."""
    text = st.sampled_from(TEXTS)
    compared = st.sampled_from(COMPARED)
    moment = st.sampled_from(MOMENTS)
    attribute = st.sampled_from([named(name) for name in (*COLUMNS, "geometry", "absent")])
    return st.one_of(
        st.builds(call, compared, numbers(), numbers()),
        st.builds(call, compared, st.just(named("s")), text),
        time_tests(),
        st.builds(call, st.just("between"), numbers(), numbers(), numbers()),
        st.builds(
            call, st.just("in"), attribute, st.lists(text | st.sampled_from(NUMBERS), min_size=1)
        ),
        st.builds(call, st.just("like"), st.just(named("s")), st.sampled_from(("a%", "_", "%2%"))),
        st.builds(call, st.just("isNull"), attribute),
        st.builds(call, st.sampled_from(("t_after", "t_equals")), st.just(named("t")), moment),
        st.builds(
            call,
            st.sampled_from(("a_contains", "a_overlaps", "a_equals", "a_containedBy")),
            st.just(named("tags")),
            st.sampled_from(([1], [1, 2], ["a"], [])),
        ),
        st.just(call("=", call("casei", named("s")), "é")),
        st.just(named("yes")),
        st.booleans(),
    )


def time_tests() -> st.SearchStrategy[Node]:
    """A text or a moment beside a text or a moment: they are compared as the value is."""
    name, time = st.sampled_from((named("s"), named("t"))), st.sampled_from(TIMES)
    return st.one_of(
        st.builds(call, st.sampled_from(COMPARED), name, time),
        st.builds(call, st.just("in"), name, st.lists(time, min_size=1, max_size=3)),
    )


def predicates() -> st.SearchStrategy[Node]:
    """AND, OR and NOT of tests, three deep at most."""
    test = spatial_tests() | spatial_tests() | attribute_tests()

    def join(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        several = st.lists(inner, min_size=2, max_size=3)
        return st.one_of(
            st.builds(lambda parts: call("and", *parts), several),
            st.builds(lambda parts: call("or", *parts), several),
            st.builds(lambda part: call("not", part), inner),
        )

    return test | join(test | join(test))


# Events


@st.composite
def event_tables(draw: st.DrawFn) -> pa.Table:
    """Some events: geometries under three names, and attributes of one type to a column."""
    length = draw(st.integers(1, 4))

    def column(values: st.SearchStrategy[Any], kind: pa.DataType) -> pa.Array:
        rows = st.lists(st.none() | values, min_size=length, max_size=length)
        return pa.array(draw(rows), kind)

    shapes = st.builds(shapely.to_wkb, geometries())
    columns = {name: column(shapes, pa.binary()) for name in ("geometry", "area")}
    shape = st.fixed_dictionaries({"shape": st.none() | shapes})
    columns["place"] = column(shape, pa.struct({"shape": pa.binary()}))
    for name, kinds in COLUMNS.items():
        kind, values = draw(st.sampled_from(kinds))
        columns[name] = column(st.sampled_from(values), kind)
    return pa.table(columns)


def shapely_agrees_with_itself(events: pa.Table, filters: Sequence[Node]) -> bool:
    """Whether prepared geometries answer like plain ones, for all geometries that may meet.

    They do not for a rectangle that covers a region whose hole touches its shell.
    """
    found = [row for name in ("geometry", "area") for row in events[name].to_pylist()]
    found += [(row or {}).get("shape") for row in events["place"].to_pylist()]
    subjects = [shape for shape in shapely.from_wkb(found) if shape is not None]
    objects = [*subjects, *literals_in(list(filters))]
    for subject in subjects:
        plain, prepared = shapely.force_2d(subject), shapely.force_2d(subject)
        shapely.prepare(prepared)
        for predicate in (shapely.contains, shapely.covers):
            if (predicate(plain, objects) != predicate(prepared, objects)).any():
                return False
    return True


def literals_in(node: Node) -> list[BaseGeometry]:
    if isinstance(node, list):
        return [literal for part in node for literal in literals_in(part)]
    if not isinstance(node, dict):
        return []
    if "type" in node:
        return [shapely.from_geojson(json.dumps(node))]
    return literals_in(list(node.values()))


# Answers


def ids_by_row(table: pa.Table, length: int) -> list[list[Any]]:
    """The subscriptions of each event, which must come in the order of the events."""
    pairs = [(row["event"], row["subscription"]) for row in table.to_pylist()]
    assert pairs == sorted(pairs)
    return [[id_ for event, id_ in pairs if event == row] for row in range(length)]


def check_all_ways(matchers: Sequence[Matcher], events: pa.Table) -> None:
    rows = events.to_pylist()
    expected = [matchers[0].match(row) for row in rows]
    for matcher in matchers:
        assert [matcher.match(row) for row in rows] == expected, matcher.engine
        assert ids_by_row(matcher.match_many(events, threads=1), len(rows)) == expected
        assert ids_by_row(matcher.match_many(rows), len(rows)) == expected
        for row, ids in zip(rows, expected, strict=True):
            whom = {matcher.get(id_).subscriber for id_ in ids} - {None}
            assert matcher.subscribers(row) == sorted(whom, key=str)


def make_matchers(filters: Sequence[Node]) -> list[Matcher]:
    matchers = [Matcher(engine) for engine in ENGINES]
    for matcher in matchers:
        for id_, filter_ in enumerate(filters):
            matcher.add(id_, filter_, subscriber=(None, "u", "v")[id_ % 3])
    return matchers


def compare_engines(events: pa.Table, filters: list[Node], changes: list[tuple[int, Node]]) -> None:
    assume(shapely_agrees_with_itself(events, [filters, changes]))
    matchers = make_matchers(filters)
    check_all_ways(matchers, events)
    for id_, filter_ in changes:
        for matcher in matchers:
            if filter_ is not None:
                matcher.add(id_, filter_, replace=True, subscriber="w")
            elif id_ in matcher:
                matcher.remove(id_)
    check_all_ways(matchers, events)


some_filters = st.lists(predicates(), min_size=1, max_size=6)
some_changes = st.lists(st.tuples(st.integers(0, 6), st.none() | predicates()), max_size=3)


@settings(max_examples=80)
@given(event_tables(), some_filters, some_changes)
def test_engines_agree_on_random_predicates_through_changes(
    events: pa.Table, filters: list[Node], changes: list[tuple[int, Node]]
) -> None:
    compare_engines(events, filters, changes)


def test_engines_agree_on_every_two_comparisons_of_texts_and_moments() -> None:
    tests = [call(name, named("t"), time) for name in COMPARED for time in TIMES]
    tests += [call("in", named("t"), list(pair)) for pair in combinations(TIMES, 2)]
    tests += [call("not", test) for test in tests[-len(TIMES) :]]
    pairs = [call("and", *pair) for pair in combinations(tests, 2)]
    matchers = make_matchers([*tests, *pairs])
    for kind, values in COLUMNS["t"]:
        check_all_ways(matchers, pa.table({"t": pa.array([None, *values], kind)}))


@pytest.mark.soak
@given(event_tables(), some_filters, some_changes)
def test_engines_agree_on_very_many_random_predicates(
    events: pa.Table, filters: list[Node], changes: list[tuple[int, Node]]
) -> None:
    compare_engines(events, filters, changes)
