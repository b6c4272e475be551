"""The rows of one collection, packed: subscriptions in a snapshot, and the ids of their rows.

A row is a geometry and an id; all else that a subscription has is the same for all of them. The
snapshot has format 2; its subscriptions are numbered from 0 in the order of the rows and are
nobody's. Whoever opens it names the first number, and whose they are, so that many collections fit
in one matcher. The rows' own ids lie in the same file, in columns that a matcher skips, and are
looked up where they lie.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.arrays import Positions
from contrada.errors import InvalidInput, Remedy
from contrada.files import Rows
from contrada.files.crs import is_same_crs
from contrada.files.sections import Sections, open_sections
from contrada.files.text_columns import text_array, text_columns
from contrada.limits import COLLECTION_ROWS_MAX
from contrada.matcher.column_files import load_columns, save_columns
from contrada.matcher.column_sources import ColumnSource
from contrada.matcher.facade import Matcher
from contrada.matcher.match_run import choose_id_column
from contrada.matcher.refusing import RefusedRows
from contrada.matcher.saving import MatcherSettings
from contrada.matching.id_columns import IdColumn, SubscriberColumns, are_repeated
from contrada.matching.subscribing import SubscriptionRows, read_subscriptions
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import GEOMETRY
from contrada.model.row_columns import DEFAULT_RELATION
from contrada.model.subscription import Id
from contrada.showing import brief, listed

_ROW_IDS = "rows.ids"
_STATED_BYTES_MAX = 64 * 2**20  # of conditions that rows which are read together repeat
_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class SharedTerms:
    """What the rows of a collection have in common.

    `where` is CQL2, as text or JSON; `crs` is the coordinate system that the rows must have, if
    they state one.
    """

    relation: str = DEFAULT_RELATION
    attribute: str = GEOMETRY
    where: str | Mapping[str, Any] | None = None
    crs: str | None = None

    @property
    def batch_rows(self) -> int:
        """How many rows to read together: each of them repeats the conditions."""
        return max(1, min(_BATCH_ROWS, _STATED_BYTES_MAX // (len(self._conditions) or 1)))

    @property
    def _conditions(self) -> str:
        return self.where or "" if isinstance(self.where, str | None) else json.dumps(self.where)

    def beside(self, batch: pa.RecordBatch, kept: Mapping[str, str]) -> pa.RecordBatch:
        """Put what is shared beside those columns of a batch that are kept, under other names."""
        texts = {"relation": self.relation, "attribute": self.attribute, "where": self._conditions}
        columns = {new: batch.column(old) for new, old in kept.items()}
        for name, text in texts.items():
            if text:
                codes = pa.array(np.zeros(batch.num_rows, np.int32))
                columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array([text]))
        return pa.RecordBatch.from_pydict(columns)


def write_packed_rows(rows: Rows, path: str | os.PathLike[str], terms: SharedTerms) -> int:
    """Write the rows of a collection to a file, whole or not at all; return their number.

    Other columns than the id and the geometry are ignored; without an id a row has its number.
    Raises `InvalidInput` for a bad row, `BadRows` for several.
    """
    if terms.crs is not None and rows.crs is not None and not is_same_crs(rows.crs, terms.crs):
        raise InvalidInput(
            f"{rows.name}: is in {rows.crs:.60}, not in {terms.crs:.60}; reproject it"
        )
    matcher = Matcher(crs=rows.crs)
    read = _read(rows, terms, matcher)
    settings = {"subscriptions": len(read)} | asdict(matcher._settings(rows.crs))
    save_columns(path, _numbered(read, 0, None), settings, _write_row_ids(read.ids))
    return len(read)


def _numbered(columns: SubscriptionColumns, first: int, owner: int | None) -> SubscriptionColumns:
    """Return the same subscriptions under consecutive numbers, all of one owner or nobody's."""
    count = len(columns)
    has_owner = owner is not None and count > 0
    subscribers = SubscriberColumns(
        np.full(count, 0 if has_owner else -1, np.int64),
        np.array([owner] if has_owner else [], np.int64),
        pa.array([], pa.large_string()),
    )
    ids = IdColumn(pa.array(np.arange(first, first + count)))
    return SubscriptionColumns(ids, subscribers, columns.expressions, columns.table)


