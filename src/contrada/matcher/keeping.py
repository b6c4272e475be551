"""Columns that are kept: beside each pair what its event, or its subscription, has in them.

A large value with many matches is written as often, so pairs come in pieces of bounded size.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.deferred import compute as pc
from contrada.errors import InvalidInput, blaming_memory
from contrada.files import Rows
from contrada.files.shared_values import write_out
from contrada.limits import COLUMN_DEPTH_MAX
from contrada.matcher.match_run import MatchedBatch, MatchRun
from contrada.matching.arrow_values import struct_members
from contrada.matching.writing import as_wkb, can_be_geometry, written_geometries
from contrada.model.event import GEOMETRY, Event, as_python
from contrada.model.geometry import read_geometry
from contrada.model.nesting import NestedTooDeep, check_nesting
from contrada.model.unicode import is_unicode
from contrada.showing import brief, brief_text, listed

PAIR_COLUMNS = ("event", "subscription")
_PIECE_BYTES_MAX = 32 * 2**20
_VALUE_BYTES = 8


class KeptSide:
    """Columns of events or of subscriptions, and how many bytes each of their rows has."""

    def __init__(self, columns: Mapping[str, pa.Array]) -> None:
        """Measure the columns, which are of one length."""
        self.columns = columns
        self.row_bytes = _add([row_bytes(column) for column in columns.values()])


Beside = tuple[KeptSide, NDArray[np.int64]]  # pair i has row `at[i]` of the side


def put_beside(
    pairs: pa.RecordBatch, sides: Sequence[Beside], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Put columns beside pairs, in the order and the types of a schema."""
    sizes = [side.row_bytes[at] for side, at in sides if side.columns]
    ends = np.cumsum(_add([np.zeros(len(pairs), np.int64), *sizes]))
    starts = np.flatnonzero(np.diff(ends // _PIECE_BYTES_MAX, prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(pairs)]):
        columns = dict(
            zip(pairs.schema.names, pairs.slice(start, end - start).columns, strict=True)
        )
        for side, at in sides:
            rows = pa.array(at[start:end])
            columns |= {name: column.take(rows) for name, column in side.columns.items()}
        arrays = [write_out(columns[field.name], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class EventKeeping:
    """Which columns of events are kept, under which names, and their types.

    Geometries are WKB: what the source states to be one, and what a subscription reads as one.
    """

    def __init__(
        self, columns: Mapping[str, str], run: MatchRun, as_geometries: Collection[str] = ()
    ) -> None:
        """Keep columns of the events of a run, by the names that they are to have.

        Those `as_geometries` become geometries whatever they hold: null, where it is none.
        """
        rows, read = run.rows, run.subscriptions.geometry_attributes
        self._run = run
        self.columns = {name: resolve(column, rows) for name, column in columns.items()}
        found = {name for name, own in self.columns.items() if is_geometry(own, rows, read)}
        self.geometries = frozenset(found.union(as_geometries))
        self.fields = [
            pa.field(name, pa.binary() if name in self.geometries else rows.schema.field(own).type)
            for name, own in self.columns.items()
        ]

    def batches(self, threads: int | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Match batch by batch: pairs, and beside them what is kept."""
        with blaming_memory():
            for matched in self._run.matched(threads):
                yield from put_beside(self._run.as_pairs(matched), [self.beside(matched)], schema)

    def beside(self, matched: MatchedBatch) -> Beside:
        """Return what is kept of the events of a batch that match, for each of its pairs."""
        if not self.columns:
            return KeptSide({}), matched.rows
        rows, at = np.unique(matched.rows, return_inverse=True)
        events = matched.events.batch
        columns = {}
        for name, column in self.columns.items():
            if name in self.geometries:
                columns[name] = written_geometries(events, column, rows, repair=self._run.repair)
            else:
                own = events.own_column(column)
                assert own is not None, "the rows have all columns of their schema"
                columns[name] = own.take(pa.array(rows))
        return KeptSide(columns), at.astype(np.int64)


def check_kept(keep: Sequence[str], rows: Rows) -> list[str]:
    """Return the columns of events to keep, each once; refuse those that do not exist."""
    names, known = read_kept(keep), set(rows.schema.names)
    for name in names:
        if resolve(name, rows) not in known:
            raise InvalidInput(
                f"{rows.name}: there is no column {brief(name)} to keep; "
                f"it has {listed(rows.schema.names)}"
            )
    return names


def read_kept(keep: Sequence[str]) -> list[str]:
    """Return the names to keep, each once; refuse those that the answer has itself."""
    if isinstance(keep, str):
        raise InvalidInput(f"keep takes a sequence of column names; write keep=[{brief(keep)}]")
    if not isinstance(keep, Iterable):
        raise InvalidInput(f"keep takes a sequence of column names, not {brief(keep)}")
    names = list(keep)
    for name in names:
        if not isinstance(name, str):
            raise InvalidInput(f"keep takes names of columns, not {brief(name)}")
        if name in PAIR_COLUMNS:
            raise InvalidInput(
                f"the column {name!r} cannot be kept: the answer already has a column of that "
                "name; rename it in the events"
            )
    return list(dict.fromkeys(names))


def resolve(name: str, rows: Rows) -> str:
    """Find the column that a name means: `geometry` is the primary one, whatever its own name."""
    if name == GEOMETRY and name not in rows.schema.names and rows.geometry_columns:
        return rows.geometry_columns[0]
    return name


def is_geometry(column: str, rows: Rows, read: Collection[str]) -> bool:
    """Whether a column holds geometries: it is stated, or somebody reads it so."""
    if column in rows.geometry_columns:
        return True
    if not (column == GEOMETRY or column in read) or column not in rows.schema.names:
        return False
    return can_be_geometry(rows.schema.field(column).type)


def row_bytes(array: pa.Array) -> NDArray[np.int64]:
    """Estimate how many bytes each value of a column takes."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        sizes = np.append(row_bytes(array.dictionary), 0)
        return np.asarray(sizes[array.indices.fill_null(len(sizes) - 1)], np.int64)
    if pa.types.is_struct(kind):
        return _add([np.ones(len(array), np.int64), *map(row_bytes, struct_members(array))])
    if pa.types.is_map(kind):
        lengths = np.diff(array.offsets)
        entries = slice(array.offsets[0].as_py(), array.offsets[-1].as_py())
        inner = row_bytes(array.keys[entries]) + row_bytes(array.items[entries])
        return _sums(inner, lengths)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        return _sums(row_bytes(array.flatten()), lengths)
    try:
        lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)
        return np.asarray(lengths, np.int64) + _VALUE_BYTES
    except pa.ArrowNotImplementedError:  # of another kind, which are all small
        return np.full(len(array), _VALUE_BYTES, np.int64)


def _add(sizes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.asarray(np.sum(sizes, axis=0), np.int64)


def _sums(inner: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add up the bytes of members, so many of which belong to each value."""
    totals = np.concatenate([[0], np.cumsum(inner)])
    ends = np.cumsum(lengths)
    return np.asarray(totals[ends] - totals[ends - lengths], np.int64) + _VALUE_BYTES


class AttributeKeeping:
    """What is kept of events that come one by one.

    Shapely's geometries become WKB, and so does, however it came, what is read as a geometry.
    """

    def __init__(self, names: Sequence[str], read: Collection[str], repair: bool) -> None:
        """Keep attributes; `read` are read as geometries."""
        self._values: dict[str, list[Any]] = {name: [] for name in names}
        self._read, self._repair = read, repair
        self._seen: dict[str, None] = {}
        self._at: list[int] = []
        self._count = 0

    def take(self, event: Event, is_mended: bool, matches: int) -> None:
        """Take what an event has, which goes beside its matches."""
        self._seen |= dict.fromkeys(name for name in event.attributes if isinstance(name, str))
        if not matches:
            return
        for name, values in self._values.items():
            value = self._value(event, name, is_mended)
            _check_depth(value, event, name)
            values.append(value)
        self._at += [self._count] * matches
        self._count += 1

    def beside(self, pairs: pa.Table) -> pa.Table:
        """Put what was taken beside the pairs; refuse a name that no event has."""
        at = pa.array(self._at, pa.int64())
        for name, values in self._values.items():
            if self._seen and name not in self._seen:
                raise InvalidInput(
                    f"no event has an attribute {brief(name)} to keep; they have "
                    f"{listed(self._seen)}"
                )
            if not is_unicode(name):
                raise InvalidInput(
                    f"the attribute {brief(name)} cannot be kept as a column: "
                    "its name is not valid Unicode"
                )
            pairs = pairs.append_column(name, self._as_column(name, values).take(at))
        return pairs

    def _value(self, event: Event, name: str, is_mended: bool) -> Any:
        value = as_python(event.attributes.get(name))
        if is_mended and name in self._read:
            return _encode(event.geometry(name))
        if name == GEOMETRY or name in self._read:
            shape = read_geometry(value)
            return _encode(shape if isinstance(shape, BaseGeometry) else None)
        return _encode(value) if isinstance(value, BaseGeometry) else value

    def _as_column(self, name: str, values: list[Any]) -> pa.Array:
        try:
            if name == GEOMETRY or name in self._read:
                return as_wkb(pa.array(values, pa.binary()), repair=self._repair)
            return pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as fault:
            raise InvalidInput(
                f"the attribute {name!r} cannot be kept as a column: {brief_text(fault, 200)}"
            ) from fault


def _check_depth(value: Any, event: Event, name: str) -> None:
    """Refuse what Arrow would go down into without end."""
    try:
        check_nesting(value, COLUMN_DEPTH_MAX)
    except NestedTooDeep as fault:
        raise _not_kept(event, name, f"{fault} (COLUMN_DEPTH_MAX)") from None
    except ValueError as fault:
        raise _not_kept(event, name, str(fault)) from None


def _not_kept(event: Event, name: str, reason: str) -> InvalidInput:
    place = f"{event.place}, attribute {brief(name)}"
    return InvalidInput(f"{place}: cannot be kept as a column: {reason}; leave it out of keep")


def _encode(shape: BaseGeometry | None) -> bytes | None:
    return None if shape is None else bytes(shapely.to_wkb(shape, flavor="iso"))
