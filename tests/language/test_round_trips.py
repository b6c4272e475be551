"""CQL2 text and JSON in, both out again: the predicate stays, and `cql2` reads what we write."""

import json
from typing import Any

import cql2
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

from contrada.language import constraint_text, make_predicate, read, read_text, to_json, to_text
from contrada.language.operators import TEMPORAL
from contrada.language.write import geometry_text
from contrada.model.expression import Expression, Literal, Not, Spatial
from contrada.model.relation import RELATIONS
from contrada.model.subscription import Constraint
from strategies import geometries
from zoo import GEOMETRIES

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
EGENHOFER = [name for name in RELATIONS if name.startswith("eh")]
RING = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}


def prop(name: str) -> dict[str, str]:
    return {"property": name}


def op(name: str, *args: Any) -> dict[str, Any]:
    return {"op": name, "args": list(args)}


def check(expression: Expression) -> None:
    """Both encodings give the expression back, and `cql2` takes both."""
    text, tree = to_text(expression), to_json(expression)
    assert read(text) == expression
    assert read_text(to_text(read_text(text))) == expression
    assert read({"op": "and", "args": [tree]}) == expression
    assert read({"op": "and", "args": [json.loads(json.dumps(tree))]}) == expression
    cql2.parse_text(text)
    cql2.parse_json(json.dumps(tree))


