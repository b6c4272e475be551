"""From subscriptions to a peer's filters: boxes that every event which could match must meet.

Boxes leave out only what the language rules out, for events of every kind:

- A number is one value, so bounds of one attribute are intersected over AND. What is true of no
  event without a number there (`=`, `<`, BETWEEN, IN) bounds it; all else leaves it unbounded.
- A geometry has an extent: a line may meet two regions that lie apart. So of several regions that
  an event must touch one is taken, the smallest, and only regions that it must lie in cut it.
- An event that lacks an attribute, or has no number there, has an *inverted* side, which meets
  only sides that are unbounded at both ends. So has one without a geometry, in space.

The answer is sound for the exact engines; approximate ones may find what no box leads to. Nothing
here knows peers or the tree.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput
from contrada.language.distance import reach
from contrada.language.values import is_number
from contrada.model.event import GEOMETRY, Event, read_event
from contrada.model.expression import Attribute, Comparison, DistanceWithin, In, Literal, Spatial
from contrada.model.relation import SpatialRelation
from contrada.model.subscription import Constraint, Filter, Subscription
from contrada.overlay.boxes import Box, everything
from contrada.overlay.merging import merge
from contrada.overlay.state import PEER_FILTERS_MAX

LIMIT = 32  # boxes of one peer, if not told otherwise

Side = tuple[float, float]  # low and high
Rectangle = tuple[float, float, float, float]  # west, south, east, north

_OPEN: Side = (-inf, inf)
_INVERTED: Side = (inf, -inf)
_EVERYWHERE: Rectangle = (-inf, -inf, inf, inf)
_PARTS_MAX = 8  # a geometry of more parts is taken as a whole
_RADIUS_M_MAX = 20_100_000.0  # no two places on earth are farther apart


@dataclass(frozen=True, slots=True)
class Dimensions:
    """What the sides of boxes are: x and y of one geometry, then numeric attributes in order."""

    attributes: tuple[str, ...] = ()
    geometry: str = GEOMETRY

    def __post_init__(self) -> None:
        """Refuse a name that stands for two dimensions."""
        names = (self.geometry, *self.attributes)
        if len(set(names)) < len(names):
            raise InvalidInput(f"a name is used for two dimensions: {', '.join(names)}")

    @property
    def count(self) -> int:
        """Count the dimensions."""
        return 2 + len(self.attributes)


def derive_filters(
    subscriptions: Iterable[Subscription], dimensions: Dimensions, limit: int = LIMIT
) -> tuple[Box, ...]:
    """Derive boxes, sorted, so that each event that satisfies a subscription meets one.

    They are at most `limit`, none covered by another; none at all if nothing can ever match. The
    time grows with the subscriptions as that of sorting them.
    """
    if not 1 <= limit <= PEER_FILTERS_MAX:
        raise InvalidInput(f"a peer may have from 1 to {PEER_FILTERS_MAX} boxes, not {limit}")
    found: dict[Box, None] = {}
    for subscription in subscriptions:
        for filter_ in subscription.predicate.filters:
            found.update(dict.fromkeys(_boxes_of(filter_, dimensions)))
    whole = everything(dimensions.count)
    if whole in found:
        return (whole,)
    rows = merge(np.array(sorted(found)), limit) if found else np.empty((0, 0))
    return tuple(sorted(tuple(row) for row in rows.tolist()))


def event_box(event: Event | Mapping[str, Any], dimensions: Dimensions) -> Box:
    """Return the box of an event; the side of an attribute that it lacks is inverted.

    A geometry that the matcher would refuse is refused here too.
    """
    known = read_event(event)
    shape = known.geometry(dimensions.geometry)
    west, south, east, north = (inf, inf, -inf, -inf) if shape is None else shape.bounds
    values = [known.value(name) for name in dimensions.attributes]
    sides = [_round_outwards(value) if is_number(value) else _INVERTED for value in values]
    return _as_box((west, south, east, north), sides)


def _boxes_of(filter_: Filter, dimensions: Dimensions) -> list[Box]:
    """Return the boxes of one filter, the AND of its constraints; none if they contradict."""
    sides = [_find_side(filter_, name) for name in dimensions.attributes]
    if any(low > high for low, high in sides):
        return []
    return [_as_box(place, sides) for place in _find_places(filter_, dimensions.geometry)]


def _as_box(place: Rectangle, sides: list[Side]) -> Box:
    west, south, east, north = place
    return (west, south, *(low for low, _ in sides), east, north, *(high for _, high in sides))


# Numbers


def _find_side(filter_: Filter, name: str) -> Side:
    sides = [_OPEN, *(_side_of(constraint, name) for constraint in filter_.constraints)]
    return max(low for low, _ in sides), min(high for _, high in sides)


def _side_of(constraint: Constraint, name: str) -> Side:
    if constraint.is_negated:
        return _OPEN
    match constraint.test:
        case Comparison(operator, Attribute(found), Literal(value)) if found == name:
            return _compared(operator, value)
        case In(Attribute(found), choices) if found == name:
            sides = [_compared("=", c.value) if isinstance(c, Literal) else _OPEN for c in choices]
            return min(low for low, _ in sides), max(high for _, high in sides)
    return _OPEN


def _compared(operator: str, value: Any) -> Side:
    """Bound what compares so with a literal; nothing does with null, texts do with texts."""
    if value is None:
        return _INVERTED
    if operator == "<>" or not is_number(value):
        return _OPEN
    low, high = _round_outwards(value)
    return -inf if operator[0] == "<" else low, inf if operator[0] == ">" else high


def _round_outwards(number: Any) -> Side:
    """Return the doubles around a number of any size, twice the same if it is one itself."""
    try:
        near = float(number)
    except OverflowError:
        near = inf if number > 0 else -inf
    low = near if near <= number else nextafter(near, -inf)
    return low, near if near >= number else nextafter(near, inf)


# Space


def _find_places(filter_: Filter, name: str) -> list[Rectangle]:
    """Find rectangles so that each geometry that satisfies the filter meets one."""
    within = _EVERYWHERE
    touched = [[_EVERYWHERE]]
    for constraint in filter_.constraints:
        is_negated = constraint.is_negated
        match constraint.test:
            case Spatial(relation, Attribute(found), Literal(BaseGeometry() as shape)):
                if found == name and not is_negated and relation.keeps_inside():
                    within = _cut(within, shape.bounds)
                if found == name and _needs_contact(relation, is_negated):
                    touched.append([part.bounds for part in _parts_of(shape)])
            case DistanceWithin(
                Attribute(found), Literal(BaseGeometry() as shape), Literal(radius)
            ):
                if found == name and not is_negated:
                    touched.append(_reached(shape, radius))
    choices = [
        [cut for place in places if _is_place(cut := _cut(place, within))] for places in touched
    ]
    return min(choices, key=_extent) if all(choices) else []


def _needs_contact(relation: SpatialRelation, is_negated: bool) -> bool:
    return relation.meeting is False if is_negated else not relation.holds_when_apart()


def _reached(shape: BaseGeometry, radius_m: Any) -> list[Rectangle]:
    """Return the rectangles, cut at 180°, that hold everything so near a geometry."""
    if not is_number(radius_m) or radius_m < 0:
        return []
    metres = float(min(radius_m, _RADIUS_M_MAX))
    halves = [half for part in _parts_of(shape) for half in _parts_of(reach(part, metres))]
    return [half.bounds for half in halves]


def _parts_of(shape: BaseGeometry) -> list[BaseGeometry]:
    count = shapely.get_num_geometries(shape)
    return list(shapely.get_parts(shape)) if 1 < count <= _PARTS_MAX else [shape]


def _cut(a: Rectangle, b: Rectangle) -> Rectangle:
    return max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])


def _is_place(place: Rectangle) -> bool:
    return place[0] <= place[2] and place[1] <= place[3]


def _extent(places: list[Rectangle]) -> Side:
    """Measure places, by area and then by margin."""
    sides = [(east - west, north - south) for west, south, east, north in places]
    return sum(width * height for width, height in sides), sum(map(sum, sides))
