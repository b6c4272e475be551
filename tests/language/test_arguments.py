"""Where arguments may stand: reversed, both attributes, both literals, names, and boxes."""

import json
from itertools import product
from typing import Any

import pytest
import shapely

from contrada.errors import InvalidInput
from contrada.language import make_predicate, read, truth
from contrada.model.event import Event
from contrada.model.expression import Attribute, DistanceWithin, Literal, Spatial
from contrada.model.relation import RELATIONS, Family, pattern_relation

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
FUNCTIONS = {
    name: name
    if relation.family is Family.EGENHOFER or "cover" in name.lower()
    else f"S_{name.upper()}"
    for name, relation in RELATIONS.items()
}
REGIONS = [
    shapely.box(*bounds)
    for bounds in [
        (0, 0, 4, 4),
        (1, 1, 3, 3),
        (0, 0, 2, 2),
        (0, 0, 9, 9),
        (-1, -1, 9, 9),
        (2, 2, 6, 6),
        (4, 0, 8, 4),
        (9, 9, 10, 10),
    ]
]


def truth_of(text: str, **attributes: Any) -> bool | None:
    return truth(read(text), Event(attributes))


def spatial(text: str) -> Spatial:
    expression = read(text)
    assert isinstance(expression, Spatial)
    return expression


# Reversed arguments


@pytest.mark.parametrize("name", RELATIONS)
def test_a_literal_that_comes_first_is_put_last_by_the_converse_relation(name: str) -> None:
    function = FUNCTIONS[name]
    reversed_ = spatial(f"{function}({SQUARE}, g)")
    assert reversed_.relation == RELATIONS[name].transposed()
    assert reversed_.left == Attribute("g")
    assert isinstance(reversed_.right, Literal)
    assert spatial(f"{function}(g, {SQUARE})").relation == RELATIONS[name]


@pytest.mark.parametrize("name", RELATIONS)
def test_a_reversed_relation_means_what_it_says(name: str) -> None:
    for region, other in product(REGIONS, repeat=2):
        expected = truth_of(f"{FUNCTIONS[name]}(g, h)", g=region, h=other)
        assert expected is not None
        assert truth_of(f"{FUNCTIONS[name]}({region.wkt}, h)", h=other) is expected
        assert truth_of(f"{FUNCTIONS[name]}(g, {other.wkt})", g=region) is expected
        assert truth_of(f"{FUNCTIONS[name]}({region.wkt}, {other.wkt})") is expected


@pytest.mark.parametrize("pattern", ["T*F**F***", "FF2F01212", "012TF*T10"])
def test_a_reversed_pattern_is_transposed(pattern: str) -> None:
    reversed_ = spatial(f"relate({SQUARE}, g, '{pattern}')")
    assert reversed_.relation == pattern_relation(pattern).transposed()
    assert reversed_.left == Attribute("g")


def test_two_attributes_stay_where_they_are() -> None:
    assert spatial("S_WITHIN(g, h)") == Spatial(RELATIONS["within"], Attribute("g"), Attribute("h"))
    assert spatial("ehInside(h, g)").left == Attribute("h")
    assert truth_of("S_WITHIN(g, g)", g=SQUARE) is True


def test_a_distance_is_symmetric() -> None:
    assert read("dwithin(POINT(1 2), g, 5)") == read("dwithin(g, POINT(1 2), 5)")
    both = read("dwithin(g, h, r)")
    assert both == DistanceWithin(Attribute("g"), Attribute("h"), Attribute("r"))


def test_two_literals_are_a_constant() -> None:
    assert make_predicate(read(f"S_WITHIN(POINT(1 1), {SQUARE})")).expression == Literal(True)
    assert make_predicate(read(f"S_WITHIN({SQUARE}, POINT(1 1))")).expression == Literal(False)
    assert make_predicate(read(f"ehEquals({SQUARE}, {SQUARE})")).expression == Literal(True)


@pytest.mark.parametrize("function", [*FUNCTIONS.values()])
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{} = TRUE", "{}"),
        ("{} = FALSE", "NOT {}"),
        ("{} <> TRUE", "NOT {}"),
        ("{} <> FALSE", "{}"),
        ("TRUE = {}", "{}"),
        ("FALSE = {}", "NOT {}"),
        ("TRUE <> {}", "NOT {}"),
    ],
)
def test_a_function_compared_with_a_truth_value(function: str, written: str, meant: str) -> None:
    call = f"{function}(g, {SQUARE})"
    assert read(written.format(call)) == read(meant.format(call))


@pytest.mark.parametrize(
    "call",
    [
        "dwithin(g, POINT(0 0), 5)",
        "T_AFTER(t, DATE('2021-01-01'))",
        "A_EQUALS(a, (1, 2))",
        "a LIKE 'x'",
        "relate(g, h, 'T********')",
    ],
)
def test_so_may_any_test(call: str) -> None:
    assert read(f"({call}) = TRUE") == read(call)
    assert read(f"FALSE = ({call})") == read(f"NOT {call}")


# Names


