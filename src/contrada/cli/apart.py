"""Where events and subscriptions lie, if they lie apart: the likeliest reason of no match."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput
from contrada.files import Rows
from contrada.matching.columns import read_geometries
from contrada.model.event import GEOMETRY
from contrada.model.expression import (
    Attribute,
    DistanceWithin,
    Expression,
    Literal,
    Spatial,
    children,
)
from contrada.model.geometry import as_array
from contrada.model.subscription import Subscription

_EVENTS_MAX = 1_000_000  # that are looked at
_X_MAX, _Y_MAX = 360, 90  # of degrees

BoxOrNothing = NDArray[np.float64]  # west, south, east, north; NaN where there is nothing


def box_of_subscriptions(subscriptions: Iterable[Subscription], column: str) -> BoxOrNothing:
    """Return the box of all geometries that the events' geometry, in `column`, is related to."""
    trees = (subscription.predicate.expression for subscription in subscriptions)
    shapes = [shape for tree in trees for shape in _list_shapes(tree, {GEOMETRY, column})]
    return _join(shapely.bounds(as_array(shapes)).reshape(-1, 4))


def describe_apart(find_box: Callable[[], BoxOrNothing], events: Rows, column: str) -> str | None:
    """Describe where subscriptions and events lie, if their boxes have no point in common.

    `find_box` finds that of the subscriptions, and `column` has the events' geometry. Of very many
    events only the first are looked at.
    """
    if column not in events.schema.names:
        return None
    wanted = find_box()
    if np.isnan(wanted).any():
        return None
    with suppress(InvalidInput):  # what can be read only once has been
        found = _box_of_events(events, column)
        if not np.isnan(found).any() and not _meet(found, wanted):
            return (
                f"events and subscriptions lie apart: events have {_show(found)}, subscriptions "
                f"{_show(wanted)}{_guess(found, wanted)}"
            )
    return None


def _list_shapes(expression: Expression, names: set[str]) -> Iterator[BaseGeometry]:
    """List the geometries that attributes of some names are related to."""
    match expression:
        case (
            Spatial(_, Attribute(name), Literal(value))
            | DistanceWithin(Attribute(name), Literal(value), _)
            | DistanceWithin(Literal(value), Attribute(name), _)
        ) if name in names and isinstance(value, BaseGeometry):
            yield value
    for child in children(expression):
        yield from _list_shapes(child, names)


def _box_of_events(events: Rows, column: str) -> BoxOrNothing:
    box, count = np.full(4, np.nan), 0
    for batch, _ in events.narrowed([column]).judged():
        geometries = read_geometries(batch.column(column))
        points = np.column_stack([geometries.x, geometries.y])[geometries.is_point]
        shapes = shapely.bounds(geometries.shapes)
        box = _join(np.vstack([box, np.tile(points, 2), shapes]))
        count += batch.num_rows
        if count >= _EVENTS_MAX:
            break
    return box


def _join(boxes: BoxOrNothing) -> BoxOrNothing:
    """Return the box around boxes; empty ones, which are NaN, do not count."""
    low = np.fmin.reduce(boxes[:, :2], initial=np.nan)
    return np.concatenate([low, np.fmax.reduce(boxes[:, 2:], initial=np.nan)])


def _meet(a: BoxOrNothing, b: BoxOrNothing) -> bool:
    return bool((a[:2] <= b[2:]).all() and (b[:2] <= a[2:]).all())


def _show(box: BoxOrNothing) -> str:
    west, south, east, north = box.tolist()
    return f"x from {west:.8g} to {east:.8g} and y from {south:.8g} to {north:.8g}"


def _guess(events: BoxOrNothing, subscriptions: BoxOrNothing) -> str:
    if _meet(events[[1, 0, 3, 2]], subscriptions):
        return "; are x and y swapped in one of the files?"
    for turn in (360, -360):
        if _meet(events + np.array([turn, 0, turn, 0]), subscriptions):
            return (
                "; do longitudes go from 0 to 360 in one of the files, and from -180 in the other?"
            )
    can_be_degrees = [
        bool((np.abs(box) <= [_X_MAX, _Y_MAX, _X_MAX, _Y_MAX]).all())
        for box in (events, subscriptions)
    ]
    if can_be_degrees[0] != can_be_degrees[1]:
        whose = "subscriptions" if can_be_degrees[0] else "events"
        return f"; the {whose} are not in degrees: reproject them"
    return ""
