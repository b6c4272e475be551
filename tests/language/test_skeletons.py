"""Skeletons have the words of `tokens.py`, and leave out what they do not know for certain."""

import re
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contrada.errors import InvalidInput
from contrada.language.skeletons import LiteralKind, Skeleton, group_by_skeleton
from contrada.language.tokens import mask
from fuzz import texts
from fuzz.mutations import spoil_text
from fuzz.predicates import Maker

KINDS = {"number": LiteralKind.NUMBER, "string": LiteralKind.TEXT, "geometry": LiteralKind.GEOMETRY}
PIECES = st.sampled_from(
    [
        *("a", "x1", "é", "_", "²", "point", "POINT", "polygon", "multipolygon", "curve", "empty"),
        *("(1 2)", "((0 0,1 0,1 1,0 0))", "(((((1 2)))))", "(nan 1)", "(", ")", "z", "zm", "M"),
        *("1", "12.5", ".5", "5.", "1e5", "1e", "e5", "-", "+", ".", ":", ",", "٣", "9" * 40),
        *("'", "''", "'a'", "'it''s'", '"', '"a"', '""', '"1""2"', " ", "\n", "\t ", "\u00a0"),
        *("bbox", "BBOX(1,2,-3.5,4)", "bbox\u00a0( 1e-5 ,2, 3,.5\n)", "BBOX(1,2,3)", "BBOX("),
        *("AND", "and", "OR", "LIKE", "between", "=", "<", "--", "/*", "\x00", "ſ", "İ", "\ud800"),
    ]
)


def find_skeleton(text: str) -> tuple[Skeleton, list[str]] | None:
    """The skeleton of one text with the spellings of its literals."""
    found = list(group_by_skeleton([text], [0]))
    assert len(found) < 2
    return (found[0].skeleton, [spelt for (spelt,) in found[0].literals]) if found else None


def spellings(text: str) -> list[tuple[LiteralKind, str]] | None:
    """The literals of a text as `tokens.py` finds them; None where it refuses the text."""
    try:
        atoms = mask(text).atoms
    except InvalidInput:
        return None
    return [
        (KINDS[atom.kind], "'" + atom.text.replace("'", "''") + "'")
        if atom.kind == "string"
        else (KINDS[atom.kind], atom.text)
        for atom in atoms
        if atom.kind in KINDS
    ]


def check_agreement(text: str) -> None:
    found, expected = find_skeleton(text), spellings(text)
    if found is None:
        return
    skeleton, literals = found
    assert "".join(map("".join, zip(skeleton.runs, [*literals, ""], strict=True))) == text
    if expected is not None:
        kinds = [
            LiteralKind.TEXT if kind is LiteralKind.MOMENT else kind for kind in skeleton.kinds
        ]
        found_pairs = zip(kinds, literals, strict=True)
        assert [own for kind, spelt in found_pairs for own in opened(kind, spelt)] == expected


def opened(kind: LiteralKind, spelt: str) -> list[tuple[LiteralKind, str]]:
    """A literal, or the four numbers of a box: the parser sees these."""
    if not spelt.lower().startswith("bbox"):
        return [(kind, spelt)]
    return [
        (LiteralKind.NUMBER, number) for number in re.findall(r"[^\s(),-]+(?:-\d+)?", spelt[4:])
    ]


@given(st.lists(PIECES, max_size=8).map("".join))
@example("'a''b")
@example("a = 1.5.5 AND b = 1..5")
@example("point empty'x' AND a > 5")
def test_a_skeleton_has_the_literals_that_the_parser_would_see(text: str) -> None:
    check_agreement(text)


@given(st.integers(0, 2**32))
def test_a_skeleton_of_a_random_or_spoilt_predicate_has_the_literals_of_the_parser(
    seed: int,
) -> None:
    random = Random(seed)
    tree = Maker(random).predicate(4)
    if texts.can_be_written(tree):
        text = texts.write(tree, random)
        check_agreement(text)
        check_agreement(spoil_text(text, random))


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("speed > 12.5", ["12.5"]),
        ("x1 = 5 AND x.2 < .5e-3", ["5", ".5e-3"]),
        ("name = 'it''s 5'", ["'it''s 5'"]),
        ("name = 'POINT(1 2)'", ["'POINT(1 2)'"]),
        ('"7 \'of\' ""9""" = 5.', ["5."]),
        ("point = 5 AND \"polygon\" = 'a'", ["5", "'a'"]),
        ("S_WITHIN(Point Z (1 2 3), g)", ["Point Z (1 2 3)"]),
        ("f(MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0))))", ["MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))"]),
        ("xpoint(1)", ["1"]),
    ],
)
def test_literals_are_found_where_they_stand(text: str, literals: list[str]) -> None:
    found = find_skeleton(text)
    assert found is not None
    assert found[1] == literals


