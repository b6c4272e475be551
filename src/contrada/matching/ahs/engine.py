"""How `ahs` is made, and its options."""

from contrada.arrays import Box
from contrada.matching.ahs.by_cells import AreaIndex, CellReader, is_by_area
from contrada.matching.ahs.shares import find_area_anchors
from contrada.matching.anchors import Anchor, AnchorList, collect_anchors
from contrada.matching.engine import Engine, EngineKind, Index
from contrada.matching.forwarding import ForwardingIndex, describe_counted
from contrada.matching.grid import LEVEL, LONGITUDE_LATITUDE, Grid
from contrada.matching.spatial_tests import list_spatial_tests
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.subscription import Filter, Subscription


def _make(level: int = LEVEL, universe: Box = LONGITUDE_LATITUDE) -> Engine:
    """Choose the universe, and how many times its cells are quartered."""
    grid = Grid(level, universe)
    reader = CellReader(grid)

    def make_index(subscriptions: SubscriptionColumns) -> Index:
        return ForwardingIndex(subscriptions, AreaIndex(reader))

    def describe(filter_: Filter) -> list[str]:
        return describe_counted(filter_, AreaIndex(reader))

    def check(subscription: Subscription) -> None:
        for test, geometry in list_spatial_tests(subscription):
            if is_by_area(test):
                grid.check(geometry)

    return Engine(make_index, describe, None, check, grid.find_faults, _list_anchors)


def _list_anchors(subscriptions: SubscriptionColumns) -> AnchorList:
    return collect_anchors(subscriptions, _find_anchors)


def _find_anchors(subscription: Subscription) -> list[Anchor] | None:
    found = find_area_anchors(subscription)
    return None if found is None else [(a.attribute, a.geometry) for a in found]


AHS = EngineKind("ahs", "approximate: the AHS paper's quadtree cells", _make)
