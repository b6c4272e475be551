"""Texts read by template mean what they mean alone, to the tree and the filters."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput
from contrada.language import templates, to_text
from contrada.language.forms import ConstraintForm, Slot
from contrada.language.operand_columns import NumberColumn
from contrada.language.skeletons import LiteralKind
from contrada.language.templates import TemplatedTexts, read_by_template
from contrada.language.tokens import mask
from contrada.limits import LIKE_PATTERN_LENGTH_MAX, PREDICATE_LENGTH_MAX
from contrada.matching.engines import make_engine
from contrada.matching.subscribing import PredicateReader
from contrada.model.expression import Attribute, Expression, Literal, children
from contrada.model.instant import parse_instant
from contrada.model.relation import RELATIONS
from contrada.model.subscription import Predicate
from fuzz import texts as writing
from fuzz.mutations import spoil_text
from fuzz.predicates import Maker

NUMBERS = [
    *("0", "0.0", "5", "5.", "007", ".5", "1e5", "1E-3", "12.75", "٣", "1e-400", "2", "3.5"),
    *(str(2**53 + 1), str(2**63 - 1), str(2**63), "9" * 40, "1e400", "0" * 30 + "1"),
]
STRINGS = [
    *("''", "'a'", "'it''s'", "''''", "'POINT(1 2)'", "'12'", "'%a\\_'", "'2020-01-01'", "'É'"),
    *("'\ud800'", f"'{'x' * LIKE_PATTERN_LENGTH_MAX}'", f"'{'x' * LIKE_PATTERN_LENGTH_MAX}y'"),
]
AREAS = [
    *("POLYGON((0 0, 2 0, 2 2, 0 0))", "polygon ((0 0,9 0,9 9,0 9,0 0),(1 1,1 2,2 2,1 1))"),
    "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
]
OTHER_SHAPES = [
    *("POINT(1 2)", "Point Z (1 2 3)", "LINESTRING(0 0, 1e1 -1)", "MULTIPOINT((1 1), (2 2))"),
    *("MULTIPOINT(1 1, 2 2)", "POINT(200 1)", "POINT(1 -91)"),
]
BAD_SHAPES = [
    *("POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))", "POLYGON((0 0, 1 1))", "POINT(1)", "POINT(1e400 2)"),
    *("POINT EMPTY", "POINT(nan 1)", "LINESTRING(1 1, 1 1)", "POINT()", "MULTIPOINT()"),
    *("CURVEPOLYGON((0 0, 1 0, 1 1, 0 0))", "CIRCULARSTRING(0 0, 1 1, 2 0)", "POINT(1 2", "POINT"),
]
SHAPES = [*AREAS, *AREAS, *OTHER_SHAPES, *BAD_SHAPES, "GEOMETRYCOLLECTION(POINT(1 2))"]
DAY = "2020-01-01"
DAYS = [
    *("'2020-01-01'", "'2020-01-02'", "'2021-06-01T12:00:00Z'", "'2021-06-01T12:00:00.000000001Z'"),
    *("'1970-01-01'", "'1600-01-01'", "'9999-12-31'", "'2020-02-30'", "'2020-01-01 01:00+02:00'"),
]
SPELLINGS = {"number": NUMBERS, "string": STRINGS, "geometry": SHAPES}
FORMS = [
    *("{a} {c} {n}", "{a} {c} -{n}", "{n} {c} {a}", "- {n} {c} {a}", "{a} {c} {s}", "{s} {c} {a}"),
    *("{a} BETWEEN {n} AND {n}", "{a} between -{n} and -{n}", "{a} LIKE {s}", "({a} LIKE {s})"),
    *("{r}({a}, {g})", "{r}({g}, {a})", "dwithin({a}, {g}, {n})", "dwithin( {g}, {a},-{n})"),
    *("{a} > {n} AND {a} <= {n}", "{n} >= {a} AND ({n} < {a})", "{a} > {n} AND {a} > {n}"),
    *("{a} BETWEEN {s} AND {s}", "{a} > {s} AND {a} < {s}", "{a} > {n} AND {a} < {s}"),
    *("{a} {c} DATE({d})", "TIMESTAMP({d}) {c} {a}", "{a} >= DATE({d}) AND {a} < DATE({d})"),
    *("{a} IN ({n}, {n}, {s})", "{a} NOT IN ({s})", "{a} IN ({s}, DATE({d}), DATE({d}))"),
    *("{r}({a}, BBOX({n}, -{n}, {n}, {n}))", "{r}(bbox( {n},0,{n} ,{n}), {a})"),
    *("{a} BETWEEN DATE({d}) AND TIMESTAMP({d})", "{t}({a}, DATE({d}))", "{t}(DATE({d}), {a})"),
]
OTHER_FORMS = [
    *("{a} IN ({n}, b)", "NOT {a} = {n}", "{a} IS NOT NULL", "{r}({a}, BBOX(0, 0, {n}, {n}))"),
    *("{a} = DATE('2020-01-01')", "casei({a}) = {s}", "{a} = casei({s})", "{a} > {n} + {n}"),
    *("relate({a}, {g}, 'T********')", "{n} < {n}", "{r}({g}, {g})", "{a} = {a}", "{a} = TRUE"),
    *("{a} > --{n}", "{a} = ({n}, {n})", "{a} > {n} = TRUE", "({a} > {n}) = TRUE", "{a} {n}"),
]
NAMES = ["a", "x1", '"b ""c"" 5"', "point", '"polygon"', "x.y", "d_e", "date", "geometry"]


def make_reader() -> PredicateReader:
    return PredicateReader(effort=make_engine("strtree", {}).effort)


def read_or_refuse(read: Callable[[str], Predicate], text: str) -> Predicate | None:
    try:
        return read(text)
    except InvalidInput:
        return None


def literals_of(expression: Expression) -> Iterator[object]:
    """The literals of a tree, so that those differ which are equal but not the same."""
    if isinstance(expression, Literal):
        value = expression.value
        shown = shapely.to_wkb(value) if isinstance(value, BaseGeometry) else repr(value)
        yield type(value), shown
    for child in children(expression):
        yield from literals_of(child)


def check(texts: Sequence[str]) -> TemplatedTexts:
    """Read texts by template, and compare each with what it is alone."""
    read = make_reader().parse
    found = read_by_template(texts, read)
    rows = [found.alone, *(group.rows for group in found.groups)]
    assert sorted(np.concatenate(rows).tolist()) == list(range(len(texts)))
    for group in found.groups:
        assert (np.diff(group.rows) > 0).all()
        assert all(len(column) == len(group.rows) for column in group.operands)
        for place, row in enumerate(group.rows.tolist()):
            expected = read_or_refuse(read, texts[row])
            predicate = group.template.predicate(group.values(place))
            assert predicate == expected, texts[row]
            trees = (predicate.expression, expected.expression)
            assert len({tuple(literals_of(tree)) for tree in trees}) == 1, texts[row]
            check_forms(group, place, predicate)
    return found


def check_forms(group: templates.TemplateRows, place: int, predicate: Predicate) -> None:
    """The constraints of a template describe those of a predicate."""
    forms, values = group.template.constraints, group.values(place)
    found = dict.fromkeys(c.test for filter_ in predicate.filters for c in filter_.constraints)
    assert len(found) == len(forms)
    by_parts: dict[tuple[Expression, ...], list[Expression]] = {}
    for test in found:
        by_parts.setdefault(tuple(children(test)), []).append(test)
    for number, form in enumerate(forms):
        literals = (Literal(values[slot]) for slot in form.slots)
        tests = by_parts[Attribute(form.attribute), *literals]
        if "NOT" not in to_text(predicate.expression):
            assert form.operator in [
                getattr(test, "relation", getattr(test, "operator", form.operator))
                for test in tests
            ]
        assert all(group.template.slots[slot].constraint == number for slot in form.slots)
    assert [slot for form in forms for slot in form.slots] == list(range(len(values)))


def fill(form: str, random: Random, name: str) -> str:
    """A text of a form, with random operators, a name, and literals that stay to be filled in."""
    chosen = random.choice(("=", "<>", "<", "<=", ">", ">="))
    relation = random.choice([row.operator for row in RELATIONS.values()])
    test = random.choice(("T_AFTER", "t_before", "T_EQUALS", "T_DURING", "T_DISJOINT"))
    day = f"'{DAY}'"
    return form.format(a=name, c=chosen, r=relation, t=test, n="1", s="'s'", g="POINT(1 1)", d=day)


def respell(text: str, random: Random) -> str:
    """The same text with other literals, found by the parser's own eyes."""
    for atom in reversed(mask(text).atoms):
        if atom.kind in SPELLINGS:
            quotes = 2 + atom.text.count("'") if atom.kind == "string" else 0
            end = atom.position + len(atom.text) + quotes
            is_day = atom.text == DAY and random.random() < 0.9
            choices = DAYS if is_day else SPELLINGS[atom.kind]
            text = text[: atom.position] + random.choice(choices) + text[end:]
    return text