@pytest.mark.parametrize(
    "text",
    [
        *("", "a = b", "TRUE", "a = 'open", '"a = 5', "S_WITHIN(g, POINT EMPTY)"),
        *(
            "S_WITHIN(g, POINT((1 2)",
            "S_WITHIN(g, POINT(((((1 2))))))",
            "S_WITHIN(g, POINT(nan 1))",
        ),
        *("S_WITHIN(g, CURVEPOLYGON((0 0, 1 0, 1 1, 0 0)))", "f(GEOMETRYCOLLECTION(POINT(1 2)))"),
        "S_WITHIN(g, MULTIPOINT((1 2), EMPTY))",
    ],
)
def test_a_text_without_literals_or_with_an_odd_one_has_no_skeleton(text: str) -> None:
    assert find_skeleton(text) is None


def test_texts_are_together_where_they_differ_in_literals_only() -> None:
    rows = ["a > 1", "a > 2.5", "a >  1", "A > 1", "a > 'x'", "a > 1)", "a > 1)2", "a > 'y'"]
    found = {tuple(group.rows): group for group in group_by_skeleton(rows, range(len(rows)))}
    assert set(found) == {(0, 1), (2,), (3,), (4, 7), (5,), (6,)}
    assert found[0, 1].literals == (("1", "2.5"),)
    assert found[0, 1].skeleton == Skeleton(("a > ", ""), (LiteralKind.NUMBER,))


@pytest.mark.parametrize(
    "text",
    [
        *("a > 5", "-5 < a", "a > - 5", "a BETWEEN -1 AND -.5", "(a = 'x') and b LIKE 'y%'"),
        *("S_WITHIN(g, POINT(1 2))", "ehInside(POINT(1 2), g)", "DWithin(g, POINT(1 2), 5)"),
        *('"not" = 5 AND "a(" = 6', "android = 5", "date = 5 AND bbox = 6", "order > 1"),
        *("a > 5 OR b > 5", "NOT a > 5", "a NOT LIKE 'x'", "a IS NULL AND NOT (b = -5)"),
        *("a IN (1, -2)", "a NOT IN ('x', DATE('2020-01-01'))"),
        *("a = DATE('2020-01-01')", "a = TIMESTAMP ( 'x' )", "T_AFTER(a, DATE('2020-01-01'))"),
    ],
)
def test_a_skeleton_of_tests_joined_by_and_or_and_not_is_plain(text: str) -> None:
    found = find_skeleton(text)
    assert found is not None
    assert found[0].is_plain()


@pytest.mark.parametrize(
    "text",
    [
        *("a IN (1, TRUE)", "a IN (1, b + 2)", "a = TRUE OR b = 5"),
        *("a > --5", "a > - -5", "a > -(5)", "a > +5", "a > 5 - 3", "a > 5 -3", "a * 2 = 5"),
        *("a = DATE(5)", "a = TIMESTAMP('x', 'y')", "S_WITHIN(g, BBOX(1, 2, 3, x))"),
        *("casei(a) = 'x'", "a = casei('X')", "a = \"casei\"('X')", "a LIKE accenti('X')"),
        *("relate(g, POINT(1 2), 'T********')", "(a > 5) = TRUE", "a = 5 AND FALSE", "a div 2 = 5"),
        *("A_EQUALS(a, (1, 2))", "T_AFTER(a, INTERVAL('..', '..'))", "f(a, 5)", '{"op": 5}'),
    ],
)
def test_a_skeleton_with_anything_else_is_not_plain(text: str) -> None:
    found = find_skeleton(text)
    assert found is not None
    assert not found[0].is_plain()
