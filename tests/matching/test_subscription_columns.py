"""Subscriptions as columns: what comes out is what went in, taken apart and joined again."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

from contrada.matching.constraint_columns import pack_constraints
from contrada.matching.id_columns import IdColumn, are_repeated, make_id_array
from contrada.matching.subscribing import PredicateReader
from contrada.matching.subscription_columns import join_subscriptions, pack_subscriptions
from contrada.model.expression import Attribute, Comparison, Literal
from contrada.model.expression_parts import (
    OperandType,
    divide,
    fill,
    list_operand_types,
    make_example,
)
from contrada.model.relation import RELATIONS
from contrada.model.subscription import Constraint, Id, Subscription

READER = PredicateReader()
AREA = "POLYGON((0 0, 4 0, 4 4, 0 0))"
TEXTS = (
    "speed > 1",
    "speed > 1.0",
    "speed > -0.0",
    f"speed > {2**70} AND speed < {2**63 - 1}",
    f"S_INTERSECTS(geometry, {AREA})",
    f"S_INTERSECTS(geometry, {AREA}) AND speed > 1",
    f"NOT S_WITHIN(geometry, {AREA}) OR name LIKE 'a%' OR name = 'b'",
    "S_DISJOINT(area, GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(0 0, 5 5)))",
    "dwithin(geometry, POINT(1 2), 500) AND dwithin(geometry, POINT(1 2), 700.5)",
    "kind IN ('tug', 'ferry') AND NOT (speed + 2 > heavy * 3)",
    "T_AFTER(time, TIMESTAMP('2021-01-02T12:00:00Z')) AND open = TRUE",
    "T_DURING(time, INTERVAL(opened, '..')) AND name = '..'",
    "time > DATE('2021-01-02') AND time < TIMESTAMP('2021-01-02T12:00:00.000000001Z')",
    "time = DATE('1677-09-20') OR time = DATE('9999-12-31') OR time = DATE('1970-01-01')",
    "T_DURING(time, INTERVAL('2021-01-01', '2021-01-02')) OR T_MEETS(INTERVAL('..', '..'), time)",
    "T_DURING(time, INTERVAL('0001-01-01', '2021-01-02')) OR T_BEFORE(time, INTERVAL('..', day))",
    "T_BEFORE(time, INTERVAL('..', '2021-01-02T00:00:00Z'))",
    "T_DURING(time, INTERVAL('2021-01-01', '..')) OR time IN (DATE('2021-01-01'), 3, 'x')",
    "A_CONTAINS(tags, ('a', 'b', 3)) OR speed BETWEEN 3 AND 7",
    "speed IS NULL",
    "T_DURING(time, INTERVAL(start, '..')) OR T_AFTER(time, INTERVAL('2021-01-01', end))",
    "TRUE",
    "FALSE",
)
PREDICATES = [READER.parse(text) for text in TEXTS]

subscribers: st.SearchStrategy[Id | None] = st.sampled_from([None, 1, 2, "ops", "1"])


@st.composite
def subscription_lists(draw: st.DrawFn, kind: Callable[[int], Id] = int) -> list[Subscription]:
    numbers = draw(st.lists(st.integers(-5, 20), unique=True, max_size=8))
    return [
        Subscription(kind(n), draw(st.sampled_from(PREDICATES)), draw(subscribers)) for n in numbers
    ]


def is_same(found: Any, expected: Any) -> bool:
    """Whether objects are equal, zeros with their signs, numbers with their types."""
    return found == expected and repr(found) == repr(expected)


@given(st.one_of(subscription_lists(), subscription_lists(kind=str)))
def test_what_is_packed_comes_back_as_it_was(subscriptions: list[Subscription]) -> None:
    packed = pack_subscriptions(subscriptions)
    assert is_same(list(packed), subscriptions)
    assert is_same([packed[i] for i in range(len(packed))], subscriptions)
    assert packed[1:3] == subscriptions[1:3]


@given(subscription_lists(), st.data())
def test_some_are_taken_with_all_that_they_need(
    subscriptions: list[Subscription], data: st.DataObject
) -> None:
    places = data.draw(st.permutations(range(len(subscriptions))))
    places = places[: data.draw(st.integers(0, len(places)))]
    taken = pack_subscriptions(subscriptions).take(np.array(places, np.int64))
    wanted = [subscriptions[i] for i in places]
    assert is_same(list(taken), wanted)
    assert taken.pools.sizes() == pack_subscriptions(wanted).pools.sizes(), "nothing else"
    assert len(taken.table.constraints) == len(pack_subscriptions(wanted).table.constraints)


@given(st.lists(subscription_lists(), min_size=1, max_size=4))
def test_parts_are_joined_and_share_what_is_equal(parts: list[list[Subscription]]) -> None:
    everything = [subscription for part in parts for subscription in part]
    joined = join_subscriptions([pack_subscriptions(part) for part in parts])
    assert is_same(list(joined), everything)
    at_once = pack_subscriptions(everything)
    assert joined.pools.sizes() == at_once.pools.sizes()
    assert len(joined.table.constraints) == len(at_once.table.constraints)


@pytest.mark.parametrize("text", TEXTS)
def test_a_skeleton_and_its_operands_make_the_expression_again(text: str) -> None:
    expression = READER.parse(text).expression
    skeleton, operands = divide(expression)
    assert is_same(fill(skeleton, operands), expression)
    assert divide(skeleton)[0] == skeleton
    assert divide(make_example(skeleton))[0] == skeleton


def test_the_open_end_of_an_interval_is_not_an_operand() -> None:
    expression = READER.parse("T_DURING(time, INTERVAL(opened, '..')) AND name = '..'").expression
    skeleton, operands = divide(expression)
    assert operands == [".."]
    assert list_operand_types(skeleton) == [OperandType.TEXT]


def test_moments_and_intervals_are_operands_as_far_as_64_bits_hold_them() -> None:
    def types(text: str) -> list[OperandType]:
        return list_operand_types(divide(READER.parse(text).expression)[0])

    assert types("t > DATE('2021-01-01') AND n > 5") == [OperandType.MOMENT, OperandType.NUMBER]
    assert types("t > DATE('1600-01-01')") == []
    assert types("T_DURING(t, INTERVAL('2021-01-01', '..'))") == [OperandType.INTERVAL]
    assert types("T_DURING(t, INTERVAL('2021-01-01', '3000-01-01'))") == []
    assert types("T_DURING(t, INTERVAL(u, DATE('2021-01-01')))") == [OperandType.MOMENT]


def test_a_thousand_moments_have_one_skeleton() -> None:
    texts = (f"t > TIMESTAMP('2021-01-01T00:{n // 60:02}:{n % 60:02}Z')" for n in range(1_000))
    predicates = [READER.parse(text) for text in texts]
    packed = pack_subscriptions([Subscription(n, p) for n, p in enumerate(predicates)])
    assert len(packed.expressions.skeletons) == len(packed.table.constraints.tests.skeletons) == 1
    assert packed.pools.sizes() == (0, 0, 0, 1_000, 0)
    assert packed.nbytes < 150 * 1_000


def test_the_operands_of_an_example_differ_and_lie_on_the_globe() -> None:
    points = " OR ".join(f"dwithin(geometry, POINT({n} 0), {n})" for n in range(100))
    _, operands = divide(make_example(divide(READER.parse(points).expression)[0]))
    assert len(set(operands)) == 200
    boxes = [shape.bounds for shape in operands if isinstance(shape, BaseGeometry)]
    assert all(south == 0 < north <= 1 for _, south, _, north in boxes)


def test_heads_list_constraints_by_all_but_their_operands() -> None:
    constraints = [
        Constraint(Comparison(operator, Attribute(name), Literal(bound)))
        for name, operator, bound in (("x", ">", 1), ("x", ">", 2.5), ("y", ">", 1), ("x", "<", 1))
    ]
    negated = Constraint(constraints[0].test, is_negated=True)
    packed = pack_constraints([*constraints, negated])
    heads = {tuple(head.numbers.tolist()): head for head in packed.heads()}
    assert set(heads) == {(0, 1), (2,), (3,), (4,)}
    both = heads[0, 1]
    assert packed.pools.reals(both.operands[:, 0]).tolist() == [1.0, 2.5]
    assert [head.numbers.tolist() for head in packed.heads(np.array([3, 1]))] == [[1], [3]]


def test_a_thousand_subscribers_to_one_area_store_it_once() -> None:
    predicate = READER.parse(f"S_WITHIN(geometry, {AREA}) AND speed > 3")
    packed = pack_subscriptions([Subscription(n, predicate, n) for n in range(1_000)])
    assert packed.pools.sizes() == (1, 0, 1, 0, 0)
    assert len(packed.table.constraints) == 2
    assert packed.nbytes < 150 * 1_000


# Ids


@given(st.lists(st.text(max_size=3), unique=True, max_size=10), st.text(max_size=3))
def test_a_text_is_found_where_it_is(texts: list[str], wanted: str) -> None:
    texts = [t for t in texts if json.loads(json.dumps(t)).isprintable()]
    column = IdColumn(make_id_array(texts))
    assert column.find(wanted) == (texts.index(wanted) if wanted in texts else -1)
    assert [texts[i] for i in column.order] == sorted(texts)
    assert column.find_many(make_id_array([*texts, "\x00none"])).tolist()[:-1] == list(
        range(len(texts))
    )


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=10))
def test_integers_are_found_where_they_are(ids: list[int]) -> None:
    column = IdColumn(make_id_array(ids) if ids else pa.array([], pa.int64()))
    assert [column.find(id_) for id_ in ids] == list(range(len(ids)))
    assert column.find(2**63) == -1
    assert column.find("1") == -1
    assert [ids[i] for i in column.order] == sorted(ids)


@pytest.mark.parametrize("kind", [int, str])
@pytest.mark.parametrize(
    ("numbers", "again", "later"),
    [
        ([1, 2, 1, 3, 2], [0, 0, 1, 0, 1], [1, 1, 0, 0, 0]),
        ([1, 2, 3], [0, 0, 0], [0, 0, 0]),
        ([3, 2, 1], [0, 0, 0], [0, 0, 0]),
        ([1, 2, 2], [0, 0, 1], [0, 1, 0]),
        ([], [], []),
    ],
)
def test_repeats_are_told_from_either_end(
    kind: type, numbers: list[int], again: list[int], later: list[int]
) -> None:
    ids = pa.array([kind(number) for number in numbers], make_id_array([kind(0)]).type)
    assert are_repeated(ids).tolist() == list(map(bool, again))
    assert are_repeated(ids, from_end=True).tolist() == list(map(bool, later))
    assert [numbers[i] for i in IdColumn(ids).order] == sorted(numbers)


def test_geometries_come_back_bit_for_bit() -> None:
    shape = shapely.Polygon([(0.1, -0.0), (1e300, 5e-324), (3, 4), (0.1, -0.0)])
    predicate = READER.combine(shape, RELATIONS["intersects"], "geometry", None)
    (found,) = pack_subscriptions([Subscription(1, predicate)])
    (back,) = divide(found.predicate.expression)[1]
    assert isinstance(back, BaseGeometry)
    assert shapely.to_wkb(back) == shapely.to_wkb(shape)
