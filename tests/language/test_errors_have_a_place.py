"""What is wrong with a predicate is said with its place: a character, or a path in JSON."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from contrada.errors import InvalidInput
from contrada.language import read, read_json, to_text, truth
from contrada.limits import PREDICATE_DEPTH_MAX as DEPTH_MAX
from contrada.limits import PREDICATE_JOINS_MAX as JOINS_MAX
from contrada.limits import PREDICATE_NESTING_MAX as NESTING_MAX
from contrada.model.event import Event

G = {"property": "g"}
POINT = {"type": "Point", "coordinates": [1, 2]}
BOW_TIE = {"type": "Polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}


def op(name: Any, *args: Any) -> dict[str, Any]:
    return {"op": name, "args": list(args)}


def refusal(predicate: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(predicate)
    return str(caught.value)


# Texts

SYNTAX = [
    ("name LIEK 'a%'", 5, 'unknown operator "LIEK"'),
    ("a = 1 AND name LIEK 'a%'", 15, 'unknown operator "LIEK"'),
    ("a\n=\n1\nXOR b", 6, 'unknown operator "XOR"'),
    ("'größe' RESEMBLES a", 8, 'unknown operator "RESEMBLES"'),
    ("a = 1 b = 2", 6, 'unknown operator "b"'),
    ("a = 0x1F", 5, 'unknown operator "x1F"'),
    ("= 1", 0, "syntax error"),
    ("a == 1", 3, "syntax error"),
    ("a = 1)", 5, "syntax error"),
    (")a = 1(", 0, "syntax error"),
    ("a = 'x", 4, "syntax error"),
    ("a = 'it's'", 8, 'unknown operator "s"'),
    ('"a = 1', 0, "syntax error"),
    ('b = 1 AND "a = 1', 10, "syntax error"),
    ("a = 1; DROP", 5, "syntax error"),
    ("a[1] = 2", 1, "syntax error"),
    ("a @ b", 2, "syntax error"),
    ("a = 1.5.3", 7, "syntax error"),
    ("a = 1..2", 6, "syntax error"),
    ('"a"1 = 1', 3, "syntax error"),
    ("'a' 'b'", 4, "syntax error"),
    ("a = \0", 4, "syntax error"),
    ("a IS 5", 5, "syntax error"),
]


@pytest.mark.parametrize(("text", "position", "what"), SYNTAX)
def test_a_syntax_error_has_its_character(text: str, position: int, what: str) -> None:
    near = text[position : position + 24]
    assert refusal(text) == f'{what} at character {position}, near "{near}"'


@pytest.mark.parametrize(
    "text",
    ["a =", "a = ", "(a = 1", "a = 1 AND", "a BETWEEN 1", "a IS", "S_WITHIN(g, h", "NOT", "f("],
)
def test_a_text_that_ends_too_early_says_so(text: str) -> None:
    assert re.fullmatch(r"the predicate ends too early, at character \d+", refusal(text))
    assert refusal(text).endswith(str(len(text))) or text == "NOT"


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_an_empty_text_is_refused(text: str) -> None:
    assert refusal(text) == "the predicate is empty"


MEANING = [
    ("foo(a)", 0, 'unknown function "foo"; known: covers, coveredBy, ehDisjoint, '),
    ("a = 1 AND area(g) > 5", 10, 'unknown function "area"; known: '),
    ('a = "odd name"(1)', 4, 'unknown function "odd name"; known: '),
    ("S_NEAR(a, b)", 0, 'unknown function "S_NEAR"; known: '),
    ("TRUE AND T_SOON(a)", 9, 'unknown function "T_SOON"; known: '),
    ("S_INTERSECTS()", 0, "s_intersects takes 2 arguments, not 0,"),
    ("S_INTERSECTS(g)", 0, "s_intersects takes 2 arguments, not 1,"),
    ("a AND S_INTERSECTS(g, h, i)", 6, "s_intersects takes 2 arguments, not 3,"),
    ("ehInside(g)", 0, "ehInside takes 2 arguments, not 1,"),
    ("relate(g, h)", 0, "relate takes 3 arguments, not 2,"),
    ("dwithin(g, POINT(0 0))", 0, "dwithin takes 3 arguments, not 2,"),
    ("T_AFTER(a)", 0, "t_after takes 2 arguments, not 1,"),
    ("A_EQUALS(a, b, c)", 0, "a_equals takes 2 arguments, not 3,"),
    ("CASEI(a, b) = 'x'", 0, "casei takes 1 arguments, not 2,"),
    ("ehInside(g, POINT(1 2))", 12, "ehInside takes areas, not a Point,"),
    ("a AND ehMeet(LINESTRING(0 0,1 1), g)", 13, "ehMeet takes areas, not a LineString,"),
    ("ehCovers(g, MULTIPOINT((0 0),(1 1)))", 12, "ehCovers takes areas, not a MultiPoint,"),
    (
        "ehCovers(g, GEOMETRYCOLLECTION(POINT(0 0),POLYGON((0 0,1 0,1 1,0 0))))",
        12,
        "ehCovers takes areas, not a GeometryCollection,",
    ),
    ("ehMeet(g, BBOX(1,1,1,5))", 15, "ehMeet takes areas, not a LineString,"),
    (
        "S_WITHIN(g, POLYGON((0 0,2 2,2 0,0 2,0 0)))",
        12,
        "invalid Polygon: self-intersection at (1, 1)",
    ),
    ("S_WITHIN(g, LINESTRING(2 3,2 3))", 12, "invalid LineString: too few points in geometry"),
    ("S_WITHIN(g, POINT EMPTY)", 12, "empty geometry POINT"),
    ("S_WITHIN(g, POLYGON Z EMPTY)", 12, "empty geometry POLYGON"),
    ("S_WITHIN(g, GEOMETRYCOLLECTION(POINT EMPTY))", 12, "empty geometry GEOMETRYCOLLECTION"),
    ("S_WITHIN(g, POINT(nan 1))", 12, "non-finite coordinate (nan, 1.0) at vertex 0"),
    ("S_WITHIN(g, LINESTRING(0 0,1 1e999))", 12, "non-finite coordinate (1.0, inf) at vertex 1"),
    ("S_WITHIN(g, CIRCULARSTRING(0 0,1 1,2 0))", 12, "curves are not supported"),
    ("S_WITHIN(g, CURVEPOLYGON((0 0,1 0,1 1,0 0)))", 12, "curves are not supported"),
    ("S_WITHIN(g, POINT(1))", 12, "cannot read the geometry: ParseException: Expected number"),
    ("S_WITHIN(g, POINT(a b))", 12, "cannot read the geometry: ParseException: Expected number"),
    ("S_WITHIN(g, POLYGON((0 0,1 1,1 0)))", 12, "cannot read the geometry: IllegalArgument"),
    ("S_WITHIN(g, 5)", 12, "s_within takes a geometry here, not a number,"),
    ("S_WITHIN(g, 'POINT(1 2)')", 12, "s_within takes a geometry here, not a text,"),
    ("S_WITHIN(g, DATE('2021-01-01'))", 17, "s_within takes a geometry here, not a time,"),
    ("S_WITHIN(g, a = 1)", 12, "s_within takes a geometry here, not a boolean,"),
    ("S_WITHIN(g, (1, 2))", 13, "s_within takes a geometry here, not an array,"),
    ("S_WITHIN(1 + 2, g)", 9, "s_within takes a geometry here, not a number,"),
    ("relate(g, h, 'T*F')", 13, "'T*F' is not a DE-9IM pattern: write nine characters of T, F,"),
    ("relate(g, h, 'T*F**F**X')", 13, "'T*F**F**X' is not a DE-9IM pattern"),
    ("relate(g, h, a)", 13, "the pattern of relate must be a literal text,"),
    ("relate(g, h, 5)", 13, "relate takes a text here, not a number,"),
    ("t = DATE('2021-02-30')", 9, "'2021-02-30' is not an ISO 8601 date or timestamp"),
    ("t = TIMESTAMP('soon')", 14, "'soon' is not an ISO 8601 date or timestamp"),
    ("t = TIMESTAMP('9999-12-31T23:59:60Z')", 14, "'9999-12-31T23:59:60Z' is not an ISO 8601"),
    ("t = DATE(a)", 9, "a date must be text,"),
    ("T_AFTER(t, INTERVAL('2021-01-02', 'x'))", 34, "'x' is not an ISO 8601 date or timestamp"),
    ("T_AFTER(t, INTERVAL('2021-01-02'))", 20, "an interval must have two ends"),
    ("T_AFTER(t, INTERVAL('..', 2))", 26, "the end of an interval must be a moment, an"),
    (
        "T_AFTER(t, INTERVAL('2021-01-02', '2021-01-01'))",
        20,
        "the interval ends (2021-01-01T00:00:00Z) before it begins (2021-01-02T00:00:00Z)",
    ),
    ("T_AFTER(t, 5)", 11, "t_after takes a time here, not a number,"),
    ("T_AFTER(t, '2021-01-01')", 11, "t_after takes a time here, not a text,"),
    ("dwithin(g, POINT(0 0), -5)", 24, "the distance must be a number of metres >= 0, not -5,"),
    ("dwithin(g, POINT(0 0), 'x')", 23, "dwithin takes a number here, not a text,"),
    ("dwithin(g, POINT(181 0), 5)", 11, "dwithin reads longitude and latitude; (181.0, 0.0, "),
    ("dwithin(LINESTRING(0 0,0 91), g, 5)", 8, "dwithin reads longitude and latitude; (0.0, 0.0,"),
    ("S_WITHIN(g, BBOX(1,2,3))", 17, "a BBOX must have four or six numbers,"),
    ("S_WITHIN(g, BBOX(1,2,3,4,5))", 17, "a BBOX must have four or six numbers,"),
    ("S_WITHIN(g, BBOX(1,a,3,4))", 19, "a BBOX must have four or six numbers,"),
    ("S_WITHIN(g, BBOX(1,2,'3',4))", 21, "a BBOX must have four or six numbers,"),
    ("S_WITHIN(g, BBOX(0,5,1,4))", 17, "the south of the BBOX (5) is greater than its north (4)"),
    ("S_WITHIN(g, BBOX(9,5,1,4))", 17, "the south of the BBOX (5) is greater than its north (4)"),
    ("S_WITHIN(g, BBOX(500,0,100,4))", 17, "a BBOX from 500 to 100 does not cross the 180°"),
    ("a = 1e999", 4, "the number is out of range"),
    ("a = -1e999", 5, "the number is out of range"),
    ("a = " + "9" * 400, 4, "the number is out of range"),
    ("a = " + "9" * 9000, 4, "the number is out of range"),
    ("dwithin(g, h, 1e400)", 14, "the number is out of range"),
    ("a LIKE 5", 7, "like takes a text here, not a number,"),
    ("TRUE AND 5 LIKE 'x'", 9, "like takes a text here, not a number,"),
    ("a + 'x' = 1", 4, "+ takes a number here, not a text,"),
    ("CASEI(5) = 'x'", 6, "casei takes a text here, not a number,"),
    ("a IN (1, POINT(1 2))", 6, "an array cannot hold a geometry,"),
    ("A_EQUALS(a, POINT(1 2))", 12, "an array cannot hold a geometry,"),
    ("NOT 'x'", 4, "not takes a boolean here, not a text,"),
    ("a AND 5", 6, "a test is expected here, not a number,"),
    ("a OR b + 1", 5, "a test is expected here, not a number,"),
    ("'x'", 0, "a test is expected here, not a text,"),
    ("a + 1", 0, "a test is expected here, not a number,"),
    ("POINT(1 2)", 0, "a test is expected here, not a geometry,"),
    ("DATE('2021-01-01')", 5, "a test is expected here, not a time,"),
    ('"" = 1', 0, "'' is not a name"),
]


@pytest.mark.parametrize(("text", "position", "what"), MEANING)
def test_an_error_of_meaning_has_its_character(text: str, position: int, what: str) -> None:
    message = refusal(text)
    assert message.startswith(what)
    assert message.endswith(f' at character {position}, near "{text[position : position + 24]}"')


def test_a_geometry_without_end_has_its_character() -> None:
    assert refusal("S_WITHIN(g, POLYGON((0 0,1 1") == (
        'the geometry that starts at character 12 is not closed, near "POLYGON((0 0,1 1"'
    )


# JSON

SHAPES = [
    ({}, "$", "{} is not a CQL2 expression"),
    ({"op": "="}, "$", "= takes 2 arguments, not 0,"),
    ({"op": "=", "args": {}}, "$", "the args of = must be a list"),
    ({"op": "=", "args": None}, "$", "the args of = must be a list"),
    ({"function": {"name": "x"}}, "$", "{'function': {'name': 'x'}} is not a CQL2 expression"),
    ({"property": 5}, "$.property", "5 is not a name"),
    ({"property": ""}, "$.property", "'' is not a name"),
    (op(5), "$.op", "5 is not a name"),
    (op(""), "$.op", "'' is not a name"),
    (op("foo", 1), "$.op", 'unknown function "foo"; known: covers, '),
    (op("and"), "$", "and takes at least one argument, not 0,"),
    (
        op("or", True, op("and", True, "x")),
        "$.args[1].args[1]",
        "a test is expected here, not a text,",
    ),
    (op("or", True, op("=", G, op("foo"))), "$.args[1].args[1].op", 'unknown function "foo"'),
    (op("not"), "$", "not takes 1 arguments, not 0,"),
    (op("not", 5), "$.args[0]", "not takes a boolean here, not a number,"),
    (op("between", G, 1), "$", "between takes 3 arguments, not 2,"),
    (op("+", G, 1), "$", "a test is expected here, not a number,"),
    (op("=", {"property": ["a"]}, 1), "$.args[0].property", "['a'] is not a name"),
    (op("=", {"foo": 1}, 1), "$.args[0]", "{'foo': 1} is not a CQL2 expression"),
    (op("=", G, {1, 2}), "$.args[1]", "{1, 2} is not a CQL2 expression"),
    (op("=", G, b"x"), "$.args[1]", "b'x' is not a CQL2 expression"),
    (op("=", G, float("nan")), "$.args[1]", "the number is out of range"),
    (op("=", G, float("-inf")), "$.args[1]", "the number is out of range"),
    (op("=", G, 10**400), "$.args[1]", "the number is out of range"),
    (op("=", G, [1, [10**5000]]), "$.args[1][1][0]", "the number is out of range"),
    (op("=", G, {"date": 5}), "$.args[1].date", "a date must be text,"),
    (op("=", G, {"date": "x"}), "$.args[1].date", "'x' is not an ISO 8601 date or timestamp"),
    (op("=", G, {"timestamp": None}), "$.args[1].timestamp", "a timestamp must be text,"),
    (op("t_after", G, {"interval": 5}), "$.args[1].interval", "an interval must have two ends"),
    (op("t_after", G, {"interval": [".."]}), "$.args[1].interval", "an interval must have two"),
    (
        op("t_after", G, {"interval": ["..", "x"]}),
        "$.args[1].interval[1]",
        "'x' is not an ISO 8601",
    ),
    (op("t_after", G, {"interval": [5, ".."]}), "$.args[1].interval[0]", "the end of an"),
    (
        op("t_after", G, {"interval": ["2021-01-02", "2021-01-01"]}),
        "$.args[1]",
        "the interval ends (2021-01-01T00:00:00Z) before it begins (2021-01-02T00:00:00Z)",
    ),
    (op("t_after", G, "2021-01-01"), "$.args[1]", "t_after takes a time here, not a text,"),
    (op("s_within", G, 5), "$.args[1]", "s_within takes a geometry here, not a number,"),
    (op("s_within", G, [1]), "$.args[1]", "s_within takes a geometry here, not an array,"),
    (op("s_within", {"bbox": 5}, G), "$.args[0].bbox", "a BBOX must have four or six numbers,"),
    (op("s_within", {"bbox": [1, 2]}, G), "$.args[0].bbox", "a BBOX must have"),
    (
        op("s_within", G, {"bbox": [1, 2, "x", 4]}),
        "$.args[1].bbox[2]",
        "a BBOX must have",
    ),
    (
        op("s_within", G, {"bbox": [1, 2, True, 4]}),
        "$.args[1].bbox[2]",
        "a BBOX must have",
    ),
    (
        op("s_within", G, {"bbox": [1, 2, G, 4]}),
        "$.args[1].bbox[2]",
        "a BBOX must have",
    ),
    (op("s_within", G, {"bbox": [1, 2, 10**400, 4]}), "$.args[1].bbox[2]", "the number is out of"),
    (
        op("s_within", G, {"bbox": [1, 2, 3, 1]}),
        "$.args[1].bbox",
        "the south of the BBOX (2) is greater",
    ),
    (op("s_within", G, {"type": "Point"}), "$.args[1]", "cannot read the GeoJSON geometry: "),
    (op("s_within", G, {"type": "Blob"}), "$.args[1]", "not a geometry"),
    (op("s_within", G, {"type": ["Point"]}), "$.args[1]", "not a geometry"),
    (op("s_within", G, {**POINT, "coordinates": []}), "$.args[1]", "empty geometry POINT"),
    (
        op("s_within", G, {**POINT, "coordinates": [float("nan"), 1]}),
        "$.args[1]",
        "cannot read the",
    ),
    (op("s_within", G, BOW_TIE), "$.args[1]", "invalid Polygon: self-intersection at (1, 1)"),
    (op("ehMeet", POINT, G), "$.args[0]", "ehMeet takes areas, not a Point,"),
    (op("relate", G, G, "T"), "$.args[2]", "'T' is not a DE-9IM pattern"),
    (op("relate", G, G, G), "$.args[2]", "the pattern of relate must be a literal text,"),
    (op("relate", G, G, None), "$.args[2]", "the pattern of relate must be a literal text,"),
    (
        op("dwithin", G, G, -0.5),
        "$.args[2]",
        "the distance must be a number of metres >= 0, not -0.5",
    ),
    (
        op("dwithin", G, G, None),
        "$.args[2]",
        "the distance must be a number of metres >= 0, not None",
    ),
    (op("dwithin", G, G, True), "$.args[2]", "dwithin takes a number here, not a boolean,"),
    (
        op("dwithin", {**POINT, "coordinates": [0, -91]}, G, 1),
        "$.args[0]",
        "dwithin reads longitude and latitude; (0.0, -91.0, 0.0, -91.0) is outside",
    ),
    (op("in", G, 5), "$.args[1]", "in takes an array here, not a number,"),
    (op("in", G, G), "$.args[1]", "IN takes a list,"),
    (op("in", G, [1, POINT]), "$.args[1]", "an array cannot hold a geometry,"),
    (op("a_equals", G, "x"), "$.args[1]", "a_equals takes an array here, not a text,"),
    (op("like", G, 5), "$.args[1]", "like takes a text here, not a number,"),
    (op("casei", G, G), "$", "casei takes 1 arguments, not 2,"),
]


@pytest.mark.parametrize(("tree", "path", "what"), SHAPES)
def test_an_error_in_json_has_its_path(tree: Any, path: str, what: str) -> None:
    message = refusal(tree)
    assert message.startswith(what)
    assert message.endswith(f" at {path}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes at character 1"),
        ('{"op": "="', "not JSON: Expecting ',' delimiter at character 10"),
        ('{"op": =}', "not JSON: Expecting value at character 7"),
        ('{"op": "=", "args": [1, 1e999]}', "the number is out of range at $.args[1]"),
        ('{"op": "=", "args": [1, NaN]}', "the number is out of range at $.args[1]"),
        ('{"op": "=", "args": [-Infinity, 1]}', "the number is out of range at $.args[0]"),
        ('{"op": "=", "args": [1, ' + "9" * 9000 + "]}", "the number is out of range at $.args[1]"),
    ],
)
def test_json_as_text_has_a_character_or_a_path(text: str, message: str) -> None:
    assert refusal(text) == message


@pytest.mark.parametrize("source", [None, 5, [], "[1]", "5", '"a = 1"', b"a = 1"])
def test_json_must_be_an_object(source: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^a predicate must be CQL2 text or a JSON object"):
        read_json(source)


# Depth


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("(" * 10_000 + "a = 1" + ")" * 10_000, NESTING_MAX),
        ("NOT " * 10_000 + "a = 1", 4 * NESTING_MAX),
        ("-" * 10_000 + "a = 1", NESTING_MAX),
        ("a = 1 AND NOT NOT" + "(" * 10_000, 17 + NESTING_MAX - 2),
        ("a" + " = a" * 10_000, 2 + 4 * NESTING_MAX),
        ("a" + " + a" * 10_000 + " = 1", 2 + 4 * NESTING_MAX),
        ("a BETWEEN 1 AND " * 10_000, None),
        ("CASEI(" * 10_000 + "a" + ")" * 10_000, 5 + 6 * NESTING_MAX),
        ("[" * 10_000, NESTING_MAX),
        ("f(a, " * 10_000, None),
    ],
)
def test_a_text_too_deep_is_refused_before_it_is_parsed(text: str, position: int | None) -> None:
    message = refusal(text)
    assert message.startswith(
        f"more than {NESTING_MAX} open parentheses and operators (PREDICATE_NESTING_MAX) at char"
    )
    if position is not None:
        assert message.endswith(f" {position}")


def test_a_geometry_nested_too_deep_is_refused() -> None:
    deep = "GEOMETRYCOLLECTION(" * 10_000 + "POINT(1 2)" + ")" * 10_000
    position = 12 + 19 * DEPTH_MAX + 18
    assert (
        refusal(f"S_WITHIN(g, {deep})")
        == f"nested more than {DEPTH_MAX} levels deep (PREDICATE_DEPTH_MAX) at character {position}"
    )


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_too_many_junctions_are_refused(word: str) -> None:
    most = f" {word} ".join(["a"] * (JOINS_MAX + 1))
    assert truth(read(most), Event({"a": True})) is True
    assert refusal(f"{most} {word} a") == (
        f"more than {JOINS_MAX} ANDs and ORs (PREDICATE_JOINS_MAX) at character {len(most) + 1}"
    )


def test_junctions_end_the_operators_before_them() -> None:
    many = " OR ".join(f"NOT a - 1 >= -{i}" for i in range(500))
    assert truth(read(many), Event({"a": 0})) is True
    listed = f"a IN ({', '.join(f'-{i}' for i in range(2_000))})"
    assert truth(read(listed), Event({"a": -1999})) is True


@pytest.mark.parametrize("source", [str, json.loads])
def test_json_too_deep_is_refused(source: Any) -> None:
    deep = '{"op":"not","args":[' * 150 + "true" + "]}" * 150
    message = refusal(source(deep))
    assert (
        message
        == f"nested more than {DEPTH_MAX} levels deep (PREDICATE_DEPTH_MAX) at $"
        + ".args[0]" * (DEPTH_MAX + 1)
    )
    assert (
        refusal('{"op":"not","args":[' * 10_000)
        == f"nested more than {DEPTH_MAX} levels deep (PREDICATE_DEPTH_MAX) at $"
    )
    array = "[" * 10_000 + "]" * 10_000
    assert refusal('{"op":"a_equals","args":[[],' + array + "]}") == (
        f"nested more than {DEPTH_MAX} levels deep (PREDICATE_DEPTH_MAX) at $"
    )


@pytest.mark.parametrize("names", [["not"], ["and", "or"], ["or", "not", "and"], ["="], ["isNull"]])
def test_a_predicate_as_deep_as_allowed_works_throughout(names: list[str]) -> None:
    tree: Any = {"property": "a"}
    for level in range(DEPTH_MAX):
        name = names[level % len(names)]
        tree = op(name, tree) if name in {"not", "isNull"} else op(name, {"property": "b"}, tree)
    expression = read(tree)
    assert read(to_text(expression)) == expression
    assert truth(expression, Event({"a": True, "b": None})) in {True, False, None}
    assert hash(expression) == hash(read(tree))


def test_a_hostile_text_does_not_take_the_process_with_it() -> None:
    """Against the limits of our own, in a process of its own with the usual stack."""
    program = f"""
