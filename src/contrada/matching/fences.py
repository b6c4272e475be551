"""Fences: subscriptions that a track can cross, and that a position can be near to.

A fence is a predicate that joins tests by AND, just one of which reads `geometry`: it asks whether
the event intersects, lies within, is covered by or is within a distance of a constant geometry.
`S_CONTAINS(POLYGON(…), geometry)` is `S_WITHIN(geometry, POLYGON(…))` and counts, and so does
`NOT S_DISJOINT`. The predicate is looked at as it was written, since what the simplifier takes out
must change no answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Floats, Positions
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import GEOMETRY
from contrada.model.expression import (
    And,
    Attribute,
    DistanceWithin,
    Expression,
    Literal,
    Not,
    Spatial,
    attributes,
)
from contrada.model.expression_parts import OperandType, list_operand_types


class FenceKind(IntEnum):
    """When the way of a track meets a fence: it touches it, enters its interior, or comes near."""

    TOUCHED = 0
    ENTERED = 1
    NEARED = 2


_KINDS = {
    "intersects": FenceKind.TOUCHED,
    "coveredBy": FenceKind.TOUCHED,
    "within": FenceKind.ENTERED,
}


@dataclass(frozen=True, slots=True)
class FenceForm:
    """What a predicate without its operands shows of a fence.

    `place` is that of the geometry among the operands; after it comes the distance, where there is
    one.
    """

    kind: FenceKind
    place: int


@dataclass(frozen=True, slots=True)
class FenceColumns:
    """The fences among subscriptions: their positions in order, and what a track is held against.

    `geometries` are numbers in the pool of the subscriptions; `radii_m` is 0 but for those that
    ask for a distance.
    """

    positions: Positions
    kinds: NDArray[np.uint8]
    geometries: Positions
    radii_m: Floats


def find_form(predicate: Expression) -> FenceForm | None:
    """Look at a predicate, with or without its operands; None where it is not a fence."""
    tests = predicate.arguments if isinstance(predicate, And) else (predicate,)
    reading = [number for number, test in enumerate(tests) if reads_geometry(test)]
    if len(reading) != 1:
        return None
    kind = _kind_of(tests[reading[0]])
    if kind is None:
        return None
    before = (list_operand_types(test) for test in tests[: reading[0]])
    return FenceForm(kind, sum(map(len, before)))


def reads_geometry(test: Expression) -> bool:
    """Whether a test reads the event's geometry, or a part of it."""
    names = attributes(test)
    return any(name == GEOMETRY or name.startswith(f"{GEOMETRY}.") for name in names)


def _kind_of(test: Expression) -> FenceKind | None:
    match test:
        case Not(Spatial(relation, left, right)) if (opposite := relation.negated()) is not None:
            return _kind_of(Spatial(opposite, left, right))
        case Spatial(relation, Attribute(name), Literal()) if name == GEOMETRY:
            is_held = list_operand_types(test) == [OperandType.GEOMETRY]
            return _KINDS.get(relation.name) if is_held else None
        case DistanceWithin(Attribute(name), Literal(), Literal()) if name == GEOMETRY:
            is_held = list_operand_types(test) == [OperandType.GEOMETRY, OperandType.NUMBER]
            return FenceKind.NEARED if is_held else None
    return None


def find_fences(columns: SubscriptionColumns) -> FenceColumns:
    """Find the fences among subscriptions, once for all that have the same skeleton."""
    expressions = columns.expressions
    parts: list[tuple[Positions, FenceKind, Positions, Floats]] = []
    for code, skeleton in enumerate(expressions.skeletons):
        form = find_form(skeleton)
        if form is None:
            continue
        at = expressions.numbers_of(code)
        radii_m = np.zeros(len(at))
        if form.kind is FenceKind.NEARED:
            radii_m = columns.pools.reals(expressions.operands_of(at, form.place + 1))
        parts.append((at, form.kind, expressions.operands_of(at, form.place), radii_m))
    positions = _join(part[0] for part in parts)
    kinds = np.concatenate([np.zeros(0), *(np.full(len(p[0]), p[1]) for p in parts)])
    radii = np.concatenate([np.zeros(0), *(part[3] for part in parts)])
    order = np.argsort(positions, kind="stable")
    geometries = _join(part[2] for part in parts)
    return FenceColumns(
        positions[order], kinds[order].astype(np.uint8), geometries[order], radii[order]
    )


def _join(parts: Iterable[Positions]) -> Positions:
    return np.concatenate([np.zeros(0, np.int64), *parts])
