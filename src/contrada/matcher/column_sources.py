"""Snapshots of format 2 where rows of subscriptions are wanted: columns, and rows on demand.

Whoever can take the columns as they lie does so; rows are written out when they are read.
"""

import os
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.files import Rows, read_rows
from contrada.files.crs import spell_crs
from contrada.files.sections import open_sections
from contrada.files.snapshot import ROWS_FORMAT, SUFFIXES
from contrada.files.snapshot_header import read_format
from contrada.matcher.column_files import load_columns
from contrada.matcher.saving import MatcherSettings, make_batches, make_schema, mix_ids
from contrada.matching.id_columns import IdColumn, SubscriberColumns
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.row_columns import IDS_OF_BOTH_KINDS, Holds, columns_that_hold

_BATCH_ROWS = 65_536
_IDS = frozenset(columns_that_hold(Holds.ID))  # for these columns a row needs no object


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """The subscriptions of a file, as they lie in it, and how the matcher was made."""

    name: str
    columns: SubscriptionColumns
    settings: MatcherSettings
    crs: str | None

    def rows(self) -> Rows:
        """Return the rows that format 1 would have, which are made when they are read."""
        return _WrittenRows(self).rows(None)

    def identified_by(self, column: str | None) -> SubscriptionColumns | None:
        """Return the columns with the ids of a column; None where that takes rows."""
        if column is None or column == "id":
            return self.columns
        ids = _as_ids(self.columns.subscribers) if column == "subscriber" else None
        if ids is None:
            return None
        own = self.columns
        return SubscriptionColumns(ids, own.subscribers, own.expressions, own.table)

    def rows_at(self, positions: Positions) -> Iterator[pa.RecordBatch]:
        """Write some subscriptions as rows, each as a batch of its own."""
        schema = make_schema(self.columns.ids, self.columns.subscribers, self.crs)
        for position in positions.tolist():
            yield from make_batches([self.columns[position]], schema)


def open_column_source(source: object) -> ColumnSource | None:
    """Open the snapshot of format 2, or of a newer one, that a source is; None for all else."""
    if isinstance(source, ColumnSource):
        return source
    if not isinstance(source, str | os.PathLike):
        return None
    name = os.fsdecode(source)
    is_snapshot = name.lower().endswith(SUFFIXES) and Path(name).is_file()
    if not is_snapshot or read_format(name) in {None, ROWS_FORMAT}:
        return None
    file = open_sections(source)
    settings = MatcherSettings.of(file)
    crs = spell_crs(settings.crs, file.name)
    return ColumnSource(file.name, load_columns(file), settings, crs)


def read_subscription_rows(source: object) -> Rows:
    """Read rows of subscriptions; those of a snapshot of format 2 are written out for that."""
    file = open_column_source(source)
    return read_rows(source, is_decoded=False) if file is None else file.rows()


@dataclass(frozen=True, slots=True)
class _WrittenRows:
    """Columns as rows, batch by batch; where ids and subscribers will do, without any objects."""

    source: ColumnSource

    def rows(self, names: Sequence[str] | None) -> Rows:
        columns, crs = self.source.columns, self.source.settings.crs
        schema = make_schema(columns.ids, columns.subscribers, crs)
        blank = read_rows(pa.Table.from_batches([], schema), columns=names)
        open_batches = self._write_ids if names and _IDS.issuperset(names) else self._write

        def narrow(wanted: Sequence[str], _: Set[str]) -> Rows:
            return self.rows(wanted)

        return Rows(
            self.source.name,
            blank.schema,
            blank.geometry_columns,
            blank.crs,
            len(columns),
            _BATCH_ROWS,
            lambda: read_rows(open_batches(schema), columns=names).batches(),
            narrow,
        )

    def _write(self, schema: pa.Schema) -> pa.RecordBatchReader:
        batches = make_batches(self.source.columns, schema)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _write_ids(self, schema: pa.Schema) -> pa.RecordBatchReader:
        chosen = pa.schema([schema.field("id"), schema.field("subscriber")])
        ids = self.source.columns.ids.array.cast(chosen.field("id").type)
        subscribers = _as_array(self.source.columns.subscribers, chosen.field("subscriber").type)
        table = pa.table([ids, subscribers], schema=chosen)
        return table.to_reader(_BATCH_ROWS)


def _as_array(subscribers: SubscriberColumns, kind: pa.DataType) -> pa.Array:
    if kind == IDS_OF_BOTH_KINDS:
        names = [None, *subscribers.names()]
        return mix_ids([names[code + 1] for code in subscribers.codes.tolist()])
    names = pa.array(subscribers.names(), kind)
    return names.take(pa.array(subscribers.codes, mask=subscribers.codes < 0))


def _as_ids(subscribers: SubscriberColumns) -> IdColumn | None:
    """Take subscribers as ids; None where one is null, or where they are of both kinds."""
    is_whole = subscribers.codes < len(subscribers.wholes)
    if (subscribers.codes < 0).any() or len(np.unique(is_whole)) > 1:
        return None
    kind = pa.int64() if is_whole.any() else pa.large_string()
    return IdColumn(_as_array(subscribers, kind))
