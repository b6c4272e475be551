"""Where in space a filter can be satisfied at all: at its anchor, a positive spatial constraint."""

from math import inf

import numpy as np
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Floats
from contrada.language.distance import reach
from contrada.matching.constraint_columns import ConstraintColumns
from contrada.model.expression import Attribute, DistanceWithin, Literal, Spatial
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
            sizes[head.numbers] = [anchor_size(constraints[n]) for n in head.numbers.tolist()]
    return sizes


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
