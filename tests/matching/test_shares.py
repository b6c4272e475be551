"""Shares of the AHS model: partial matrices of any split sum to those of the whole."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from numpy.random import Generator

from contrada.arrays import Positions
from contrada.kernels.area_matrices import relate_lists
from contrada.matching.ahs.shares import (
    AreaShare,
    add_up,
    decide,
    find_area_anchor,
    find_area_anchors,
)
from contrada.matching.columns import EventBatch, GeometryColumn
from contrada.matching.engines import make_engine
from contrada.matching.grid import Grid
from contrada.matching.lookup import LookupTable, Weights, make_lookup_table
from contrada.matching.subscribing import PredicateReader
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.geometry import as_array
from contrada.model.relation import RELATIONS
from contrada.model.subscription import Subscription

UNIVERSE = (0.0, 0.0, 64.0, 64.0)
LEVEL = 6
READER = PredicateReader()


def make_table(rng: Generator, partitions: int) -> LookupTable:
    """A table of random weights, so skewed that some prefix has replicas."""
    codes = np.sort(rng.choice(4**4, 40, replace=False)).astype(np.int64)
    weights = rng.exponential(1.0, len(codes)) ** 3
    weights[0] = weights.sum()
    table = make_lookup_table(UNIVERSE, Weights(4, codes, weights), partitions)
    assert any(len(chosen) > 1 for chosen in table.replicas)
    return table.refined(LEVEL)


def make_shapes(rng: Generator, count: int) -> Any:
    """Areas, lines and points, also several in one; some leave the universe."""
    shapes = []
    for number in range(count):
        x, y = rng.uniform(-10, 70, 2)
        r = rng.exponential(12.0)
        kind = number % 7
        shapes.append(
            shapely.Point(x, y)
            if kind == 0
            else shapely.LineString([(x, y), (x + r, y - r), (x + 2 * r, y)])
            if kind == 1
            else shapely.box(x, y, x + r, y + r / 2)
            if kind == 2
            else shapely.Point(x, y).buffer(r)
            if kind == 3
            else shapely.MultiPoint([(x, y), (x + r, y), (x, y + r)])
            if kind == 4
            else shapely.MultiLineString([[(x, y), (x + r, y)], [(x, y + 9), (x + r, y + r + 9)]])
            if kind == 5
            else shapely.MultiPolygon(
                [shapely.box(x, y, x + r, y + r), shapely.box(x - 5, y, x - 2, y + 9)]
            )
        )
    return as_array(shapes)


def as_events(shapes: Any) -> EventBatch:
    columns = {"geometry": pa.array(shapely.to_wkb(shapes).tolist())}
    return EventBatch(columns, len(shapes), {"geometry": GeometryColumn.of(shapes)})


def subscribe(shapes: Any, relations: list[str]) -> list[Subscription]:
    found = []
    for number, shape in enumerate(shapes):
        relation = RELATIONS[relations[number % len(relations)]]
        found.append(Subscription(number, READER.combine(shape, relation, "geometry", None)))
    return found


def sum_up(
    subscriptions: list[Subscription], table: LookupTable, events: Any
) -> tuple[Positions, Positions, int]:
    """Match in every partition; give the sums by event and subscription, and how many rows fell."""
    batch, every = as_events(events), np.arange(len(events))
    starts = np.cumsum([0, *map(len, table.replicas)])
    replicas = np.array([p for chosen in table.replicas for p in chosen])
    keys, numbers = [], []
    for partition in range(table.partition_count):

        def is_mine(rows: Positions, prefixes: Positions, partition: int = partition) -> Any:
            turn = rows % np.diff(starts)[prefixes]
            return replicas[starts[prefixes] + turn] == partition

        found = AreaShare(subscriptions, table, partition).match(batch, every, is_mine)
        keys.append(found.rows * len(subscriptions) + found.positions)
        numbers.append(found.numbers)
    joined = np.concatenate(keys)
    firsts, sums = add_up(joined, np.concatenate(numbers))
    return joined[firsts], sums, len(joined)


@pytest.mark.parametrize("partitions", [1, 2, 5, 16])
def test_partial_matrices_sum_to_the_whole_for_any_split(partitions: int) -> None:
    rng = np.random.default_rng(partitions)
    table, grid = make_table(rng, partitions + 1), Grid(LEVEL, UNIVERSE)
    anchors, events = make_shapes(rng, 42), make_shapes(rng, 63)
    subscriptions = subscribe(anchors, ["intersects", "within", "contains"])
    keys, sums, count = sum_up(subscriptions, table, events)
    assert partitions == 1 or len(keys) < count  # something was summed
    matrices = {int(key): row[8:12].tolist() for key, row in zip(keys, sums, strict=True)}
    for e, event in enumerate(events):
        for s, anchor in enumerate(anchors):
            whole = relate_lists(grid.list_cells(event), grid.list_cells(anchor), LEVEL)
            assert matrices.get(e * len(anchors) + s, [0] * 4) == whole.tolist(), (e, s)


@pytest.mark.parametrize("partitions", [1, 4, 11])
def test_the_sums_decide_as_the_whole_does_for_every_relation(partitions: int) -> None:
    rng = np.random.default_rng(partitions)
    table = make_table(rng, partitions + 1)
    events = make_shapes(rng, 50)
    areas = [shape for shape in make_shapes(rng, 90) if shapely.get_dimensions(shape) == 2]
    apart = ("disjoint", "ehDisjoint")
    names = [name for name in RELATIONS if name not in apart]
    predicates = [READER.combine(a, RELATIONS[n], "geometry", None) for a in areas for n in names]
    lines = [shape for shape in make_shapes(rng, 60) if shapely.get_dimensions(shape) == 1]
    predicates += [READER.combine(line, RELATIONS["crosses"], "geometry", None) for line in lines]
    predicates += [READER.parse(f"NOT ehDisjoint(geometry, {area.wkt})") for area in areas]
    subscriptions = [Subscription(n, predicate) for n, predicate in enumerate(predicates)]
    keys, sums, _ = sum_up(subscriptions, table, events)
    found = sorted(map(int, keys[decide(sums)]))
    whole = make_engine("ahs", {"level": LEVEL, "universe": UNIVERSE}).make_index(
        pack_subscriptions(subscriptions)
    )
    rows, positions = whole.match_batch(as_events(events))
    assert found == sorted((rows * len(subscriptions) + positions).tolist())
    assert len(found) > 500


def test_an_anchor_is_what_events_must_share_cells_with() -> None:
    def anchor_of(text: str) -> Any:
        return find_area_anchor(READER.parse(text).filters[0])

    small, large = "POLYGON((0 0, 1 0, 1 1, 0 0))", "POLYGON((0 0, 9 0, 9 9, 0 0))"
    found = anchor_of(f"S_INTERSECTS(a, {large}) AND S_WITHIN(b, {small}) AND wind > 3")
    assert (found.attribute, found.relation.name, len(found.rest)) == ("b", "within", 2)
    assert anchor_of(f"NOT ehDisjoint(a, {small})").is_negated
    for text in (
        "wind > 3",
        f"S_DISJOINT(a, {small})",
        f"NOT S_WITHIN(a, {small})",
        f"relate(a, {small}, 'T********')",
        f"dwithin(a, {small}, 10)",
    ):
        assert anchor_of(text) is None, text


def test_a_subscription_has_anchors_if_each_of_its_filters_has_one() -> None:
    square = "POLYGON((0 0, 1 0, 1 1, 0 0))"
    whole = READER.parse(f"S_INTERSECTS(a, {square}) OR S_WITHIN(b, {square})")
    assert len(find_area_anchors(Subscription("s", whole)) or ()) == 2
    broad = READER.parse(f"S_INTERSECTS(a, {square}) OR wind > 3")
    assert find_area_anchors(Subscription("s", broad)) is None


def test_a_negated_relation_is_decided_as_its_opposite() -> None:
    disjoint = list(RELATIONS).index("disjoint")
    touching = [0, 2 * disjoint, 0, 1, 0, 2, 4, 4, 1, 0, 0, 0]
    negated = [0, 2 * disjoint + 1, *touching[2:]]
    assert decide(np.array([touching, negated])).tolist() == [False, True]
