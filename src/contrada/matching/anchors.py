"""Where in space a subscription can be satisfied at all: the geometries of its anchors."""

from shapely.geometry.base import BaseGeometry

from contrada.language.distance import reach
from contrada.matching.strtree import find_anchor
from contrada.model.expression import Attribute, DistanceWithin, Literal, Spatial
from contrada.model.subscription import Constraint, Subscription

Anchor = tuple[str, BaseGeometry]  # an attribute, and a geometry that it must have a point in


def anchors_of(subscription: Subscription) -> list[Anchor] | None:
    """Give an anchor for each filter of a subscription; None where some filter has none.

    An event satisfies the subscription only if, for one of them, the event's attribute has a
    point in common with the geometry.
    """
    found = []
    for filter_ in subscription.predicate.filters:
        constraint = find_anchor(filter_)
        if constraint is None:
            return None
        found.append(_read(constraint))
    return found


def _read(constraint: Constraint) -> Anchor:
    match constraint.test:
        case Spatial(_, Attribute(name), Literal(BaseGeometry() as shape)):
            return name, shape
        case DistanceWithin(
            Attribute(name), Literal(BaseGeometry() as shape), Literal(int() | float() as radius_m)
        ):
            return name, reach(shape, radius_m)
    raise AssertionError(f"{constraint} is no anchor")
