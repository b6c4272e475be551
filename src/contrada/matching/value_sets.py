"""The values of one attribute that satisfy a constraint, as far as they are easily described.

Numbers, texts and moments are ordered; a set is a few values, or a range without a few values.
A text that reads as a moment has no such set: it is compared as a moment with a moment, as a text
with a text, and the two orders differ.
"""

from dataclasses import dataclass
from typing import Any

from contrada.matching.indexes.operands import literal_keys
from contrada.model.expression import Attribute, Comparison, Expression, In, Literal
from contrada.model.subscription import Constraint


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Values of one kind: those in `only`, or those in a range and not in `without`.

    An end that is None is open to infinity; `includes_low` and `includes_high` tell whether an
    end belongs to the range.
    """

    kind: str
    only: frozenset[Any] | None = None
    low: Any = None
    includes_low: bool = False
    high: Any = None
    includes_high: bool = False
    without: frozenset[Any] = frozenset()

    def holds(self, value: Any) -> bool:
        """Tell whether a value of the same kind is in the set."""
        if self.only is not None:
            return value in self.only
        if value in self.without:
            return False
        if self.low is not None and not (
            value > self.low or (self.includes_low and value == self.low)
        ):
            return False
        return self.high is None or value < self.high or (self.includes_high and value == self.high)

    def is_within(self, other: "ValueSet") -> bool:
        """Tell whether every value of this set is in the other."""
        if self.kind != other.kind:
            return False
        if self.only is not None:
            return all(other.holds(value) for value in self.only)
        if other.only is not None:
            return False
        return (
            self._starts_within(other)
            and self._ends_within(other)
            and not any(self.holds(value) for value in other.without)
        )

    def is_apart_from(self, other: "ValueSet") -> bool:
        """Tell whether no value is in both sets."""
        if self.kind != other.kind:
            return {self.kind, other.kind} != {"text", "time"}  # a text may also be a moment
        for a, b in ((self, other), (other, self)):
            if a.only is not None:
                return not any(b.holds(value) for value in a.only)
        return self._ends_before(other) or other._ends_before(self)

    def _starts_within(self, other: "ValueSet") -> bool:
        if other.low is None:
            return True
        if self.low is None:
            return False
        is_same = self.low == other.low
        return bool(
            self.low > other.low or (is_same and (other.includes_low or not self.includes_low))
        )

    def _ends_within(self, other: "ValueSet") -> bool:
        if other.high is None:
            return True
        if self.high is None:
            return False
        is_same = self.high == other.high
        return bool(
            self.high < other.high or (is_same and (other.includes_high or not self.includes_high))
        )

    def _ends_before(self, other: "ValueSet") -> bool:
        if self.high is None or other.low is None:
            return False
        is_same = self.high == other.low
        return bool(
            self.high < other.low or (is_same and not (self.includes_high and other.includes_low))
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
            return ValueSet(kind, only=frozenset({value}))
        case "<>":
            return ValueSet(kind, without=frozenset({value}))
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
    values = [choice.value for choice in choices if isinstance(choice, Literal)]
    kinds = {_kind(value) for value in values}
    if len(values) != len(choices) or len(kinds) != 1 or None in kinds:
        return None
    (kind,) = kinds
    assert kind is not None
    if is_negated:
        return ValueSet(kind, without=frozenset(values))
    return ValueSet(kind, only=frozenset(values))
