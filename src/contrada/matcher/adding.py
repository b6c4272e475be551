"""The rows of `add_many`: read, and those that cannot be added refused or left out."""

from contrada.errors import InvalidInput
from contrada.files import Rows
from contrada.matcher.holding import Faults
from contrada.matcher.refusing import RefusedRows
from contrada.matching.subscribing import (
    SUBSCRIPTION_COLUMNS,
    OnBad,
    PredicateReader,
    SubscriptionRows,
    read_subscriptions,
)
from contrada.model.event import GEOMETRY
from contrada.showing import listed


class IncomingRows:
    """The rows of one table on their way into a matcher: read, then settled, then reported."""

    def __init__(
        self,
        rows: Rows,
        id_column: str | None,
        id_wanted: str | None,
        quarantine: bool,
        on_bad: OnBad | None,
    ) -> None:
        """Refuse a table in which no row can be a subscription."""
        if not ({"filter", GEOMETRY, *rows.geometry_columns[:1]} & set(rows.schema.names)):
            raise InvalidInput(
                f"{rows.name}: a subscription needs a column 'filter' or 'geometry'; "
                f"it has {listed(rows.schema.names)}"
            )
        self._rows, self._id_column = rows, id_column
        self._quarantine, self._on_bad = quarantine, on_bad
        self._found = SubscriptionRows()
        self._refused = RefusedRows(rows, id_column, id_wanted, quarantine, on_bad)
        self._rows_count = 0
        self._left_out: Faults = []

    def read(self, reader: PredicateReader, repair: bool) -> SubscriptionRows:
        """Read all rows; bad ones are kept for `settle`, or left out."""
        wanted = {self._id_column, *SUBSCRIPTION_COLUMNS, *self._rows.geometry_columns[:1]}
        names = [name for name in self._rows.schema.names if name in wanted]
        read = [] if self._id_column is None else [self._id_column]
        for batch, told in self._rows.narrowed(names).judged(read):
            read_subscriptions(
                batch,
                self._rows_count,
                self._rows.name,
                reader=reader,
                geometry_columns=self._rows.geometry_columns,
                id_column=self._id_column,
                repair=repair,
                on_bad=self._on_bad,
                on_refused=self._refused.add,
                rows=self._found,
                told=told,
            )
            self._rows_count += batch.num_rows
        return self._found

    def settle(self, faults: Faults) -> None:
        """Refuse all rows if one is bad or cannot be added; or leave out those."""
        if self._quarantine:
            self._left_out = faults  # `on_bad` is called when others may write again
            return
        self._refuse(faults)
        self._refused.refuse(self._rows_count)

    def tell_left_out(self) -> int:
        """Pass the rows that were settled to `on_bad`; count all that were left out."""
        self._refuse(self._left_out)
        return self._found.left_out + self._refused.count

    @property
    def added(self) -> int:
        """How many subscriptions were added."""
        return len(self._found.columns) - len(self._left_out)

    def _refuse(self, faults: Faults) -> None:
        for position, error in faults:
            id_ = self._found.columns.ids.one(position)
            self._refused.add(int(self._found.rows[position]), id_, error, ": ")
