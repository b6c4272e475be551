"""Where in space a filter can be satisfied at all: at its anchor, a positive spatial constraint."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Floats, Geometries, Mask, Positions
from contrada.language.distance import reach
from contrada.matching.constraint_columns import ConstraintColumns
from contrada.matching.grouping import find_used
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.matching.table import FilterTable
from contrada.model.expression import Attribute, DistanceWithin, Literal, Spatial
from contrada.model.geometry import as_array
from contrada.model.packed_lists import repeat
from contrada.model.subscription import Constraint, Filter, Subscription

Anchor = tuple[str, BaseGeometry]  # an attribute, and a geometry that it must have a point in


def find_anchors(subscription: Subscription) -> list[Anchor] | None:
    """Find an anchor for each filter of a subscription; None where some filter has none.

    An event satisfies the subscription only if, for one of them, the event's attribute has a
    point in common with the geometry.
    """
    found = []
    for filter_ in subscription.predicate.filters:
        constraint = find_anchor(filter_)
        anchor = None if constraint is None else _read(constraint)
        if anchor is None:
            return None
        found.append(anchor)
    return found


def find_anchor(filter_: Filter) -> Constraint | None:
    """Choose the constraint of the smallest extent as a filter's anchor; None without any."""
    sizes = [anchor_size(constraint) for constraint in filter_.constraints]
    smallest = min(sizes, default=inf)
    return None if smallest == inf else filter_.constraints[sizes.index(smallest)]


def is_anchor(constraint: Constraint) -> bool:
    """Whether a constraint can be an anchor."""
    return anchor_size(constraint) < inf


def anchor_size(constraint: Constraint) -> float:
    """Measure the extent of a possible anchor; infinite where the constraint cannot be one."""
    anchor = _read(constraint)
    if anchor is None:
        return inf
    west, south, east, north = anchor[1].bounds
    return float(east - west + north - south)


@np.errstate(over="ignore")  # what is too large to be measured is no anchor
def anchor_sizes(constraints: ConstraintColumns) -> Floats:
    """Measure the extents of all constraints, as `anchor_size` does of one."""
    sizes = np.full(len(constraints), inf)
    boxes = constraints.pools.geometries.boxes()
    for head in constraints.heads():
        if not is_anchor(head.constraint):
            continue
        if isinstance(head.constraint.test, Spatial):
            west, south, east, north = boxes[head.operands[:, 0]].T
            sizes[head.numbers] = east - west + north - south
        else:
            sizes[head.numbers] = [anchor_size(each) for each in constraints.take(head.numbers)]
    return sizes


def choose_anchors(table: FilterTable, ranks: Floats) -> Positions:
    """Choose for each filter the constraint of the lowest rank; -1 where all are infinite."""
    anchors = np.full(len(table.owner), -1, np.int64)
    filled = np.flatnonzero(table.sizes())
    if not filled.size:
        return anchors
    of_member = ranks[table.members]
    lowest = np.minimum.reduceat(of_member, table.starts[filled])
    owners = repeat(np.arange(len(filled)), table.sizes()[filled])
    hits = np.flatnonzero((of_member == lowest[owners]) & np.isfinite(of_member))
    filters, firsts = np.unique(owners[hits], return_index=True)
    anchors[filled[filters]] = table.members[hits[firsts]]
    return anchors


@dataclass(frozen=True, slots=True)
class AnchorList:
    """The anchors of many subscriptions: whose each is, its attribute and its geometry.

    A broad subscription has a filter without an anchor: it may be satisfied anywhere.
    """

    owners: Positions
    attributes: frozenset[str]
    shapes: Geometries
    is_broad: Mask


def collect_anchors(
    subscriptions: SubscriptionColumns, find: Callable[[Subscription], list[Anchor] | None]
) -> AnchorList:
    """Find the anchors of subscriptions one by one, by a rule of an engine's own."""
    found = [find(subscription) for subscription in subscriptions]
    flat = [(owner, *anchor) for owner, anchors in enumerate(found) for anchor in anchors or ()]
    return AnchorList(
        np.array([owner for owner, _, _ in flat], np.int64),
        frozenset(name for _, name, _ in flat),
        as_array([shape for _, _, shape in flat]),
        np.array([anchors is None for anchors in found], bool),
    )


def list_anchors(subscriptions: SubscriptionColumns) -> AnchorList:
    """Find the anchors of all subscriptions as `find_anchors` does, without an object for each."""
    table, constraints = subscriptions.table, subscriptions.table.constraints
    anchors = choose_anchors(table, anchor_sizes(constraints))
    is_broad = np.zeros(len(subscriptions), bool)
    is_broad[table.owner[anchors < 0]] = True
    filters = np.flatnonzero(~is_broad[table.owner])
    used, which = find_used(anchors[filters], len(constraints))
    shapes, names = np.full(len(used), None, object), set()
    for head in constraints.heads(used):
        at = np.searchsorted(used, head.numbers)
        names |= set(head.constraint.attributes())
        if isinstance(head.constraint.test, Spatial):
            shapes[at] = constraints.pools.geometries.shapes(head.operands[:, 0])
        else:
            shapes[at] = [_reach(each) for each in constraints.take(head.numbers)]
    return AnchorList(table.owner[filters], frozenset(names), shapes[which], is_broad)


def _reach(constraint: Constraint) -> BaseGeometry:
    anchor = _read(constraint)
    assert anchor is not None
    return anchor[1]


def _read(constraint: Constraint) -> Anchor | None:
    if constraint.is_negated:
        return None
    match constraint.test:
        case Spatial(relation, Attribute(name), Literal(BaseGeometry() as shape)):
            return None if relation.holds_when_apart() else (name, shape)
        case DistanceWithin(
            Attribute(name), Literal(BaseGeometry() as shape), Literal(int() | float() as radius_m)
        ):
            return name, reach(shape, radius_m)
    return None