from contrada.language import read
depth, joins = {NESTING_MAX}, {JOINS_MAX}
for text in (
    "(" * depth + "a" + ")" * depth,
    "NOT " * depth + "a",
    "-" * depth + "a = 1",
    "NOT(" * (depth // 2) + "a" + ")" * (depth // 2),
    "-(" * (depth // 2) + "a" + ")" * (depth // 2) + " = 1",
    "a IN (" * (depth // 2) + "a" + ")" * (depth // 2),
    " AND ".join(["NOT " * (depth - 1) + "a"] * 50),
    " OR ".join(["a"] * joins),
):
    try:
        read(text)
    except ValueError:
        pass
print("alive")
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "alive\n"


@pytest.mark.parametrize(
    ("text", "position"),
    [("IN (TRUE, FALSE)", 0), ("p AND IN(q)", 6), ("NOT IN (1)", 4), ("x = (not  in (1))", 10)],
)
def test_a_list_without_a_value_is_refused(text: str, position: int) -> None:
    assert refusal(text) == f"no value before IN at character {position}"


@pytest.mark.parametrize(("text", "position"), [("n = 1e5.", 7), ("n = 1.0.", 7), ("n = 1..", 6)])
def test_a_point_after_a_number_is_refused(text: str, position: int) -> None:
    assert refusal(text) == f'syntax error at character {position}, near "."'


@pytest.mark.parametrize("call", ["DATE", "TIMESTAMP", "date", "Timestamp  "])
def test_a_moment_of_two_arguments_is_refused(call: str) -> None:
    text = f"t IN ({call}('2021-01-01' , '2022-01-01'))"
    position = text.index(",")
    assert refusal(text) == f"{call.strip().upper()} takes 1 argument at character {position}"
    assert read(f"t IN ({call}('2021-01-01'), {call}('2022-01-01'))")
