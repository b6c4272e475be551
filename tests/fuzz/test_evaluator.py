"""The evaluator itself: what it reads is what was written, and it knows some answers by heart."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from fuzz import events, parser, texts
from fuzz.meaning import is_refused, truth
from fuzz.predicates import Maker
from fuzz.shapes import Undecided


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("a = 1 OR b = 1 AND c = 1", {"a": 1}, True),
        ("NOT a = 1 AND b = 1", {"a": 2, "b": 1}, True),
        ("NOT a > 1", {}, None),
        ("a <> 9007199254740993", {"a": 2.0**53}, True),
        ("a = 1", {"a": True}, None),
        ("a NOT BETWEEN 1 AND 2", {"a": 3}, True),
        ("a IN (1, 'x')", {"a": 2}, None),
        ("a LIKE 'a\\%%'", {"a": "a%b"}, True),
        ("CASEI(a) = CASEI('STRASSE')", {"a": "straße"}, True),
        ("ACCENTI(a) = ACCENTI('E')", {"a": "É"}, True),
        ("-7 div 2 = -3 AND -7 % 2 = -1 AND 2 ^ 2 * 3 = 12", {}, True),
        ("a < TIMESTAMP('2020-01-01T00:00:00Z')", {"a": "2020-01-01T00:00:00+01:00"}, True),
        ("T_STARTS(a, INTERVAL('2020-01-01', '..'))", {"a": ["2020-01-01", "2020-01-02"]}, True),
        ("A_CONTAINEDBY(a, (1, NULL))", {"a": [2]}, None),
        ("A_CONTAINEDBY(a, 2)", {"a": [2]}, True),
        ("S_TOUCHES(a, POLYGON((0 0,2 0,2 2,0 0)))", {"a": "POINT(2 1)"}, True),
        ("ehMeet(a, BBOX(0, 0, 1, 1))", {"a": "POLYGON((1 0,2 0,2 1,1 0))"}, True),
        ("ehMeet(a, BBOX(0, 0, 1, 1))", {"a": "POINT(1 1)"}, None),
        ("dwithin(a, POINT(180 0), 1000)", {"a": "POINT(-180 0)"}, True),
        ("x.y = 1", {"x": {"y": 1}}, True),
        ("x.y = 1", {"x": {"y": 1}, "x.y": None}, True),
        ('"odd name" IS NULL', {}, True),
    ],
)
def test_known_answers(text: str, event: dict[str, Any], expected: bool | None) -> None:
    assert truth(parser.read(text), event) is expected


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("S_INTERSECTS(geometry, POINT(1 1))", "nonsense", True),
        ("a = 1 OR NOT dwithin(geometry, POINT(1 1), 5)", "P0INT(1 1)", True),
        ("S_INTERSECTS(geometry, POINT(1 1))", "POINT(1 1)", False),
        ("S_INTERSECTS(geometry, POINT(1 1))", '{"type":"Point","coordinates":[1,1]}', False),
        ("S_INTERSECTS(geometry, POINT(1 1))", " ", False),
        ("S_INTERSECTS(geometry, POINT(1 1))", 5, False),
        ("S_INTERSECTS(g, POINT(1 1)) OR geometry = 'nonsense'", "nonsense", False),
    ],
)
def test_which_events_are_refused(text: str, value: Any, expected: bool) -> None:
    assert is_refused([parser.read(text)], {"geometry": value, "g": "nonsense"}) is expected


@pytest.mark.parametrize(
    "text", ["", "a =", "(a = 1", "a = 1)", "AND", "a b", "foo(1)", "1 < x < 2"]
)
def test_what_is_not_cql2_is_not_read(text: str) -> None:
    with pytest.raises(parser.NotCql2):
        parser.read(text)


def test_what_is_written_in_any_way_means_the_same_when_it_is_read() -> None:
    for seed in range(300):
        random = Random(seed)
        maker = Maker(random)
        tree = maker.predicate()
        if not texts.can_be_written(tree):
            continue
        again = parser.read(texts.write(tree, random))
        for _ in range(3):
            event = events.event(random, maker.shapes)
            try:
                assert truth(again, event) is truth(tree, event), seed
            except Undecided:
                continue