@given(st.integers(0, 2**32))
def test_a_plain_text_is_alone_or_has_the_same_predicate(seed: int) -> None:
    random = Random(seed)
    names = random.sample(NAMES, random.randint(1, 3))
    forms = (fill(random.choice(FORMS), random, name) for name in names)
    text = random.choice((" AND ", "\n and  ")).join(forms)
    check([respell(text, random) for _ in range(12)])


@given(st.integers(0, 2**32))
def test_a_text_of_any_form_is_alone_or_has_the_same_predicate(seed: int) -> None:
    random = Random(seed)
    forms = [
        fill(random.choice(FORMS + OTHER_FORMS), random, random.choice(NAMES))
        for _ in range(random.randint(1, 4))
    ]
    text = random.choice((" AND ", " OR ", " AND NOT ")).join(forms)
    check([respell(text, random) for _ in range(6)])


def join(forms: list[str], random: Random) -> str:
    """A text of AND, OR and NOT over others."""
    if len(forms) == 1:
        return random.choice(("{}", "({})", "NOT {}", "NOT ({})")).format(forms[0])
    middle = random.randint(1, len(forms) - 1)
    parts = join(forms[:middle], random), join(forms[middle:], random)
    return random.choice(("({} AND {})", "({} OR {})", "NOT ({} OR {})")).format(*parts)


