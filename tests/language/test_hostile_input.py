"""Whatever comes in, only InvalidInput comes out: hostile texts, hostile trees, hostile events."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas
import pytest
import shapely
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contrada.errors import InvalidInput
from contrada.language import is_satisfied, make_predicate, read, to_json, to_text, truth
from contrada.language.operators import SIGNATURES
from contrada.model.event import Event, read_event

WORDS = (
    *(row.name for row in SIGNATURES.values()),
    *"AND OR NOT LIKE BETWEEN IN IS NULL TRUE FALSE DATE TIMESTAMP INTERVAL BBOX EMPTY".split(),
    *"a b.c \"d e\" point p1000 f1000 _x ü 'a%' '' '..' '2021-01-01' 'T********' ' \"".split(),
    *"0 1 -1 1.5 .5 1e5 1e999 1000 1001 9007199254740993 1.5.3 0x1F ( ) , = <> < <= > >=".split(),
    *"+ - * / % ^ ; [ ] { } \\ # @ \n \t \0 \u00b2 \u0663 \U0001f600".split(" "),
    "POINT(0 0)",
    "LINESTRING(0 0, 1 1)",
    "POLYGON((0 0, 4 0, 4 4, 0 0))",
    "POLYGON((0 0, 1 1",
    "POINT EMPTY",
    "POINT(nan 1e999)",
)
TEXTS = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=14).map("".join),
    st.text(max_size=30),
)

HUGE = st.sampled_from([10**400, -(10**400), 1e308, 5e-324, 2**63, 2**53 + 1])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), HUGE, st.sampled_from(WORDS), st.text()
)
NAMES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([*SIGNATURES, "and", "or", "AND", "nope", ""]), SCALARS, st.just([])
)
GEOJSON = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["Point", "LineString", "Polygon", "GeometryCollection", "Feature"]
        ),
        "coordinates": st.recursive(
            SCALARS, lambda inner: st.lists(inner, max_size=4), max_leaves=8
        ),
    },
    optional={"geometries": st.lists(SCALARS, max_size=2), "bbox": SCALARS},
)


def nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, max_size=4)
    return st.one_of(
        several,
        st.fixed_dictionaries({"op": NAMES, "args": several}),
        st.fixed_dictionaries({"op": NAMES}, optional={"args": inner}),
        st.fixed_dictionaries({"property": st.one_of(st.sampled_from(["a", "b.c"]), inner)}),
        st.fixed_dictionaries({"interval": st.one_of(several, inner)}),
        st.fixed_dictionaries(
            {"bbox": st.one_of(st.lists(SCALARS, min_size=4, max_size=6), inner)}
        ),
        st.fixed_dictionaries({"timestamp": inner}),
        st.fixed_dictionaries({"date": inner}),
        st.dictionaries(st.text(max_size=3), inner, max_size=2),
        GEOJSON,
    )


TREES = st.recursive(SCALARS, nodes, max_leaves=12)


@settings(max_examples=400)
@given(TEXTS)
@example("a = 1.5.3")
@example('"a"1 = 1')
@example("a = " + "9" * 5000)
@example("dwithin(a, POINT(0 0), " + "9" * 400 + ")")
@example("BBOX(1,2,3,4)")
def test_a_text_is_read_and_written_again_or_refused(text: str) -> None:
    try:
        expression = read(text)
    except InvalidInput:
        return
    assert read(to_text(expression)) == expression


@settings(max_examples=400)
@given(TREES)
@example({"op": "=", "args": [{"property": "a"}, 10**400]})
@example({"op": "s_intersects", "args": [{"property": "a"}, {"bbox": [10**400, 1, 2, 3]}]})
@example({"op": "s_intersects", "args": [{"property": "a"}, {"type": ["Point"]}]})
def test_a_tree_is_read_and_written_again_or_refused(tree: Any) -> None:
    try:
        expression = read(tree)
    except InvalidInput:
        return
    # A null alone is no predicate, so it goes back in as the only argument of an AND.
    assert read({"op": "and", "args": [to_json(expression)]}) == expression


# Events

TESTS = (
    "a = 1",
    "a <> b",
    "a < 1.5",
    "a >= TIMESTAMP('2021-01-01T00:00:00Z')",
    "a BETWEEN b AND c",
    "a IN (1, 'x', TRUE, DATE('2021-01-01'), b)",
    "a LIKE b",
    "CASEI(a) = ACCENTI(b)",
    "a IS NULL",
    "(a + b) IS NULL",
    *(f"a {operator} b > c" for operator in ("+", "-", "*", "/", "%", "DIV", "^")),
    *(f"{name}(a, b)" for name in SIGNATURES if name.startswith(("t_", "a_"))),
    "T_DURING(a, INTERVAL(b, c))",
    "T_AFTER(a, INTERVAL('..', b))",
    "A_CONTAINS(a, (1, b))",
    "a AND b OR NOT c",
    "a.b.c = 1",
)
GEOMETRY_TESTS = (
    *(f"{key}(a, b)" for key, row in SIGNATURES.items() if row.takes == ("geometry", "geometry")),
    "relate(a, b, 'T*F**F***')",
    "S_WITHIN(a, POLYGON((0 0, 4 0, 4 4, 0 0)))",
    "dwithin(a, b, c)",
    "dwithin(a, POINT(0 0), 1000)",
)
ZONES = st.integers(-23, 23).map(lambda hours: dt.timezone(dt.timedelta(hours=hours)))
PLAIN_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    HUGE,
    st.floats(),
    st.complex_numbers(),
    st.decimals(allow_nan=None),
    st.sampled_from([Decimal("sNaN"), Decimal("1e999999"), Decimal("-Infinity"), Decimal("0.1")]),
    st.fractions().filter(lambda fraction: isinstance(fraction, Fraction)),
    st.text(max_size=8),
    st.sampled_from(
        ["..", "", "2021-01-01", "2021-01-01T10:15:30.5+02:00", "9999-12-31T23:59:60Z"]
    ),
    st.datetimes(timezones=st.none() | ZONES),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.sampled_from([pandas.NA, pandas.NaT, pandas.Timestamp(0), pandas.Timedelta(1)]),
    st.sampled_from(
        [
            np.bool_(True),
            np.int8(-1),
            np.uint64(2**64 - 1),
            np.float16(0.5),
            np.float64("nan"),
            np.longdouble(1),
            np.complex64(1j),
            np.str_("x"),
            np.datetime64("2021-01-01"),
            np.datetime64("NaT"),
            np.datetime64(1, "ns"),
            np.datetime64(2**40, "Y"),
            np.datetime64(1, "as"),
            np.timedelta64(1, "ns"),
            np.array(5),
            np.array([1, 2]),
            np.array([[1.0, np.nan]]),
            np.array(["2021-01-01"], "datetime64[ns]"),
            np.array([None, "x"], object),
        ]
    ),
    st.sampled_from([object(), int, len, range(3), {1, 2}, frozenset(), UUID(int=1), ...]),
)
VALUES = st.recursive(
    PLAIN_VALUES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from(["b", "c", "b.c", "type"]), inner, max_size=2),
    ),
    max_leaves=6,
)
GEOMETRIES = st.sampled_from(
    [
        shapely.Point(1, 1),
        shapely.Point(),
        shapely.Point(200, 100),
        shapely.LineString([(0, 0), (3, 3)]),
        shapely.LinearRing([(0, 0), (3, 0), (3, 3)]),
        shapely.box(0, 0, 2, 2),
        shapely.box(0, 0, 2, 2).boundary,
        shapely.MultiPolygon(),
        shapely.GeometryCollection(),
        shapely.GeometryCollection([shapely.Point(), shapely.box(1, 1, 3, 3)]),
        shapely.GeometryCollection([shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3)]),
        shapely.GeometryCollection([shapely.Point(5, 5), shapely.box(1, 1, 3, 3)]),
        "POINT(1 1)",
        {"type": "Point", "coordinates": [1, 1]},
    ]
)
SPOILT = st.sampled_from(
    [
        shapely.from_wkt("POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))"),
        shapely.Point(float("nan"), 1),
        b"",
        b"\x01\x02",
        bytearray(b"\x00" * 21),
        memoryview(b"\x01\x01"),
        "POINT(1",
        "CIRCULARSTRING(0 0, 1 1, 2 0)",
        {"type": "Point", "coordinates": "x"},
    ]
)


def events(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(["a", "b", "c", "a.b", "b.c", "a.b.c"]), values)


@pytest.mark.parametrize("test", [*TESTS, *GEOMETRY_TESTS])
@settings(max_examples=30)
@given(events(VALUES | GEOMETRIES))
def test_no_value_makes_evaluation_fail(test: str, attributes: dict[str, Any]) -> None:
    predicate = make_predicate(read(test))
    event = read_event(attributes)
    assert truth(predicate.expression, event) in {True, False, None}
    for constraint in predicate.filters[0].constraints:
        assert is_satisfied(constraint, event) in {True, False}


@pytest.mark.parametrize("test", GEOMETRY_TESTS)
@given(spoilt=SPOILT, attributes=events(GEOMETRIES))
@settings(max_examples=10)
def test_a_spoilt_geometry_is_refused_by_name(
    test: str, spoilt: Any, attributes: dict[str, Any]
) -> None:
    event = Event({**attributes, "a": spoilt}, place="row 7")
    with pytest.raises(InvalidInput, match=r"^row 7, attribute 'a': "):
        truth(read(test), event)


@pytest.mark.parametrize("test", TESTS)
@given(SPOILT)
@settings(max_examples=5)
def test_a_spoilt_geometry_that_nobody_asks_for_is_no_matter(test: str, spoilt: Any) -> None:
    assert truth(read(test), read_event({"a": spoilt})) in {True, False, None}


@given(VALUES | GEOMETRIES | SPOILT)
def test_whatever_is_no_mapping_is_no_event(event: Any) -> None:
    if isinstance(event, dict):
        assert isinstance(read_event(event), Event)
    else:
        with pytest.raises(InvalidInput, match=r"^the event must be a mapping, not "):
            read_event(event)


@pytest.mark.parametrize("zeros", [0, 5_000])
def test_zeros_before_a_number_or_an_exponent_change_nothing(zeros: int) -> None:
    before = "0" * zeros
    for number, value in [(f"{before}5", 5), (f"{before}5.0", 5), (f"5e{before}1", 50)]:
        assert truth(read(f"a = {number}"), Event({"a": value})) is True
