"""The values of one attribute that satisfy a constraint, as far as they are easily described.

Numbers, texts and moments are ordered; a set is a few values, or a range, or all but a few values.
A text that reads as a moment has no such set: it is compared as a moment with a moment, as a text
with a text, and the two orders differ.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from contrada.matching.indexes.operands import literal_keys
from contrada.model.expression import Attribute, Comparison, Expression, In, Literal
from contrada.model.subscription import Constraint

Bits = int


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Values of one kind: those in `only`, or those in a range and not in `without`.

    An end that is None is open to infinity; `includes_low` and `includes_high` state whether an
    end belongs to the range.
    """

    kind: str
    only: tuple[Any, ...] | None = None
    low: Any = None
    includes_low: bool = False
    high: Any = None
    includes_high: bool = False
    without: tuple[Any, ...] = ()

    def named(self) -> Iterable[Any]:
        """List the values that the set names."""
        ends = (end for end in (self.low, self.high) if end is not None)
        return (*(self.only or ()), *ends, *self.without)

    def is_stricter(self, other: "ValueSet") -> bool:
        """Whether this set is the smaller one, where both are bounded at the same end alone."""
        if self.low is not None:
            return bool(
                self.low > other.low
                or (self.low == other.low and other.includes_low and not self.includes_low)
            )
        return bool(
            self.high < other.high
            or (self.high == other.high and other.includes_high and not self.includes_high)
        )


def value_set(constraint: Constraint) -> ValueSet | None:
    """Describe the values that satisfy a constraint; None where this cannot be done."""
    match constraint.test:
        case Comparison(operator, Attribute(), Literal(value)) if not constraint.is_negated:
            return _compared(operator, value)
        case In(Attribute(), choices):
            return _chosen(choices, constraint.is_negated)
    return None


def _kind(value: Any) -> str | None:
    """Name the one kind of value that a literal is compared with; None where there are several."""
    keys = literal_keys(value)
    return keys[0][0] if len(keys) == 1 else None


def _compared(operator: str, value: Any) -> ValueSet | None:
    kind = _kind(value)
    if kind is None:
        return None
    match operator:
        case "=":
            return ValueSet(kind, only=(value,))
        case "<>":
            return ValueSet(kind, without=(value,))
        case "<" | "<=":
            return (
                None
                if kind == "boolean"
                else ValueSet(kind, high=value, includes_high=operator == "<=")
            )
        case _:
            return (
                None
                if kind == "boolean"
                else ValueSet(kind, low=value, includes_low=operator == ">=")
            )


def _chosen(choices: tuple[Expression, ...], is_negated: bool) -> ValueSet | None:
    values = tuple(choice.value for choice in choices if isinstance(choice, Literal))
    kinds = {_kind(value) for value in values}
    if len(values) != len(choices) or len(kinds) != 1 or None in kinds:
        return None
    (kind,) = kinds
    assert kind is not None
    return ValueSet(kind, without=values) if is_negated else ValueSet(kind, only=values)


def write_bits(sets: Sequence[ValueSet]) -> list[Bits]:
    """Write sets of one kind as bits: one for each value that any of them names, and one for each
    gap before, between and after these. A gap counts as if there were always a value in it."""
    axis = [value for value, _ in groupby(sorted(v for set_ in sets for v in set_.named()))]
    return [_write(set_, axis) for set_ in sets]


def _write(set_: ValueSet, axis: list[Any]) -> Bits:
    if set_.only is not None:
        return _join(_place(value, axis) for value in set_.only)
    low = 0 if set_.low is None else _place(set_.low, axis) + (not set_.includes_low)
    high = (
        2 * len(axis) if set_.high is None else _place(set_.high, axis) - (not set_.includes_high)
    )
    return (1 << high + 1) - (1 << low) & ~_join(_place(value, axis) for value in set_.without)


def _place(value: Any, axis: list[Any]) -> int:
    return 2 * bisect_left(axis, value) + 1


def _join(places: Iterable[int]) -> Bits:
    """Set some bits, in time that follows their number and the highest."""
    chosen = list(places)
    if len(chosen) < 2:
        return sum(1 << place for place in chosen)
    row = bytearray(max(chosen, default=0) // 8 + 1)
    for place in chosen:
        row[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(row, "little")