def test_a_dotted_name_is_a_key_first_and_then_a_path() -> None:
    assert truth_of("a.b.c = 1", **{"a.b.c": 1, "a": {"b": {"c": 2}}}) is True
    assert truth_of("a.b.c = 2", a={"b": {"c": 2}}) is True
    assert truth_of('"a.b.c" = 3', **{"a.b": {"c": 3}}) is True
    assert truth_of("a.b.c IS NULL", a={"b": 5}) is True
    assert truth_of(f"S_WITHIN(site.area, {SQUARE})", site={"area": "POINT(1 1)"}) is True


@pytest.mark.parametrize(
    "name",
    ["date", "point", "interval", "größe", "日本", "a b", 'a"b', "NOT", "null", "1", "p1000"],
)
def test_a_quoted_name_is_only_a_name(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    assert truth_of(f"{quoted} = 1", **{name: 1}) is True
    assert truth_of(f"{quoted} + {quoted} = 2 AND NOT {quoted} IS NULL", **{name: 1}) is True
    assert truth_of(f"S_WITHIN({quoted}, {SQUARE})", **{name: "POINT(1 1)"}) is True


@pytest.mark.parametrize(
    "name",
    [
        "date",
        "point",
        "polygon",
        "interval",
        "timestamp",
        "bbox",
        "casei",
        "größe",
        "日本",
        "covers",
    ],
)
def test_a_name_like_a_keyword_needs_no_quotes(name: str) -> None:
    assert truth_of(f"{name} = 1", **{name: 1}) is True
    assert truth_of(f"{name} IN (1, 2) AND {name} < 2", **{name: 1}) is True


def test_names_differ_by_case() -> None:
    assert truth_of("Wind = 1", wind=1) is None
    assert truth_of("Wind = 1", Wind=1) is True


# Boxes

AROUND_180 = (
    "MULTIPOLYGON(((170 -10,180 -10,180 10,170 10,170 -10)),"
    "((-180 -10,-170 -10,-170 10,-180 10,-180 -10)))"
)
EDGE_AND_AREA = (
    "GEOMETRYCOLLECTION(LINESTRING(180 0,180 5),POLYGON((-180 0,-170 0,-170 5,-180 5,-180 0)))"
)


@pytest.mark.parametrize(
    ("box", "wkt"),
    [
        ([0, 1, 2, 3], "POLYGON((0 1,2 1,2 3,0 3,0 1))"),
        ([0, 1, 7, 2, 3, 9], "POLYGON((0 1,2 1,2 3,0 3,0 1))"),
        ([-1.5, -2.5, 1e1, 0.5], "POLYGON((-1.5 -2.5,10 -2.5,10 0.5,-1.5 0.5,-1.5 -2.5))"),
        ([1, 2, 1, 2], "POINT(1 2)"),
        ([1, 2, 1, 5], "LINESTRING(1 2,1 5)"),
        ([1, 2, 5, 2], "LINESTRING(1 2,5 2)"),
        ([500000, 0, 600000, 1], "POLYGON((500000 0,600000 0,600000 1,500000 1,500000 0))"),
        (
            [170, -10, -170, 10],
            AROUND_180,
        ),
        (
            [170, -10, 0, -170, 10, 9],
            AROUND_180,
        ),
        ([180, 0, -180, 5], "MULTILINESTRING((180 0,180 5),(-180 0,-180 5))"),
        (
            [180, 0, -170, 5],
            EDGE_AND_AREA,
        ),
        ([-180, -90, 180, 90], "POLYGON((-180 -90,180 -90,180 90,-180 90,-180 -90))"),
    ],
)
def test_a_box_is_the_geometry_that_it_spans(box: list[float], wkt: str) -> None:
    text = ", ".join(map(repr, box))
    for expression in (
        read(f"S_EQUALS(g, BBOX({text}))"),
        read({"op": "s_equals", "args": [{"property": "g"}, {"bbox": box}]}),
        read(json.dumps({"op": "s_equals", "args": [{"property": "g"}, {"bbox": box}]})),
    ):
        assert isinstance(expression, Spatial)
        assert isinstance(expression.right, Literal)
        shape = expression.right.value
        assert isinstance(shape, shapely.Geometry)
        assert shape.normalize() == shapely.from_wkt(wkt).normalize()


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (170, True),
        (175, True),
        (180, True),
        (-180, True),
        (-171, True),
        (-169, False),
        (0, False),
        (169, False),
    ],
)
def test_a_box_whose_west_is_greater_crosses_the_180_meridian(x: float, expected: bool) -> None:
    assert truth_of("S_INTERSECTS(g, BBOX(170, -10, -170, 10))", g=shapely.Point(x, 0)) is expected
    assert (
        truth_of("S_DISJOINT(BBOX(170, -10, -170, 10), g)", g=shapely.Point(x, 0)) is not expected
    )


def test_a_box_may_be_an_area_for_egenhofer() -> None:
    assert truth_of("ehInside(g, BBOX(0, 0, 9, 9))", g=shapely.box(1, 1, 2, 2)) is True
    assert truth_of("ehCoveredBy(g, BBOX(170, 0, -170, 9))", g=shapely.box(175, 1, 180, 2)) is True


@pytest.mark.parametrize("text", ["FALSE + TRUE", "a = 1 OR FALSE + b > 2", "NOT (FALSE + a = 1)"])
def test_false_is_not_the_number_zero(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"\+ takes a number here, not a boolean"):
        read(text)