BOTH: list[tuple[str, Any]] = [
    ("TRUE", True),
    ("eo:cloud_cover < 0.1", op("<", prop("eo:cloud_cover"), 0.1)),
    ("city = 'Toronto'", op("=", prop("city"), "Toronto")),
    ("balance - 150.0 > 0", op(">", op("-", prop("balance"), 150.0), 0)),
    (
        "updated >= DATE('2012-08-10')",
        op(">=", prop("updated"), {"date": "2012-08-10"}),
    ),
    (
        "updated = TIMESTAMP('2012-08-10T05:30:00.000000Z')",
        op("=", prop("updated"), {"timestamp": "2012-08-10T05:30:00Z"}),
    ),
    (
        f"S_WITHIN(location, {SQUARE})",
        op("s_within", prop("location"), RING),
    ),
    (
        "floors > 5 AND material = 'brick'",
        op("and", op(">", prop("floors"), 5), op("=", prop("material"), "brick")),
    ),
    (
        "(floors > 5 AND material = 'brick') OR swimming_pool = TRUE",
        op(
            "or",
            op("and", op(">", prop("floors"), 5), op("=", prop("material"), "brick")),
            op("=", prop("swimming_pool"), True),
        ),
    ),
    (
        "floors > 5 AND (material = 'brick' OR material = 'concrete')",
        op(
            "and",
            op(">", prop("floors"), 5),
            op("or", op("=", prop("material"), "brick"), op("=", prop("material"), "concrete")),
        ),
    ),
    (
        "NOT (floors < 5) OR swimming_pool = TRUE",
        op("or", op("not", op("<", prop("floors"), 5)), op("=", prop("swimming_pool"), True)),
    ),
    ("owner LIKE 'Mike%'", op("like", prop("owner"), "Mike%")),
    ("owner NOT LIKE '%Mike%'", op("not", op("like", prop("owner"), "%Mike%"))),
    ("swimming_pool = FALSE", op("=", prop("swimming_pool"), False)),
    ("floors BETWEEN 5 AND 8", op("between", prop("floors"), 5, 8)),
    ("floors NOT BETWEEN 5 AND 8", op("not", op("between", prop("floors"), 5, 8))),
    ("owner IN ('Mike', 'John', 'Tom')", op("in", prop("owner"), ["Mike", "John", "Tom"])),
    ("category NOT IN (1, 2, 3)", op("not", op("in", prop("category"), [1, 2, 3]))),
    ("geometry IS NULL", op("isNull", prop("geometry"))),
    ("geophys:survey IS NOT NULL", op("not", op("isNull", prop("geophys:survey")))),
    ('"häuser" = 1', op("=", prop("häuser"), 1)),
    (
        '"a b" = 1 AND "say ""hi""" = 2',
        op("and", op("=", prop("a b"), 1), op("=", prop('say "hi"'), 2)),
    ),
    ("name = 'it''s'", op("=", prop("name"), "it's")),
    ("CASEI(road) = CASEI('Straße')", op("=", op("casei", prop("road")), op("casei", "Straße"))),
    (
        "ACCENTI(CASEI(road)) LIKE ACCENTI(CASEI('é%'))",
        op("like", op("accenti", op("casei", prop("road"))), op("accenti", op("casei", "é%"))),
    ),
    ("vehicles + 1 * 2 = 3", op("=", op("+", prop("vehicles"), op("*", 1, 2)), 3)),
    ("(a + b) * c = 3", op("=", op("*", op("+", prop("a"), prop("b")), prop("c")), 3)),
    ("a - (b - c) = 3", op("=", op("-", prop("a"), op("-", prop("b"), prop("c"))), 3)),
    ("a ^ -2 = -1.5", op("=", op("^", prop("a"), -2), -1.5)),
    ("-a = 1", op("=", op("*", -1, prop("a")), 1)),
    ("a DIV 2 % 3 = 1", op("=", op("%", op("div", prop("a"), 2), 3), 1)),
    ("S_INTERSECTS(g, BBOX(1, 2, 3, 4))", op("s_intersects", prop("g"), {"bbox": [1, 2, 3, 4]})),
    (
        "S_INTERSECTS(g, BBOX(1, 2, 0, 3, 4, 9))",
        op("s_intersects", prop("g"), {"bbox": [1, 2, 0, 3, 4, 9]}),
    ),
    (
        "S_CROSSES(road, LINESTRING(1 1, 5 5))",
        op("s_crosses", prop("road"), {"type": "LineString", "coordinates": [[1, 1], [5, 5]]}),
    ),
    (
        "S_EQUALS(g, POINT(1 2))",
        op("s_equals", prop("g"), {"type": "Point", "coordinates": [1, 2]}),
    ),
    (
        "S_DISJOINT(g, MULTIPOINT((1 2), (3 4)))",
        op("s_disjoint", prop("g"), {"type": "MultiPoint", "coordinates": [[1, 2], [3, 4]]}),
    ),
    (
        "S_TOUCHES(g, MULTILINESTRING((0 0, 1 1), (2 2, 3 3)))",
        op(
            "s_touches",
            prop("g"),
            {"type": "MultiLineString", "coordinates": [[[0, 0], [1, 1]], [[2, 2], [3, 3]]]},
        ),
    ),
    (
        "S_OVERLAPS(g, MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0))))",
        op("s_overlaps", prop("g"), {"type": "MultiPolygon", "coordinates": [RING["coordinates"]]}),
    ),
    (
        "S_CONTAINS(g, GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1)))",
        op(
            "s_contains",
            prop("g"),
            {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "Point", "coordinates": [1, 2]},
                    {"type": "LineString", "coordinates": [[0, 0], [1, 1]]},
                ],
            },
        ),
    ),
    ("S_WITHIN(a, b)", op("s_within", prop("a"), prop("b"))),
    (f"covers(g, {SQUARE})", op("covers", prop("g"), RING)),
    (f"coveredBy(g, {SQUARE})", op("coveredBy", prop("g"), RING)),
    *((f"{name}(g, {SQUARE})", op(name, prop("g"), RING)) for name in EGENHOFER),
    (f"relate(g, {SQUARE}, 'T*F**F***')", op("relate", prop("g"), RING, "T*F**F***")),
    (
        "dwithin(g, POINT(11.3 43.3), 500.5)",
        op("dwithin", prop("g"), {"type": "Point", "coordinates": [11.3, 43.3]}, 500.5),
    ),
    ("dwithin(g, h, radius * 2)", op("dwithin", prop("g"), prop("h"), op("*", prop("radius"), 2))),
    (
        "T_AFTER(updated, DATE('2010-02-10'))",
        op("t_after", prop("updated"), {"date": "2010-02-10"}),
    ),
    (
        "T_DURING(INTERVAL(starts_at, ends_at), INTERVAL('2005-01-10', '2010-02-10'))",
        op(
            "t_during",
            {"interval": [prop("starts_at"), prop("ends_at")]},
            {"interval": ["2005-01-10", "2010-02-10"]},
        ),
    ),
    (
        "T_INTERSECTS(INTERVAL(starts_at, '..'), INTERVAL('..', '2010-02-10T05:29:20.073225Z'))",
        op(
            "t_intersects",
            {"interval": [prop("starts_at"), ".."]},
            {"interval": ["..", "2010-02-10T05:29:20.073225Z"]},
        ),
    ),
    *(
        (
            f"{name.upper()}(t, INTERVAL('2005-01-10', '..'))",
            op(name, prop("t"), {"interval": ["2005-01-10", ".."]}),
        )
        for name in TEMPORAL[:8]
    ),
    *(
        (
            f"{name.upper()}(t, INTERVAL('..', '..'))",
            op(name, prop("t"), {"interval": ["..", ".."]}),
        )
        for name in TEMPORAL[8:]
    ),
    (
        "A_CONTAINS(layer:ids, ('layers-ca', 'layers-us'))",
        op("a_contains", prop("layer:ids"), ["layers-ca", "layers-us"]),
    ),
    ("A_CONTAINEDBY(a, (1, TRUE, NULL))", op("a_containedBy", prop("a"), [1, True, None])),
    ("A_EQUALS(a, ((1, 2), (3, 4)))", op("a_equals", prop("a"), [[1, 2], [3, 4]])),
    ("A_OVERLAPS((a, b + 1), c)", op("a_overlaps", [prop("a"), op("+", prop("b"), 1)], prop("c"))),
    ("A_CONTAINS(a, ('x'))", op("a_contains", prop("a"), ["x"])),
    (
        "A_OVERLAPS(a, (DATE('2021-01-01'), b))",
        op("a_overlaps", prop("a"), [{"date": "2021-01-01"}, prop("b")]),
    ),
    ("a = NULL", op("=", prop("a"), None)),
    ("(a = 1) = (b = 2)", op("=", op("=", prop("a"), 1), op("=", prop("b"), 2))),
    ("(a IS NULL) IN (TRUE, b)", op("in", op("isNull", prop("a")), [True, prop("b")])),
    ("a AND NOT b", op("and", prop("a"), op("not", prop("b")))),
    (
        f"NOT (S_WITHIN(g, {SQUARE}) AND a)",
        op("not", op("and", op("s_within", prop("g"), RING), prop("a"))),
    ),
    ("a.b.c = 9007199254740993", op("=", prop("a.b.c"), 2**53 + 1)),
]


