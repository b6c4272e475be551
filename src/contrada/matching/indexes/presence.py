"""Presence: `IS NULL` and its negation, for attributes."""

import numpy as np

from contrada.arrays import Positions
from contrada.matching.indexes.operands import as_ids
from contrada.model.event import Event, Names
from contrada.model.expression import Attribute, IsNull
from contrada.model.subscription import Constraint


class PresenceIndex:
    """Constraints by attribute: those that want it, and those that hold unless it is there."""

    words = "presence of {}"

    def __init__(self) -> None:
        """Start empty."""
        self._names = Names(())
        self._wanted: dict[str, list[int]] = {}
        self._wanted_ids: dict[str, Positions] = {}
        self._unwanted: list[int] = []
        self._unwanted_ids = as_ids([])
        self._unwanted_at: dict[str, list[int]] = {}  # where the constraints are in the array

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take `IS NULL` and `IS NOT NULL` of an attribute."""
        test = constraint.test
        if not (isinstance(test, IsNull) and isinstance(test.value, Attribute)):
            return False
        if constraint.is_negated:
            self._wanted.setdefault(test.value.name, []).append(number)
        else:
            self._unwanted_at.setdefault(test.value.name, []).append(len(self._unwanted))
            self._unwanted.append(number)
        return True

    def freeze(self) -> None:
        """Write the numbers as arrays."""
        self._names = Names([*self._wanted, *self._unwanted_at])
        self._wanted_ids = {name: as_ids(numbers) for name, numbers in self._wanted.items()}
        self._unwanted_ids = as_ids(self._unwanted)

    def satisfied(self, event: Event) -> list[Positions]:
        """Look up the attributes that the event has; all others are null."""
        there = [name for name in event.find_names(self._names) if event.value(name) is not None]
        found = [self._wanted_ids[name] for name in there if name in self._wanted_ids]
        if self._unwanted:
            broken = [at for name in there for at in self._unwanted_at.get(name, ())]
            found.append(np.delete(self._unwanted_ids, broken) if broken else self._unwanted_ids)
        return found