@given(st.integers(0, 2**32))
def test_a_text_of_and_or_and_not_is_alone_or_has_the_same_predicate(seed: int) -> None:
    random = Random(seed)
    forms = [*FORMS, "{a} IS NULL", "{a} IS NOT NULL"]
    names = random.sample(NAMES, random.randint(2, 5))
    text = join([fill(random.choice(forms), random, name) for name in names], random)
    check([respell(text, random) for _ in range(12)])


@given(st.integers(0, 2**32))
def test_a_text_with_several_tests_of_an_attribute_is_alone_or_has_the_same_predicate(
    seed: int,
) -> None:
    random = Random(seed)
    compared = ("{a} {c} {n}", "{a} {c} -{n}", "{a} {c} {s}", "{a} {c} DATE({d})", "{a} LIKE {s}")
    forms = [*compared, *compared, "{a} BETWEEN {n} AND {n}", "{a} IS NULL", "{a} IN ({n}, {n})"]
    names = random.choices(NAMES[:2], k=random.randint(2, 5))
    text = join([fill(random.choice(forms), random, name) for name in names], random)
    check([respell(text, random) for _ in range(12)])


@given(st.integers(0, 2**32))
def test_a_random_or_spoilt_text_is_alone_or_has_the_same_predicate(seed: int) -> None:
    random = Random(seed)
    tree = Maker(random).predicate(3)
    if not writing.can_be_written(tree):
        return
    text = writing.write(tree, random)
    for given_text in (text, spoil_text(text, random)):
        texts = [given_text]
        with suppress(InvalidInput):  # of a spoilt one not even the literals may be found
            texts += [respell(given_text, random) for _ in range(4)]
        check(texts)