def _write_row_ids(ids: IdColumn) -> dict[str, NDArray[Any]]:
    return {_ROW_IDS: ids.array.to_numpy()} if ids.is_whole else text_columns(_ROW_IDS, ids.array)


def _read(rows: Rows, terms: SharedTerms, matcher: Matcher) -> SubscriptionColumns:
    """Read all rows, under their own ids; refuse the bad ones all at once."""
    names = rows.schema.names
    found_in = [*rows.geometry_columns[:1], *([GEOMETRY] if GEOMETRY in names else [])]
    if not found_in:
        shown = f"the columns are: {listed(names)}"
        raise InvalidInput(f"{rows.name}: there is no column of geometries; {shown}")
    id_column = choose_id_column(rows, None, Remedy.SUBSCRIPTION_ID)
    kept = {GEOMETRY: found_in[0]} | ({} if id_column is None else {"id": id_column})
    rows = rows.identified(id_column).narrowed(list(kept.values()))
    refused = RefusedRows(rows, id_column, None, quarantine=False, on_bad=None)
    found, count = SubscriptionRows(), 0
    for batch, told in rows.judged(list(kept.values())):
        if count + batch.num_rows > COLLECTION_ROWS_MAX:
            limit = f"{COLLECTION_ROWS_MAX:,} (COLLECTION_ROWS_MAX)"
            raise InvalidInput(f"{rows.name}: there are too many rows; the limit is {limit}")
        read_subscriptions(
            terms.beside(batch, kept),
            count,
            rows.name,
            reader=matcher._reader,
            geometry_columns=(GEOMETRY,),
            id_column=id_column,
            repair=False,
            on_bad=None,
            on_refused=refused.add,
            rows=found,
            told=told,
        )
        count += batch.num_rows
    for position in np.flatnonzero(are_repeated(found.columns.ids.array)).tolist():
        id_ = found.columns.ids.one(position)
        fault = InvalidInput(f"an earlier row has the id {brief(id_)}, too")
        refused.add(int(found.rows[position]), id_, fault)
    refused.refuse(count)
    return found.columns


class PackedRows:
    """An open file of packed rows, each known by its number and, where it came from, by its id."""

    def __init__(self, file: Sections, first: int, subscriber: int | None) -> None:
        """Take a file whose columns fit each other, and how its rows are numbered."""
        settings = MatcherSettings.of(file)
        columns = _numbered(load_columns(file), first, subscriber)
        self.row_ids = RowIds(file)
        if len(self.row_ids) != len(columns):
            found = f"{len(self.row_ids):,} ids for {len(columns):,} rows"
            raise InvalidInput(f"{file.name}: is not a file of packed rows: it has {found}")
        self.range = range(first, first + len(columns))
        self.source = ColumnSource(file.name, columns, settings, settings.crs)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, first: int = 0, subscriber: int | None = None
    ) -> Self:
        """Open a file that `write_packed_rows` wrote; it stays mapped as long as it is used.

        The rows have the numbers from `first`, and are those of a subscriber.
        """
        return cls(open_sections(path), first, subscriber)

    def __len__(self) -> int:
        return len(self.range)

    @property
    def crs(self) -> str | None:
        """The coordinate system of the rows, if they state one."""
        return self.source.crs


class RowIds:
    """The ids of packed rows by place, read where they lie."""

    def __init__(self, file: Sections) -> None:
        """Take a file that has them: `array` is all of them, as integers or texts."""
        self.array = _find_row_ids(file)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open only the ids of a file that was verified before."""
        return cls(open_sections(path, verify=False))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, place: int) -> Id:
        """Return the id of the row at a place, counted from 0."""
        id_: Id = self.array[place].as_py()
        return id_

    def take(self, places: Positions) -> pa.Array:
        """Return the ids of many rows."""
        return self.array.take(pa.array(places))


def _find_row_ids(file: Sections) -> pa.Array:
    ids = file.columns.get(_ROW_IDS)
    if ids is None:
        return text_array(file, _ROW_IDS)
    if ids.ndim != 1 or ids.dtype != np.int64:
        raise InvalidInput(f"{file.name}: column {_ROW_IDS!r} is not one of integers")
    return pa.array(ids)
