"""What a map shows of subscriptions: all geometries of a predicate, and its text without them."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.cli.drawn_events import as_text
from contrada.language.values import is_number
from contrada.language.write import to_text
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
from contrada.pictures import Layer
from contrada.pictures.reaches import area_within
from contrada.showing import brief_text

_TEXT_LENGTH_MAX = 200


def layer_of(
    subscriptions: Sequence[Subscription],
    partner_counts: NDArray[np.int64],
    kept: Mapping[str, Sequence[str]],
) -> Layer:
    """Make the layer of subscriptions, with the number of partners of each and what is kept."""
    attributes: dict[str, Sequence[str]] = {
        **kept,
        "wants": Texts(subscriptions, lambda s: write_briefly(s.predicate.expression)),
    }
    if any(s.subscriber is not None for s in subscriptions):
        attributes["subscriber"] = Texts(subscriptions, lambda s: as_text(s.subscriber))
    return Layer(
        "subscriptions",
        as_array([find_shape(s.predicate.expression) for s in subscriptions]),
        [str(s.id) for s in subscriptions],
        partner_counts > 0,
        "subscription",
        partner_counts=partner_counts,
        attributes=attributes,
    )


class Texts(Sequence[str]):
    """Texts of things, written when they are asked for: a map shows some of many."""

    def __init__(self, things: Sequence[Any], write: Callable[[Any], str]) -> None:
        """Take the function that writes the text of one."""
        self._things, self._write = things, write

    def __len__(self) -> int:
        return len(self._things)

    def __getitem__(self, place: Any) -> Any:
        return self._write(self._things[place])


def find_shape(expression: Expression) -> BaseGeometry | None:
    """Return what a person would draw for a predicate: its geometries and distances around them."""
    shapes = list(_shapes(expression))
    return shapely.GeometryCollection(shapes) if len(shapes) > 1 else next(iter(shapes), None)


def _shapes(expression: Expression) -> Iterator[BaseGeometry]:
    if isinstance(expression, Spatial | DistanceWithin):
        for side in (expression.left, expression.right):
            if isinstance(side, Literal) and isinstance(side.value, BaseGeometry):
                yield _reach(side.value, expression)
        return
    for child in children(expression):
        yield from _shapes(child)


def _reach(shape: BaseGeometry, expression: Spatial | DistanceWithin) -> BaseGeometry:
    if isinstance(expression, Spatial) or not isinstance(expression.radius_m, Literal):
        return shape
    radius_m: Any = expression.radius_m.value
    return area_within(shape, float(radius_m)) if is_number(radius_m) else shape


def write_briefly(expression: Expression) -> str:
    """Write a predicate as short CQL2 text, without the coordinates of its geometries."""
    text = to_text(_without_coordinates(expression))
    return brief_text(re.sub(r'"([A-Z]+\(…\))"', r"\1", text), _TEXT_LENGTH_MAX)


def _without_coordinates(expression: Expression) -> Expression:
    """Put a name in the place of each geometry."""
    if isinstance(expression, Literal) and isinstance(expression.value, BaseGeometry):
        return Attribute(f"{expression.value.geom_type.upper()}(…)")
    if isinstance(expression, Literal | Attribute):
        return expression
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(expression):
        value = getattr(expression, field.name)
        if isinstance(value, tuple):
            changes[field.name] = tuple(map(_without_coordinates, value))
        elif isinstance(value, Expression):
            changes[field.name] = _without_coordinates(value)
    return dataclasses.replace(expression, **changes)
