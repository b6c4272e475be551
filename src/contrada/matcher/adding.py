"""What `add` and `add_many` make subscriptions of; what cannot be one is refused or left out."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from contrada.arrays import Positions
from contrada.errors import InvalidInput
from contrada.files import Rows
from contrada.flags import check_flags
from contrada.matcher.column_sources import ColumnSource
from contrada.matcher.holding import Faults
from contrada.matcher.refusing import RefusedRows
from contrada.matching.subscribing import (
    SUBSCRIPTION_COLUMNS,
    HearBad,
    PredicateReader,
    SubscriptionRows,
    read_subscriptions,
)
from contrada.matching.subscription_columns import SubscriptionColumns, pack_subscriptions
from contrada.model.attribute_names import read_attribute
from contrada.model.event import GEOMETRY, Event
from contrada.model.relation import Relation, find_relation
from contrada.model.row_columns import BESIDE_GEOMETRY, NEEDED_COLUMNS, can_subscribe
from contrada.model.subscription import Predicate, Subscription
from contrada.showing import brief, listed


def combine_arguments(
    reader: PredicateReader,
    filter: str | Mapping[str, Any] | bool | None,
    geometry: Any,
    relation: str | Relation,
    where: str | Mapping[str, Any] | None,
    attribute: str,
    repair: bool,
) -> Predicate:
    """Make the predicate of `add` from a filter, or from a geometry and what goes with it."""
    check_flags(repair=repair)
    if filter is None and geometry is None:
        raise InvalidInput("there is neither a filter nor a geometry")
    if filter is not None:
        if geometry is not None:
            raise InvalidInput("give either a filter or a geometry with `where`, not both")
        beside = {"relation": relation, "where": where, "attribute": attribute}
        for column in BESIDE_GEOMETRY:
            value = beside[column.name]
            is_default = isinstance(value, str) and value == column.default
            if value is not None and not is_default:
                raise InvalidInput(
                    f"`{column.name}` ({brief(value)}) needs a geometry, not a filter"
                )
        return reader.parse(filter)
    shape = Event({GEOMETRY: geometry}, repair=repair, place="").geometry(GEOMETRY)
    if shape is None:
        raise InvalidInput(f"{brief(geometry)} is empty or not a geometry")
    name = read_attribute(attribute, "")
    return reader.combine(shape, find_relation(relation), name, where)


class IncomingRows:
    """What comes from one source on its way into a matcher: read, then settled, then reported.

    `columns` are the subscriptions that were read, `mended` counts those that `repair` changed.
    """

    def __init__(
        self,
        rows: Rows,
        id_column: str | None,
        id_wanted: str | None,
        quarantine: bool,
        on_bad: HearBad | None,
    ) -> None:
        """Refuse a table in which no row can be a subscription."""
        if not rows.geometry_columns and not can_subscribe(rows.schema.names):
            raise InvalidInput(
                f"{rows.name}: a subscription needs a column {NEEDED_COLUMNS}; "
                f"it has {listed(rows.schema.names)}"
            )
        self._rows, self._id_column = rows, id_column
        self._quarantine, self._on_bad = quarantine, on_bad
        self.columns = pack_subscriptions([])
        self.mended = self._judged_out = 0
        self._row_of = np.zeros(0, np.int64)
        self._refused = RefusedRows(rows, id_column, id_wanted, quarantine, on_bad)
        self._rows_count = 0
        self._left_out: Faults = []

    def read(self, reader: PredicateReader, repair: bool) -> None:
        """Read all rows; bad ones are kept for `settle`, or left out."""
        places = self._rows.geometry_columns[:1]
        wanted = {self._id_column, *SUBSCRIPTION_COLUMNS, *places}
        names = [name for name in self._rows.schema.names if name in wanted]
        found = SubscriptionRows()
        for batch, told in self._rows.narrowed(names).judged(names, compact=places):
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
                rows=found,
                told=told,
            )
            self._rows_count += batch.num_rows
        self.columns, self._row_of = found.columns, found.rows
        self.mended, self._judged_out = found.mended, found.left_out

    def take(self, columns: SubscriptionColumns) -> None:
        """Take the subscriptions of a file as they lie in it, which is in the order of its rows."""
        self.columns, self._rows_count = columns, len(columns)
        self._row_of = np.arange(len(columns))

    def remake(
        self, source: ColumnSource, columns: SubscriptionColumns, reader: PredicateReader
    ) -> None:
        """Take the subscriptions of a file with filters made anew; bad ones as `read` does.

        What is wrong with one of them is said of its row.
        """
        made: list[Subscription] = []
        refused: list[int] = []
        for position, known in enumerate(columns):
            try:
                predicate = reader.remake(known.predicate)
                made.append(Subscription(known.id, predicate, known.subscriber))
            except InvalidInput:
                refused.append(position)
        self._rows_count = len(columns)
        self.columns = pack_subscriptions(made)
        self._row_of = np.delete(np.arange(len(columns)), refused)
        self._refuse_rows(source, np.array(refused, np.int64), reader)

    def _refuse_rows(
        self, source: ColumnSource, positions: Positions, reader: PredicateReader
    ) -> None:
        for position, row in zip(positions.tolist(), source.rows_at(positions), strict=True):
            read_subscriptions(
                row,
                position,
                self._rows.name,
                reader=reader,
                geometry_columns=self._rows.geometry_columns,
                id_column=self._id_column,
                repair=False,
                on_bad=None,
                on_refused=self._refused.add,
                rows=SubscriptionRows(),
            )

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
        return self._judged_out + self._refused.count

    @property
    def added(self) -> int:
        """How many subscriptions were added."""
        return len(self.columns) - len(self._left_out)

    def _refuse(self, faults: Faults) -> None:
        for position, error in faults:
            id_ = self.columns.ids.one(position)
            self._refused.add(int(self._row_of[position]), id_, error)