@pytest.mark.parametrize(("text", "tree"), BOTH)
def test_text_and_json_are_two_ways_to_say_the_same(text: str, tree: Any) -> None:
    expression = read(text)
    assert read(tree) == expression
    assert read(json.dumps(tree)) == expression
    check(expression)


@pytest.mark.parametrize("text", [text for text, _ in BOTH])
def test_cql2_understands_our_text_as_we_do(text: str) -> None:
    """It makes a double of every number; so do we here, to compare."""
    expression = read(text)
    theirs = cql2.parse_text(to_text(expression)).to_json()
    ours = json.loads(json.dumps(to_json(expression)), parse_int=float)
    assert read(theirs) == read(ours)


@pytest.mark.parametrize("text", [text for text, _ in BOTH])
def test_every_constraint_can_be_written(text: str) -> None:
    for predicate in (make_predicate(read(text)), make_predicate(read(f"NOT ({text})"))):
        check(predicate.expression)
        for constraint in (c for each in predicate.filters for c in each.constraints):
            check(constraint.test)
            expected = Not(constraint.test) if constraint.is_negated else constraint.test
            assert read(constraint_text(constraint)) == expected


# Numbers and geometries


@pytest.mark.parametrize(
    "number",
    [0.1, 1e-7, 1e22, 1.7976931348623157e308, 5e-324, -0.0, 2**53 + 1, 2**63 - 1, 0.1 + 0.2],
)
def test_a_number_survives_exactly(number: float) -> None:
    expression = read(op("=", prop("n"), number))
    for again in (read(to_text(expression)), read(json.dumps(to_json(expression)))):
        assert repr(again) == repr(expression)
    check(expression)


