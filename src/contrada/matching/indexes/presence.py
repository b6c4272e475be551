"""Presence: `IS NULL` and its negation, for attributes."""

from contrada.matching.indexes.operands import as_ids
from contrada.matching.table import Ids
from contrada.model.event import Event
from contrada.model.expression import Attribute, IsNull
from contrada.model.subscription import Constraint


class PresenceIndex:
    """Constraints by attribute and by whether it must be there."""

    def __init__(self) -> None:
        """Start empty."""
        self._numbers: dict[tuple[str, bool], list[int]] = {}
        self._ids: dict[tuple[str, bool], Ids] = {}

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take `IS NULL` and `IS NOT NULL` of an attribute."""
        test = constraint.test
        if not (isinstance(test, IsNull) and isinstance(test.value, Attribute)):
            return False
        self._numbers.setdefault((test.value.name, constraint.is_negated), []).append(number)
        return True

    def freeze(self) -> None:
        """Write the numbers as arrays."""
        self._ids = {key: as_ids(numbers) for key, numbers in self._numbers.items()}

    def satisfied(self, event: Event) -> list[Ids]:
        """Look each attribute up."""
        return [
            ids
            for (name, must_be_there), ids in self._ids.items()
            if (event.value(name) is not None) == must_be_there
        ]
