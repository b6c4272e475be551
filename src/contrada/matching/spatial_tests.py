"""The relations to literal geometries in a subscription."""

from collections.abc import Iterator

from shapely.geometry.base import BaseGeometry

from contrada.model.expression import Literal, Spatial
from contrada.model.subscription import Subscription


def list_spatial_tests(subscription: Subscription) -> Iterator[tuple[Spatial, BaseGeometry]]:
    """List the relations to geometries that a subscription has, each with its geometry."""
    for filter_ in subscription.predicate.filters:
        for constraint in filter_.constraints:
            match constraint.test:
                case Spatial(_, _, Literal(BaseGeometry() as geometry)) as test:
                    yield test, geometry