def two(form: str, first: str = "1", second: str = "2") -> list[str]:
    return [form.replace("#", first), form.replace("#", second)]


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (two("a > #"), (2,)),
        (two("a > #", "1", "5."), (5.0,)),
        (two("a > #", ".5", "1e5"), (1e5,)),
        (two("a > -#"), (-2,)),
        (two("a > -#", "1", "0"), (0,)),
        (two("a > -#", "1", "0.0"), (-0.0,)),
        (two("a>-  #", "1", ".5"), (-0.5,)),
        (two("-# < a"), (-2,)),
        (two("(a) = (#)"), (2,)),
        (two("a > #", "1", "٣"), (3,)),
        (two("a > #", "1", str(2**63 - 1)), (2**63 - 1,)),
        (two("a > #", "1", str(2**53 + 1)), (2**53 + 1,)),
        (two("a = '#'"), ("2",)),
        (two("a = '#'", "1", "it''s 5 AND POINT(1 2)"), ("it's 5 AND POINT(1 2)",)),
        (two("a = '#'", "1", "DATE(''2020-01-01'')"), ("DATE('2020-01-01')",)),
        (two("a = '#'", "1", ""), ("",)),
        (two("'#' <> a"), ("2",)),
        (two("a LIKE '#%'"), ("2%",)),
        (two("a LIKE '#'", "1", "x" * LIKE_PATTERN_LENGTH_MAX), ("x" * LIKE_PATTERN_LENGTH_MAX,)),
        (two("a BETWEEN # AND 7.5"), (2, 7.5)),
        (two("a BETWEEN -7 AND -#"), (-7, -2)),
        (two(f"a BETWEEN {2**62} AND #", *map(str, (2**63 - 1, 2**62 + 1))), (2**62, 2**62 + 1)),
        (two("a >= # AND a < 3"), (2, 3)),
        (two("3 > a AND # <= a"), (3, 2)),
        (two('x1 = # AND "5 \'of\' ""6""" = 7'), (2, 7)),
        (two("point = # AND \"polygon\" = 'x' AND date < 3"), (2, "x", 3)),
        (two("\n  a\t>\u00a0# ", "1", "2"), None),
        (two("S_WITHIN(geometry, POINT(# 4))"), (shapely.Point(2, 4),)),
        (two("S_WITHIN(POINT Z (# 4 5), geometry)"), (shapely.Point(2, 4),)),
        (two("ehInside(g, POLYGON((0 0, # 0, # 5, 0 0)))"), None),
        (two("dwithin(g, POINT(# 4), 1e3)"), (shapely.Point(2, 4), 1000.0)),
        (two("dwithin(POINT(# 4), g, -0.0)"), (shapely.Point(2, 4), -0.0)),
        (two("a = DATE('2020-01-0#')"), (parse_instant("2020-01-02"),)),
        (
            two("a > timestamp ( '2020-01-0#T12:00:00.5Z' ) AND b = 1"),
            (parse_instant("2020-01-02T12:00:00.5Z"), 1),
        ),
        (two("DATE('2020-01-0#') <= a AND a < DATE('2020-02-01')"), None),
        (two("a BETWEEN DATE('2020-01-0#') AND TIMESTAMP('2020-01-05T00:00:00Z')"), None),
        (two("T_AFTER(a, DATE('2020-01-0#')) OR NOT T_BEFORE(b, DATE('2020-01-0#'))"), None),
        (two("a > # OR b > 5"), (2, 5)),
        (two("NOT a > #"), (2,)),
        (two("a IN (#, 7.5, -1, 'x', DATE('2020-01-01'), '#')"), None),
        (two("a NOT IN ('#', 'x') OR b IN (3)"), ("2", "x", 3)),
        (two("a NOT LIKE '#'"), ("2",)),
        (two("NOT S_WITHIN(g, POINT(# 4)) OR NOT s LIKE 'x#'"), (shapely.Point(2, 4), "x2")),
        (two("S_INTERSECTS(g, POINT(# 4)) AND (a > -# OR s = 'x')"), None),
        (two("(a BETWEEN # AND 9 AND b = 1) OR (c >= 2 AND c < 3)"), (2, 9, 1, 2, 3)),
        (two("NOT (a = # OR b IS NOT NULL) AND c IS NULL"), (2,)),
        (two("(a = # OR b = 2) AND (c = 3 OR d = 4)"), (2, 2, 3, 4)),
        (two("S_WITHIN(g, BBOX(0, 0, #, 5))"), (shapely.box(0, 0, 2, 5),)),
        (two("s_within(bbox\t( -1.5,-0,\n# , 5e0), g)"), (shapely.box(-1.5, 0, 2, 5),)),
        (two("dwithin(g, (BBOX(-0.0, 0, #, 5)), 7)"), (shapely.box(-0.0, 0, 2, 5), 7)),
        (two("a > # OR a < 5"), (2, 5)),
        (two("a < # OR a > 5"), (2, 5)),
        (two("NOT (a > # AND a < 5)"), (2, 5)),
        (two("NOT (a <= # OR a > 5)"), (2, 5)),
        (two("a NOT BETWEEN # AND 9"), (2, 9)),
        (two("(a > # OR b = 2) AND a < 5"), (2, 2, 5)),
        (two("a = '#' OR a = 'x' OR a = 7"), ("2", "x", 7)),
        (two("a = # OR a > 7 OR a < -1"), (2, 7, -1)),
        (two("a IS NULL OR a < #"), (2,)),
        (two("a LIKE '#%' AND a LIKE '%x' AND a <> 'y' AND NOT a LIKE '%z'"), None),
        (two("NOT (a <> '#' AND a <> 'x')"), ("2", "x")),
    ],
)
def test_a_form_has_a_template_and_its_values_are_exact(
    texts: list[str], values: tuple[object, ...] | None
) -> None:
    found = check(texts)
    assert len(found.groups) == 1
    assert found.alone.tolist() == []
    if values is not None:
        assert [repr(value) for value in found.groups[0].values(1)] == list(map(repr, values))


