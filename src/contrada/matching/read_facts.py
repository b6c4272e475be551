"""What predicates read of events: found once for each skeleton, however many share it."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from contrada.language.expecting import Kinds
from contrada.matching.mismatches import list_expectations
from contrada.model.expression import (
    DistanceWithin,
    Expression,
    attributes,
    children,
    geometry_attributes,
)


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """What predicates read of events."""

    attributes: frozenset[str]
    geometry_attributes: frozenset[str]
    expectations: frozenset[tuple[str, Kinds]]  # the kinds of values that they expect
    has_distances: bool

    @staticmethod
    def of(skeleton: Expression) -> "ReadFacts":
        """Look at one predicate, with or without its operands."""
        return ReadFacts(
            frozenset(attributes(skeleton)),
            frozenset(geometry_attributes(skeleton)),
            list_expectations([skeleton]),
            any(isinstance(node, DistanceWithin) for node in _walk(skeleton)),
        )

    @staticmethod
    def join(parts: "Collection[ReadFacts]") -> "ReadFacts":
        """Return what several predicates read together."""
        return ReadFacts(
            frozenset[str]().union(*(part.attributes for part in parts)),
            frozenset[str]().union(*(part.geometry_attributes for part in parts)),
            frozenset[tuple[str, Kinds]]().union(*(part.expectations for part in parts)),
            any(part.has_distances for part in parts),
        )


def _walk(expression: Expression) -> Iterator[Expression]:
    yield expression
    for child in children(expression):
        yield from _walk(child)