@pytest.mark.parametrize(
    "coordinate",
    [
        1e-7,
        1.0000000000000002,
        0.30000000000000004,
        9007199254740993,
        1e22,
        5e-324,
        -179.99999999999997,
    ],
)
def test_a_coordinate_survives_exactly(coordinate: float) -> None:
    point = shapely.Point(coordinate, -coordinate)
    for expression in (
        read(f"S_EQUALS(g, POINT({coordinate!r} {-coordinate!r}))"),
        read(
            op("s_equals", prop("g"), {"type": "Point", "coordinates": [coordinate, -coordinate]})
        ),
    ):
        assert isinstance(expression, Spatial)
        assert expression.right == Literal(point)
        assert "e" not in geometry_text(point).lower().removeprefix("point")
        check(expression)


def is_literal(name: str) -> bool:
    shape = shapely.from_wkt(GEOMETRIES[name])
    return shape.is_valid and not shape.is_empty and shape.geom_type != "LinearRing"


@pytest.mark.parametrize("name", [name for name in GEOMETRIES if is_literal(name)])
def test_a_geometry_of_the_zoo_survives_exactly(name: str) -> None:
    check(read(f"S_INTERSECTS(g, {GEOMETRIES[name]})"))


@given(geometries(), st.sampled_from([1 / 3, 1e-7, 1e15, 7e-320]))
def test_a_geometry_survives_exactly(shape: BaseGeometry, factor: float) -> None:
    scaled = shapely.transform(shape, lambda xy: xy * factor)
    if not scaled.is_valid:
        scaled = shape
    expression = read(f"S_INTERSECTS(g, {geometry_text(scaled)})")
    assert isinstance(expression, Spatial)
    literal = expression.right
    assert isinstance(literal, Literal)
    assert isinstance(literal.value, BaseGeometry)
    assert (
        shapely.get_coordinates(literal.value).tolist() == shapely.get_coordinates(scaled).tolist()
    )
    check(expression)


# Names


@pytest.mark.parametrize(
    "name",
    [
        *("a", "a.b.c", "eo:cloud_cover", "größe", "日本", "_private", "a_1", "A", "é", "ß"),
        *("date", "timestamp", "interval", "bbox", "point", "polygon", "POINT", "casei", "empty"),
        *("and", "OR", "not", "In", "like", "between", "is", "null", "TRUE", "false", "div"),
        *(
            "notable",
            "order",
            "android",
            "isle",
            "inner",
            "nullable",
            "trueish",
            "s_within",
            "covers",
        ),
        *(
            "a b",
            'a"b',
            "a'b",
            "a,b",
            "(a)",
            "1a",
            "-a",
            "a-b",
            ".",
            "a.",
            "a:",
            " ",
            "\n",
            "²",
            "'",
            '"',
        ),
        *("p1000", "f1000", "op", "property", "\U0001f600", "a\\", "%", "NOTp1000"),
    ],
)
def test_any_name_can_be_an_attribute(name: str) -> None:
    expression = read(op("=", prop(name), 1))
    check(expression)
    assert cql2.parse_text(to_text(expression)).to_json()["args"][0] == prop(name)
    quoted = name.replace('"', '""')
    assert read(f'"{quoted}" = 1') == expression
    assert read(f'NOT"{quoted}"=1') == read(op("not", op("=", prop(name), 1)))


