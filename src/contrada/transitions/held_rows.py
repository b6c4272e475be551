"""The events of positions that wait: tables of any schema, kept as they came."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions


class HeldRows:
    """Event rows in one table for each schema; rows are numbered through all of them."""

    __slots__ = ("tables",)

    def __init__(self, tables: Iterable[pa.Table] = ()) -> None:
        """Take tables, each with a schema of its own."""
        self.tables = tuple(table for table in tables if table.num_rows)

    def __len__(self) -> int:
        return sum(table.num_rows for table in self.tables)

    @property
    def nbytes(self) -> int:
        """How many bytes the rows have in memory."""
        return sum(table.nbytes for table in self.tables)

    def take(self, rows: Positions) -> tuple["HeldRows", Positions]:
        """Return some rows, and for each of them its place among `rows`: a table at a time."""
        tables, places, first = [], [], 0
        for table in self.tables:
            mine = np.flatnonzero((rows >= first) & (rows < first + table.num_rows))
            if len(mine):
                tables.append(table.take(pa.array(rows[mine] - first)).combine_chunks())
                places.append(mine)
            first += table.num_rows
        return HeldRows(tables), np.concatenate([*places, np.zeros(0, np.int64)])

    def join(self, table: pa.Table) -> tuple["HeldRows", Positions]:
        """Return these rows and more, with the place of each among these followed by those."""
        if not table.num_rows:
            return self, np.arange(len(self))
        tables, places, first, is_joined = [], [], 0, False
        added = np.arange(len(self), len(self) + table.num_rows)
        for mine in self.tables:
            own = np.arange(first, first + mine.num_rows)
            first += mine.num_rows
            if not is_joined and mine.schema.equals(table.schema):
                mine, own = pa.concat_tables([mine, table]), np.concatenate([own, added])  # noqa: PLW2901
                is_joined = True
            tables.append(mine)
            places.append(own)
        if not is_joined:
            tables.append(table)
            places.append(added)
        return HeldRows(tables), np.concatenate(places)
