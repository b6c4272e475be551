"""Fences against Shapely and plain evaluation: which there are, what is near, which ways meet."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.arrays import Mask, Positions
from contrada.language import make_predicate, read, truth
from contrada.language.distance import is_within
from contrada.matching.columns import EventBatch, read_geometries
from contrada.matching.engines import DEFAULT_ENGINE, make_engine
from contrada.matching.fence_sets import FenceSets, PairArrays
from contrada.matching.fences import FenceKind, find_form
from contrada.matching.simplify import simplify
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.event import Event
from contrada.model.expression import And, DistanceWithin, Literal, Spatial
from contrada.model.subscription import Subscription

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
WITHIN = f"S_WITHIN(geometry, {SQUARE})"


@pytest.mark.parametrize(
    ("predicate", "kind"),
    [
        (f"S_INTERSECTS(geometry, {SQUARE})", FenceKind.TOUCHED),
        (f"coveredBy(geometry, {SQUARE})", FenceKind.TOUCHED),
        (WITHIN, FenceKind.ENTERED),
        ("dwithin(geometry, POINT(1 2), 500)", FenceKind.NEARED),
        ("dwithin(geometry, POINT(1 2), 2 * 250.5)", FenceKind.NEARED),
        (f"S_CONTAINS({SQUARE}, geometry)", FenceKind.ENTERED),
        (f"S_INTERSECTS({SQUARE}, geometry)", FenceKind.TOUCHED),
        (f"covers({SQUARE}, geometry)", FenceKind.TOUCHED),
        ("dwithin(POINT(1 2), geometry, 500)", FenceKind.NEARED),
        (f"NOT S_DISJOINT(geometry, {SQUARE})", FenceKind.TOUCHED),
        (f"speed > 3 AND {WITHIN} AND class = 'van'", FenceKind.ENTERED),
        (f"speed > 3 AND ({WITHIN} AND class IN ('van', 'bus'))", FenceKind.ENTERED),
        (f"(speed > 3 OR class = 'van') AND {WITHIN}", FenceKind.ENTERED),
        (f"{WITHIN} AND S_TOUCHES(area, {SQUARE})", FenceKind.ENTERED),
    ],
)
def test_a_fence_is_an_and_with_one_test_of_the_place(predicate: str, kind: FenceKind) -> None:
    form = find_form(make_predicate(read(predicate)).expression)
    assert form is not None and form.kind is kind


@pytest.mark.parametrize(
    "predicate",
    [
        "speed > 3",
        f"S_INTERSECTS(area, {SQUARE})",
        f"S_TOUCHES(geometry, {SQUARE})",
        f"S_DISJOINT(geometry, {SQUARE})",
        f"ehInside(geometry, {SQUARE})",
        f"relate(geometry, {SQUARE}, 'T*F**F***')",
        f"S_CONTAINS(geometry, {SQUARE})",
        f"NOT {WITHIN}",
        f"{WITHIN} OR speed > 3",
        f"{WITHIN} AND {WITHIN}",
        f"{WITHIN} AND S_INTERSECTS(geometry, {SQUARE})",
        f"{WITHIN} AND geometry IS NOT NULL",
        f"{WITHIN} AND geometry.name = 'a'",
        "S_WITHIN(geometry, area)",
        "dwithin(geometry, area, 500)",
        "dwithin(geometry, POINT(1 2), radius)",
        f"({WITHIN} OR speed > 3) AND class = 'van'",
    ],
)
def test_whatever_else_reads_the_place_is_no_fence(predicate: str) -> None:
    assert find_form(make_predicate(read(predicate)).expression) is None


SHAPES = (
    "GEOMETRYCOLLECTION(POINT(6 6), POLYGON((0 0, 1 0, 1 1, 0 1, 0 0)), LINESTRING(3 3, 5 5))",
    "MULTIPOINT((1 1), (5 5))",
    "POLYGON((0 84, 4 84, 4 88, 0 88, 0 84))",
    SQUARE,
    "POLYGON((1 1, 3 1, 3 3, 1 3, 1 1))",
    "POLYGON((0 0, 6 0, 6 6, 0 6, 0 0), (2 2, 4 2, 4 4, 2 4, 2 2))",
    "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 1, 0 0)), ((3 3, 5 3, 5 5, 3 5, 3 3)))",
    "LINESTRING(0 2, 5 2)",
    "POINT(2 2)",
    "POLYGON((178 0, 180 0, 180 4, 178 4, 178 0))",
)
TESTS = (
    *(f"S_INTERSECTS(geometry, {shape})" for shape in SHAPES),
    *(f"S_WITHIN(geometry, {shape})" for shape in SHAPES),
    *(f"coveredBy(geometry, {shape})" for shape in SHAPES),
    *(f"dwithin(geometry, {shape}, {radius})" for shape in SHAPES for radius in (0, 150_000.5)),
)
RESTS = ("", " AND speed > 3", " AND (speed > 3 OR class = 'van')", " AND class LIKE 'v%'")
places = st.one_of(
    st.tuples(st.integers(-1, 7), st.integers(-1, 7)),
    st.tuples(st.sampled_from([-180.0, -179.5, 177.0, 180.0]), st.integers(-1, 5)),
    st.tuples(st.integers(-1, 5), st.sampled_from([83.0, 85.0, 89.0])),
    st.tuples(st.sampled_from([0.0, 4.0000001, 3.9999999, 200.0]), st.sampled_from([2.0, -0.001])),
)
predicates = st.builds(str.__add__, st.sampled_from(TESTS), st.sampled_from(RESTS))
areas = st.sampled_from(["POLYGON((5 5, 7 5, 7 7, 5 5))", "LINESTRING(-1 2, 0 3)"])
events = st.fixed_dictionaries(
    {
        "geometry": st.one_of(st.none(), places.map(shapely.Point), areas.map(shapely.from_wkt)),
        "speed": st.sampled_from([None, 2, 5]),
        "class": st.sampled_from([None, "van", "bus"]),
    }
)


class Case:
    """Subscriptions by rank, and events with the way that led to each."""

    def __init__(
        self,
        fences: list[tuple[str, float]],
        rows: list[tuple[dict[str, Any], tuple[float, float] | None]],
    ) -> None:
        self.texts = [text for text, _ in fences]
        self.hysteresis_m = [h for _, h in fences]
        self.events = [event for event, _ in rows]
        effort = make_engine(DEFAULT_ENGINE, {}).effort
        assert effort is not None
        chosen = [simplify(make_predicate(read(text)), effort)[0] for text in self.texts]
        self.expressions = [predicate.expression for predicate in chosen]
        by_rank = [Subscription(f"{rank:03d}", p) for rank, p in enumerate(chosen)]
        columns = pack_subscriptions(by_rank[::-1])
        self.sets = FenceSets(columns)
        self.near = self.sets.near(np.array(self.hysteresis_m, float))
        self.batch = self._batch()
        self.lines = [self._line(event["geometry"], start) for event, start in rows]
        ends = [(math.nan,) * 4 if line is None else (*line.coords[0], *line.coords[1])
                for line in self.lines]  # fmt: skip
        self.ways = np.array(ends, float).reshape(-1, 4)

    def _batch(self) -> EventBatch:
        kinds = [("geometry", pa.binary()), ("speed", pa.int64()), ("class", pa.string())]
        rows = [
            {**event, "geometry": event["geometry"] and event["geometry"].wkb}
            for event in self.events
        ]
        table = pa.RecordBatch.from_pylist(rows, schema=pa.schema(kinds))
        columns = dict(zip(table.schema.names, table.columns, strict=True))
        read = {"geometry": read_geometries(columns["geometry"])}
        return EventBatch(columns, len(rows), read)

    @staticmethod
    def _line(end: Any, start: tuple[float, float] | None) -> Any:
        if start is None or end is None or end.geom_type != "Point":
            return None
        return shapely.LineString([start, end.coords[0]])

    def matches(self, row: int, rank: int) -> bool:
        return truth(self.expressions[rank], Event(self.events[row])) is True

    def choose(self, rows: Positions, ranks: Positions) -> Mask:
        """Choose what does not match: others are no question of nearness, nor of ways."""
        pairs = zip(rows.tolist(), ranks.tolist(), strict=True)
        return np.array([not self.matches(*pair) for pair in pairs], bool)

    def satisfies_rest(self, row: int, rank: int) -> bool:
        text = self.texts[rank]
        rest = next((rest for rest in RESTS[1:] if text.endswith(rest)), "")
        return (
            truth(make_predicate(read("TRUE" + rest)).expression, Event(self.events[row])) is True
        )

    def place(self, rank: int) -> tuple[str, Any, float]:
        """The relation, the geometry and the distance of a fence."""
        expression = self.expressions[rank]
        tests = expression.arguments if isinstance(expression, And) else (expression,)
        match next(test for test in tests if isinstance(test, Spatial | DistanceWithin)):
            case Spatial(relation, _, Literal(geometry)):
                return relation.name, geometry, 0.0
            case DistanceWithin(_, Literal(geometry), Literal(float() | int() as metres)):
                return "dwithin", geometry, metres
        raise AssertionError(expression)

    def expect(self, holds: Callable[[int, int], bool]) -> list[tuple[int, int]]:
        """List the pairs for which something holds, that do not match, and that satisfy the rest.

        Of what lies inside the geometry nothing is asked.
        """
        return [
            (row, rank)
            for row in range(len(self.events))
            for rank in range(len(self.texts))
            if not self.matches(row, rank) and self.satisfies_rest(row, rank) and holds(row, rank)
        ]


def as_list(pairs: PairArrays) -> list[tuple[int, int]]:
    return list(zip(pairs.rows.tolist(), pairs.ranks.tolist(), strict=True))


cases = st.builds(
    Case,
    st.lists(st.tuples(predicates, st.sampled_from([0.0, 1_000.0, 30_000.0, 9e5])), max_size=6),
    st.lists(st.tuples(events, st.one_of(st.none(), places)), min_size=1, max_size=6),
)


@settings(max_examples=25)
@given(cases)
def test_near_is_dwithin_and_the_rest_of_the_predicate(case: Case) -> None:
    def is_near(row: int, rank: int) -> bool:
        _, geometry, metres = case.place(rank)
        reach_m = metres + case.hysteresis_m[rank]
        return (
            case.hysteresis_m[rank] > 0
            and is_within(case.events[row]["geometry"], geometry, reach_m) is True
        )

    assert as_list(case.near.find(case.batch, case.choose)) == case.expect(is_near)


@settings(max_examples=25)
@given(cases)
def test_a_way_meets_a_fence_as_the_fence_asks(case: Case) -> None:
    def is_met(row: int, rank: int) -> bool:
        line, (relation, geometry, metres) = case.lines[row], case.place(rank)
        if line is None or line.length == 0:
            return False
        if relation == "dwithin":
            return is_within(line, geometry, metres) is True
        if relation == "within":
            return bool(shapely.relate_pattern(line, geometry, "T********"))
        return bool(shapely.intersects(line, geometry))

    assert as_list(case.sets.find_met(case.batch, case.ways, case.choose)) == case.expect(is_met)


def test_only_pairs_that_are_chosen_are_decided() -> None:
    event = {"geometry": shapely.Point(5, 2)}
    case = Case([(WITHIN, 0), (WITHIN, 0)], [(event, (-1, 2)), (event, (-1, 2))])
    found = case.sets.find_met(case.batch, case.ways, lambda rows, ranks: rows != ranks)
    assert as_list(found) == [(0, 1), (1, 0)]


def test_fences_are_told_by_rank() -> None:
    texts = ["speed > 3", WITHIN, "dwithin(geometry, POINT(0 0), 1)"]
    case = Case([(text, 0) for text in texts], [])
    assert case.sets.is_fence.tolist() == [False, True, True]
    assert as_list(case.sets.find_met(case.batch, case.ways, case.choose)) == []
    assert as_list(case.near.find(case.batch, case.choose)) == []