@pytest.mark.parametrize(
    "name", ["date", "interval", "point", "polygon", "timestamp", "casei", "bbox", "größe", "a.b"]
)
def test_such_a_name_needs_no_quotes(name: str) -> None:
    assert read(f"{name} = 1") == read(f'"{name}" = 1')
    assert read(f"{name} IN (1, 2)") == read(f'"{name}" IN (1, 2)')
    assert read(f"S_WITHIN({name}, POINT(1 2))") == read(f'S_WITHIN("{name}", POINT(1 2))')


@given(st.text(min_size=1, max_size=6))
def test_random_names_can_be_attributes(name: str) -> None:
    check(read(op("=", prop(name), 1)))


@given(st.text(max_size=8))
def test_random_texts_can_be_literals(text: str) -> None:
    check(read(op("=", prop("a"), text)))
    check(read(op("like", prop("a"), text)))


# Spelling


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a=1and b=2", "a = 1 AND b = 2"),
        ("A_Contains(a,(1,2))", "a_contains(a, (1, 2))"),
        ("s_Within(a, Point(1 2))", "S_WITHIN(a, POINT (1 2))"),
        ("EHINSIDE(a, POLYGON((0 0,1 0,1 1,0 0)))", "ehInside(a, POLYGON((0 0,1 0,1 1,0 0)))"),
        ("CoveredBy(a, b)", "coveredby(a, b)"),
        ("a Is Not Null", "NOT a IS NULL"),
        ("a = 1 AND (b = 2 AND c = 3)", "a = 1 AND b = 2 AND c = 3"),
        ("(a OR b) OR (c OR d)", "a OR b OR c OR d"),
        ("((((a))))", "a"),
        ("a IN (1, 2, 1)", "a IN (1, 2)"),
        ("\n a\t=\r\n1 ", "a = 1"),
        ("S_WITHIN (a , POINT ( 1   2 ))", "S_WITHIN(a, POINT(1 2))"),
        ("T_AFTER(a, interval('2021-01-01','..'))", "t_after(a, INTERVAL('2021-01-01', '..'))"),
        ("a = date('2021-01-01')", "a = DATE('2021-01-01')"),
        ("relate(a, b, 't*f**f***')", "RELATE(a, b, 'T*F**F***')"),
        ("a <> 1", "a != 1"),
        ("S_WITHIN(a, POINT Z(1 2 3))", "S_WITHIN(a, POINT(1 2))"),
        ("S_WITHIN(a, MULTIPOINT(1 2, 3 4))", "S_WITHIN(a, MULTIPOINT((1 2), (3 4)))"),
        ("S_WITHIN(a, POINT(1e-1 2E0))", "S_WITHIN(a, POINT(0.1 2))"),
        ("S_WITHIN(a, GEOMETRYCOLLECTION(POINT EMPTY, POINT(1 2)))", "S_WITHIN(a, POINT(1 2))"),
    ],
)
def test_two_spellings_are_one_predicate(one: str, other: str) -> None:
    assert read(one) == read(other)


def test_nested_junctions_of_json_are_flat() -> None:
    nested = op(
        "and",
        op("and", prop("a"), op("and", prop("b"), prop("c"))),
        op("or", prop("d"), op("or", prop("e"), prop("f"))),
    )
    assert read(nested) == read("a AND b AND c AND (d OR e OR f)")


def test_json_operators_are_read_in_any_case() -> None:
    assert read(op("ISNULL", prop("a"))) == read("a IS NULL")
    assert read(op("S_Within", prop("a"), RING)) == read(f"S_WITHIN(a, {SQUARE})")


def test_a_geojson_geometry_may_have_a_bbox_of_its_own() -> None:
    boxed = {**RING, "bbox": [100, 100, 101, 101]}
    assert read(op("s_within", prop("a"), boxed)) == read(f"S_WITHIN(a, {SQUARE})")


def test_a_negated_constraint_is_written_with_not() -> None:
    test = read(f"S_WITHIN(a, {SQUARE})")
    assert constraint_text(Constraint(test)) == f"S_WITHIN(a, {SQUARE})"
    assert constraint_text(Constraint(test, is_negated=True)) == f"NOT S_WITHIN(a, {SQUARE})"
