"""Random well-formed predicates: they survive both encodings, and their normal form is the tree."""

import json
from datetime import date
from typing import Any

import cql2
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.language import is_satisfied, make_predicate, read, to_json, to_text, truth
from contrada.language.operators import ARITHMETIC, ARRAY, COMPARISONS, TEMPORAL
from contrada.model.event import Event
from contrada.model.expression import And, Between, Comparison, Not, Or
from contrada.model.relation import RELATIONS, Family

Tree = Any
Trees = st.SearchStrategy[Tree]

OGC = [
    name
    for name, row in RELATIONS.items()
    if row.family is Family.OGC and "cover" not in name.lower()
]
OURS = [name for name in RELATIONS if name not in OGC]
DAYS = ("2021-01-01", "2021-01-02T12:00:00Z", "2021-01-03")
AREAS = [shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3), shapely.box(0, 0, 3, 3)]
SHAPES = [*AREAS, shapely.Point(1, 1), shapely.LineString([(0, 0), (3, 3)])]


def prop(*names: str) -> Trees:
    return st.sampled_from([{"property": name} for name in names])


def op(name: str | Trees, *args: Trees) -> Trees:
    names = st.just(name) if isinstance(name, str) else name
    return st.fixed_dictionaries({"op": names, "args": st.tuples(*args).map(list)})


def geojson(shapes: list[Any]) -> Trees:
    return st.sampled_from([json.loads(shapely.to_geojson(shape)) for shape in shapes])


NUMBERS = st.recursive(
    st.one_of(prop("n", "m", "x.y"), st.integers(-3, 3), st.sampled_from([0.5, 2**53 + 1, 1e300])),
    lambda inner: op(st.sampled_from(ARITHMETIC), inner, inner),
    max_leaves=3,
)
TEXTS = st.recursive(
    st.one_of(prop("s", "odd name"), st.sampled_from(["", "a", "Á", "b'c", "%a_", "\\"])),
    lambda inner: op(st.sampled_from(["casei", "accenti"]), inner),
    max_leaves=2,
)
MOMENTS = st.one_of(prop("t", "u"), st.sampled_from([{"timestamp": day} for day in DAYS]))
ENDS = st.one_of(prop("t", "u"), st.just(".."))
SPANS = st.one_of(
    MOMENTS,
    st.fixed_dictionaries({"interval": st.tuples(ENDS, ENDS).map(list)}),
    st.just({"interval": [DAYS[0], DAYS[2]]}),
)
ELEMENTS = st.one_of(NUMBERS, TEXTS, MOMENTS, st.booleans(), st.none())
ARRAYS = st.one_of(prop("a", "b"), st.lists(ELEMENTS, min_size=1, max_size=3))
GEOMETRIES = st.one_of(prop("g", "h"), geojson(SHAPES))
REGIONS = st.one_of(prop("g", "h"), geojson(AREAS))
VALUES = st.one_of(NUMBERS, TEXTS, MOMENTS, st.booleans(), prop("p", "q", "n", "s"))
LEAVES = st.one_of(
    prop("p", "q"),
    st.booleans(),
    op(st.sampled_from(COMPARISONS), NUMBERS, NUMBERS),
    op(st.sampled_from(COMPARISONS), VALUES, VALUES),
    op("between", NUMBERS, NUMBERS, NUMBERS),
    op("in", VALUES, st.lists(VALUES, max_size=3)),
    op("like", TEXTS, TEXTS),
    op("isNull", st.one_of(VALUES, GEOMETRIES, ARRAYS)),
    op(st.sampled_from(OGC).map("s_{}".format), GEOMETRIES, GEOMETRIES),
    op(st.sampled_from(OURS), REGIONS, REGIONS),
    op("relate", GEOMETRIES, GEOMETRIES, st.sampled_from(["T********", "FF*FF****", "**F**F***"])),
    op("dwithin", GEOMETRIES, GEOMETRIES, st.one_of(prop("n"), st.sampled_from([0, 1e5, 1e300]))),
    op(st.sampled_from(TEMPORAL), SPANS, SPANS),
    op(st.sampled_from(ARRAY), ARRAYS, ARRAYS),
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        op("and", inner, inner),
        op("or", inner, inner, inner),
        op("not", inner),
        op("=", inner, st.booleans()),
        op("<>", st.booleans(), inner),
        op(st.sampled_from(["=", "<>"]), inner, inner),
    ),
    max_leaves=7,
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(
            "nm", st.sampled_from([None, -1, 0, 0.5, 2**53 + 1, float("nan"), "x", True])
        ),
        "x": st.sampled_from([{"y": 1}, {"y": None}, 5]),
        **dict.fromkeys(["s", "odd name"], st.sampled_from([None, "", "a", "á", "ab'c", 1])),
        **dict.fromkeys("tu", st.sampled_from([None, *DAYS, date(2021, 1, 2), [DAYS[0], ".."], 5])),
        **dict.fromkeys(
            "ab", st.sampled_from([None, [], [0, 1], ["a", None], [True, "2021-01-01"]])
        ),
        **dict.fromkeys("gh", st.sampled_from([None, 5, shapely.Point(), *SHAPES])),
        **dict.fromkeys("pq", st.sampled_from([None, True, False, 1])),
    },
)


@given(PREDICATES)
def test_a_predicate_survives_both_encodings(tree: Tree) -> None:
    expression = read({"op": "and", "args": [tree]})
    text, again = to_text(expression), to_json(expression)
    assert read(text) == expression
    assert read({"op": "and", "args": [json.loads(json.dumps(again))]}) == expression
    cql2.parse_text(text)
    cql2.parse_json(json.dumps(again))


@given(PREDICATES, st.lists(EVENTS, min_size=1, max_size=5))
def test_the_normal_form_is_true_where_the_tree_is(
    tree: Tree, events: list[dict[str, Any]]
) -> None:
    expression = read({"op": "and", "args": [tree]})
    predicate = make_predicate(expression)
    for event in map(Event, events):
        value = truth(expression, event)
        assert truth(predicate.expression, event) is value
        satisfied = [
            all(is_satisfied(constraint, event) for constraint in each.constraints)
            for each in predicate.filters
        ]
        assert any(satisfied) is (value is True)


@given(PREDICATES)
def test_the_normal_form_has_no_junctions_and_no_repeats(tree: Tree) -> None:
    predicate = make_predicate(read({"op": "and", "args": [tree]}))
    assert len(set(predicate.filters)) == len(predicate.filters)
    for each in predicate.filters:
        assert len(set(each.constraints)) == len(each.constraints)
        for constraint in each.constraints:
            assert not isinstance(constraint.test, And | Or | Not | Between)
            assert not (constraint.is_negated and isinstance(constraint.test, Comparison))
            assert constraint.attributes(), "what reads no attribute is evaluated at once"


@given(PREDICATES)
def test_a_predicate_in_normal_form_survives_both_encodings(tree: Tree) -> None:
    folded = make_predicate(read({"op": "and", "args": [tree]})).expression
    assert make_predicate(read(to_text(folded))).expression == folded
    again = json.loads(json.dumps(to_json(folded)))
    assert make_predicate(read({"op": "and", "args": [again]})).expression == folded


@given(PREDICATES, EVENTS)
def test_a_test_and_its_negation_are_never_both_true(
    tree: Tree, attributes: dict[str, Any]
) -> None:
    event = Event(attributes)
    value = truth(read({"op": "and", "args": [tree]}), event)
    negated = truth(read({"op": "not", "args": [tree]}), event)
    assert negated is (None if value is None else not value)