@pytest.mark.parametrize(
    "form",
    [
        *("a > # OR a > 5", "NOT (a > # OR a > 5)", "a IN (#, b)", "NOT (a = # OR a = 7)"),
        *("(a BETWEEN # AND 5 AND b = 1) OR (a BETWEEN 3 AND 8 AND c = 1)", "a = # OR a > 'x'"),
        *("a > # AND a IS NOT NULL", "a > # AND a IS NULL", "a <> # OR a = 7", "b OR a = #"),
        *("S_WITHIN(g, BBOX(0, 0, 1 + #, 5))", "S_WITHIN(g, BBOX(0, 0, 0, #, 5, 5))"),
        *(
            "S_WITHIN(g, BBOX(0, 0, # 5))",
            "S_WITHIN(g, BBOX(0, 0, x, #))",
            "a = casei('X#')",
            "# < 5",
            "a = DATE(1, '2020-01-0#')",
        ),
        *(
            "a = DATE('2020-01-0#') AND a < 5",
            "a = date(casei('2020-01-0#'))",
            "DATE('2020-01-0#')",
        ),
        *(
            "casei(a) = '#'",
            "a > # + 2",
            "a + 2 > #",
            "a > --#",
            "a > +#",
            "a > -(#)",
            "a = (#, 2)",
        ),
        *("relate(g, POINT(# 1), 'T********')", "a > b AND c = #", "a = TRUE AND b = #", "f(a, #)"),
        *("T_AFTER(t, INTERVAL('200#-01-01', '..'))", "a > # AND a <> 5", "a = # AND a = 5"),
        *("S_WITHIN(g, POINT(# 1)) AND S_WITHIN(g, POINT(1 1))", "a > 'a#' AND a < 'b'"),
        *("S_WITHIN(g, h) AND a = #", "S_WITHIN(POINT(# 1), POINT(1 1))", "a > # AND a < '7'"),
        *("dwithin(g, POINT(1 1), r) AND a = #", "(a > #) = TRUE", "a > # -- a", "a >> #", "#"),
        *('{"op": "=", "args": [{"property": "a"}, #]}', "a BETWEEN '#' AND '3'", "a = #b"),
    ],
)
def test_what_is_more_than_literals_beside_attributes_is_read_alone(form: str) -> None:
    found = check(two(form))
    assert found.groups == []
    assert found.alone.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("form", "good", "faults"),
    [
        ("a > #", "2", ["1e400", "9" * 400, str(2**63), "9" * 40]),
        ("a < -#", "2", ["1e309", str(2**63)]),
        ("a = '#'", "2", ["\ud800"]),
        ("a LIKE '#'", "2", ["x" * (LIKE_PATTERN_LENGTH_MAX + 1)]),
        ("a BETWEEN # AND 4", "2", ["5", "4", "4.0"]),
        ("a = # OR a = 4", "2", ["4", "4.0", "1e400"]),
        ("a = '#' OR a = 'it''s'", "2", ["it''s"]),
        ("a LIKE '#' OR a LIKE 'x%'", "2", ["x%"]),
        ("a = # OR a > 4", "2", ["4", "5", "4.5"]),
        ("a <= # OR a = 4", "2", ["4", "5", "4.0"]),
        ("a = DATE('#') OR a > DATE('2020-01-05')", "2020-01-02", ["2020-01-05", "2021-01-01"]),
        ("S_WITHIN(g, BBOX(2, 0, #, 5))", "3", ["2", "1", "1e400", "9" * 400]),
        ("S_WITHIN(g, BBOX(0, #, 1, 2))", "1", ["2", "3"]),
        ("a BETWEEN -4 AND -#", "2", ["5", "4"]),
        (f"a BETWEEN # AND {2**53}", "2", [f"{2**53}.0", str(2**53 + 1)]),
        ("a > # AND 4 > a", "2", ["5", "4"]),
        ("S_WITHIN(g, #)", "POINT(1 1)", [*BAD_SHAPES, "GEOMETRYCOLLECTION(POINT(1 2))"]),
        ("ehInside(g, #)", AREAS[0], [*BAD_SHAPES, *OTHER_SHAPES]),
        ("dwithin(g, #, 5)", "POINT(1 1)", [*BAD_SHAPES, "POINT(181 0)", "POINT(0 -91)"]),
        ("dwithin(g, POINT(1 1), -#)", "0", ["1", "1e-300"]),
        ("a IN (#, 4, 'x')", "2", ["4", "4.0", "1e400"]),
        ("a IN ('#', 'it''s') AND b = 5", "2", ["it''s", "\ud800"]),
        ("a = DATE('#')", "2020-01-02", ["2020-13-01", "", "x", "1600-01-01", "9999-12-31", "''"]),
        ("a BETWEEN DATE('#') AND DATE('2020-01-05')", "2020-01-02", ["2020-01-05", "2021-01-01"]),
    ],
)
def test_only_the_rows_with_a_fault_are_alone(form: str, good: str, faults: list[str]) -> None:
    for fault in faults:
        texts = [form.replace("#", value) for value in (fault, good, good, fault)]
        found = check(texts)
        assert [group.rows.tolist() for group in found.groups] == [[1, 2]], fault
        assert found.alone.tolist() == [0, 3]


