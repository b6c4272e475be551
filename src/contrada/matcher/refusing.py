"""Bad rows of a table of subscriptions: refused all at once, or left out one by one."""

from heapq import heappush, heappushpop

from contrada.errors import BAD_ROWS_SHOWN_MAX, BadRows, InvalidInput, Remedy
from contrada.files import Rows
from contrada.files.rows import place_of
from contrada.matching.subscribing import HearBad
from contrada.model.subscription import Id
from contrada.showing import brief


class RefusedRows:
    """Counts bad rows; of those that will be refused it keeps the first, as many as are shown."""

    def __init__(
        self,
        rows: Rows,
        id_column: str | None,
        id_wanted: str | None,
        quarantine: bool,
        on_bad: HearBad | None,
    ) -> None:
        """Leave bad rows out and report them to `on_bad`, or keep them for a refusal.

        `id_column` is the column of ids, `id_wanted` the one that was asked for, if any.
        """
        self._rows, self._has_ids = rows, id_column is not None
        self._can_be_numbered = id_wanted is not None and "id" not in rows.schema.names
        self._quarantine, self._on_bad = quarantine, on_bad
        self._first: list[tuple[int, str]] = []  # a heap with the last of them on top
        self._remedies: dict[Remedy, None] = {}
        self.count = self._repeated = 0

    def add(self, row: int, id_: Id | None, error: InvalidInput) -> None:
        """Take in a bad row."""
        self.count += 1
        if self._quarantine:
            if self._on_bad is not None:
                self._on_bad(row, id_, error.message, False)
            return
        self._remedies |= dict.fromkeys(error.remedies)
        self._repeated += Remedy.REPLACE in error.remedies
        shown = f", id {brief(id_)}" if self._has_ids and id_ is not None else ""
        joint = ", " if error.place else ": "
        fault = (-row, f"{shown}{joint}{error.message}")
        if len(self._first) < BAD_ROWS_SHOWN_MAX:
            heappush(self._first, fault)
        else:
            heappushpop(self._first, fault)

    def refuse(self, total: int) -> None:
        """Refuse the bad rows among all, unless they are left out."""
        if self._quarantine or not self.count:
            return
        find_line = self._rows.line_finder()
        shown = [
            f"{place_of(-row, find_line(-row))}{reason}"
            for row, reason in sorted(self._first, reverse=True)
        ]
        remedies = self._list_remedies()
        name = self._rows.name
        if self.count == 1:
            raise InvalidInput(f"{name}, {shown[0]}", remedies=remedies)
        summary = f"{name}: {self.count:,} of {total:,} subscriptions cannot be used"
        raise BadRows(summary, shown, self.count, remedies)

    def _list_remedies(self) -> list[Remedy]:
        if not self._repeated:
            return [*self._remedies, Remedy.QUARANTINE_SUBSCRIPTIONS]
        if not self._can_be_numbered:  # perhaps another column tells rows apart
            return [*self._remedies, Remedy.SUBSCRIPTION_ID, Remedy.QUARANTINE_SUBSCRIPTIONS]
        # Rows that share what was taken for an id are parts of one thing: none should be lost.
        others = [Remedy.QUARANTINE_SUBSCRIPTIONS] if self.count > self._repeated else []
        return [*self._remedies, Remedy.ROW_NUMBERS, *others]
