"""Constraint, filter, predicate, subscription.

A constraint is one test or its negation; a filter is satisfied where all of its constraints are
true; a predicate where one of its filters is.
"""

from dataclasses import dataclass
from typing import TypeAlias

from contrada.model.expression import Expression, attributes, geometry_attributes

Id: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class Constraint:
    """One test that must be true, or, if negated, false. Unknown is neither."""

    test: Expression
    is_negated: bool = False

    def attributes(self) -> tuple[str, ...]:
        """Name the attributes that it reads, each once."""
        return tuple(dict.fromkeys(attributes(self.test)))


@dataclass(frozen=True, slots=True)
class Filter:
    """The AND of its constraints; without any it is always satisfied."""

    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class Predicate:
    """The OR of its filters, and the tree that they came from; without any it never holds."""

    expression: Expression
    filters: tuple[Filter, ...]

    def attributes(self) -> tuple[str, ...]:
        """Name the attributes that it reads, each once."""
        return tuple(dict.fromkeys(attributes(self.expression)))

    def geometry_attributes(self) -> tuple[str, ...]:
        """Name the attributes that it reads as geometries, each once."""
        return tuple(dict.fromkeys(geometry_attributes(self.expression)))


@dataclass(frozen=True, slots=True)
class Subscription:
    """Who wants what: an id, a predicate, and the subscriber to whom matches are forwarded.

    `Matcher.add` makes one and `Matcher.get` returns it.

    >>> matcher = contrada.Matcher()
    >>> matcher.add("gale", "wind > 17", subscriber="ops")
    >>> gale = matcher.get("gale")
    >>> gale.id, gale.subscriber, isinstance(gale, contrada.Subscription)
    ('gale', 'ops', True)
    """

    id: Id
    predicate: Predicate
    subscriber: Id | None = None