def test_a_text_that_is_too_long_is_alone() -> None:
    long = "a > 3" + " " * PREDICATE_LENGTH_MAX
    assert check(["a > 1", long, long, "a > 2"]).alone.tolist() == [1, 2]


def test_a_text_with_very_many_literals_is_alone() -> None:
    text = " AND ".join(f"a{number} = 5" for number in range(1_000))
    assert check([text, text]).alone.tolist() == [0, 1]


class Counting:
    """Reads texts alone, and counts them."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self._parse = make_reader().parse

    def __call__(self, text: str) -> Predicate:
        self.read.append(text)
        return self._parse(text)


def test_one_text_of_each_skeleton_is_read_alone() -> None:
    forms = ("a > {}", "a = '{}' AND b < 5", "S_WITHIN(g, POINT({} 1))")
    texts = [form.format(number) for number in range(500) for form in forms]
    counting = Counting()
    found = read_by_template(texts, counting)
    assert counting.read == texts[:3]
    assert [group.rows.tolist()[:3] for group in found.groups] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_the_texts_of_a_skeleton_without_a_template_are_not_tried_again_and_again() -> None:
    counting = Counting()
    refused = [f"a > > {number}" for number in range(100)]
    related = [f"a > {number} AND a > 5" for number in range(100)]
    assert len(read_by_template([*refused, *related], counting).alone) == 200
    assert counting.read == [refused[0], refused[50], refused[99], related[0]]


def test_a_skeleton_of_a_single_text_is_not_tried_at_all() -> None:
    counting = Counting()
    found = read_by_template([f"a{number} > 5" for number in range(100)], counting)
    assert len(found.alone) == 100
    assert counting.read == []


def test_values_of_the_first_texts_do_not_spoil_the_others() -> None:
    counting = Counting()
    texts = [f"a BETWEEN {low} AND 5" for low in ("1e999", 1, "9", 2)]
    assert read_by_template(texts, counting).alone.tolist() == [0, 2]
    assert counting.read == [texts[0], texts[2], texts[1]]


def test_a_skeleton_is_given_up_where_its_first_middle_and_last_texts_are_refused() -> None:
    good, bad = "a > 1", "a > 1e999"
    assert read_by_template([bad, good, bad, good, bad], make_reader().parse).groups == []
    found = read_by_template([bad, bad, bad, bad, good], make_reader().parse)
    assert found.alone.tolist() == [0, 1, 2, 3]


def test_a_predicate_that_a_template_does_not_make_has_none() -> None:
    def read_without_filters(text: str) -> Predicate:
        return replace(make_reader().parse(text), filters=())

    def read_in_part(text: str) -> Predicate:
        return make_reader().parse(text.partition(" AND ")[0])

    texts = two("a = # AND b = 'x'")
    for read in (read_without_filters, read_in_part):
        assert read_by_template(texts, read).alone.tolist() == [0, 1]


def test_a_template_remembers_nothing_of_the_text_that_it_came_from() -> None:
    first, second = (check(two(f"S_WITHIN(g, POINT(# {y}))")) for y in (1, 2))
    assert first.groups[0].template == second.groups[0].template


def test_texts_that_differ_in_space_and_sides_have_one_template() -> None:
    texts = ["a > 1", "a  >  2", "a > 3", "4 < a", "a  >  5", "5 < a"]
    (group,) = check(texts).groups
    assert group.rows.tolist() == [0, 1, 2, 3, 4, 5]
    (column,) = group.operands
    assert isinstance(column, NumberColumn)
    assert column.whole.tolist() == [1, 2, 3, 4, 5, 5]


def test_many_texts_are_read_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_CHARACTERS_MAX", 1_000)
    texts = [f"a{number % 4} > {number}" for number in range(200)]
    texts[50:50] = ["a > --5", "a > 1e400", "b = 'only once'"]
    found = check(texts)
    assert found.alone.tolist() == [50, 51, 52]
    assert len(found.groups) == 4


def test_skeletons_that_are_forgotten_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_CHARACTERS_MAX", 2_000)
    monkeypatch.setattr(templates, "_SKELETONS_MAX", 2)
    found = check([f"a{number % 4} > {number}" for number in range(200)])
    assert [len(group.rows) for group in found.groups] == [50] * 4


def test_no_texts_have_no_template() -> None:
    found = check([])
    assert found.groups == []
    assert found.alone.tolist() == []


def test_a_template_describes_its_constraints_and_slots() -> None:
    text = "S_WITHIN(POINT(1 2), g) AND a BETWEEN 1 AND 2 AND dwithin(h, POINT(1 2), 5) AND s = 'x'"
    template = check([text, text]).groups[0].template
    assert template.constraints == (
        ConstraintForm("g", RELATIONS["contains"], (0,)),
        ConstraintForm("a", ">=", (1,)),
        ConstraintForm("a", "<=", (2,)),
        ConstraintForm("h", "dwithin", (3, 4)),
        ConstraintForm("s", "=", (5,)),
    )
    number, text_kind, geometry = LiteralKind.NUMBER, LiteralKind.TEXT, LiteralKind.GEOMETRY
    kinds = (geometry, number, number, geometry, number, text_kind)
    assert template.slots == tuple(map(Slot, kinds, (0, 1, 2, 3, 3, 4)))
    assert template.ascending == ((1, 2),)
    assert template.different == ()


def test_operands_are_columns_by_slot() -> None:
    texts = [f"a > {n} AND S_WITHIN(g, POINT({n} 1)) AND s = '{n}'" for n in ("1", "2.5")]
    (group,) = check(texts).groups
    numbers, shapes, strings = group.operands
    assert isinstance(numbers, NumberColumn)
    assert isinstance(shapes, np.ndarray)
    assert isinstance(strings, np.ndarray)
    assert numbers.whole.tolist() == [1, 0]
    assert numbers.real.tolist() == [1.0, 2.5]
    assert numbers.is_whole.tolist() == [True, False]
    assert strings.tolist() == ["1", "2.5"]
    assert shapes.tolist() == [shapely.Point(1, 1), shapely.Point(2.5, 1)]
    assert not shapely.is_prepared(shapes).any()
