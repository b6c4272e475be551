"""What `--keep` names: columns of the events, and as `subscription.NAME` of the subscriptions.

A bare name is the event's, and so is `event.NAME`, for a name that would mean something else. The
output has a column under the name that was given.
"""

import argparse
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.cli.drawn_events import as_text
from contrada.cli.drawn_subscriptions import Texts
from contrada.cli.outputs import primary_geometry, wants_geometry
from contrada.cli.terminal import STDOUT
from contrada.deferred import compute as pc
from contrada.errors import InvalidInput, Remedy
from contrada.files import Rows
from contrada.files.arrow_types import decoded_type, is_binary, is_text
from contrada.files.output import find_writer
from contrada.files.parquet import SUFFIXES as PARQUET_SUFFIXES
from contrada.files.time_texts import python_values
from contrada.matcher.column_sources import read_subscription_rows
from contrada.matcher.keeping import (
    Beside,
    EventKeeping,
    KeptSide,
    is_geometry,
    put_beside,
    resolve,
)
from contrada.matcher.match_run import MatchRun, choose_id_column
from contrada.matching.ids import read_event_ids
from contrada.matching.writing import as_wkb
from contrada.model.event import GEOMETRY
from contrada.showing import listed

_EVENT, _SUBSCRIPTION = "event.", "subscription."


@dataclass(frozen=True, slots=True)
class Wanted:
    """Names of the output, each with the column of events or of subscriptions that it means."""

    events: dict[str, str] = field(default_factory=dict)
    subscriptions: dict[str, str] = field(default_factory=dict)


def read_wanted(options: argparse.Namespace) -> Wanted:
    """Sort the columns to keep by side; refuse names that the output has itself."""
    wanted = Wanted()
    own = ("event", "n") if options.counts else ("event", "subscription")
    for name in options.keep or ():
        if name in own:
            raise InvalidInput(
                f"--keep {name}: the answer already has a column of that name; "
                f"--keep {_EVENT}{name} writes that of the events"
            )
        if not name.startswith(_SUBSCRIPTION):
            wanted.events[name] = name.removeprefix(_EVENT)
        elif options.counts:
            raise InvalidInput(
                f"--keep {name} cannot be combined with --counts, which finds no pairs"
            )
        else:
            wanted.subscriptions[name] = name.removeprefix(_SUBSCRIPTION)
    return wanted


def check_keep(options: argparse.Namespace, events: Rows) -> None:
    """Refuse columns that are not there, or that the output cannot hold, before anything runs."""
    wanted = read_wanted(options)
    _check_columns(wanted.events, events, options.output)
    if wanted.subscriptions:
        hints = {f"{_SUBSCRIPTION}{column}" for column in wanted.subscriptions.values()}
        taken = sorted(hints.intersection(events.schema.names))
        hint = f"; that of {events.name} is --keep {_EVENT}{taken[0]}" if taken else ""
        subscriptions = read_subscription_rows(options.subscriptions)
        _check_columns(wanted.subscriptions, subscriptions, options.output, hint)


def _check_columns(
    wanted: Mapping[str, str], rows: Rows, output: str | None, hint: str = ""
) -> None:
    for name, column in wanted.items():
        own = resolve(column, rows)
        if own not in rows.schema.names:
            raise InvalidInput(
                f"--keep {name}: {rows.name} has no column {column!r}; "
                f"it has {listed(rows.schema.names)}{hint}"
            )
        if output is not None and not is_geometry(own, rows, ()):
            _refuse_unwritable(name, decoded_type(rows.schema.field(own).type), output)


def _refuse_unwritable(name: str, kind: pa.DataType, output: str) -> None:
    """Refuse a type that a format cannot hold, by writing a null of it."""
    suffix = ".csv" if output == STDOUT else Path(output).suffix.lower()
    is_parquet = suffix in PARQUET_SUFFIXES
    schema = pa.schema([pa.field("kept", kind)])
    try:
        if not is_parquet and _holds_duration(kind):
            raise pa.ArrowNotImplementedError("there is no one way to write it as text")
        writer = find_writer("x.parquet" if is_parquet else f"x{suffix}", schema, None, (), None)(
            io.BytesIO()
        )
        writer.write(pa.table([pa.nulls(1, kind)], schema=schema))
        writer.finish()
    except (pa.ArrowException, TypeError, ValueError) as fault:
        elsewhere = "" if is_parquet else "; .parquet may"
        raise InvalidInput(
            f"--keep {name}: {output} cannot hold a column of type {kind} ({fault}){elsewhere}"
        ) from fault


def _holds_duration(kind: pa.DataType) -> bool:
    if pa.types.is_duration(kind) or pa.types.is_interval(kind):
        return True
    return any(_holds_duration(kind.field(i).type) for i in range(kind.num_fields))


class Keeping:
    """The columns that go beside the pairs of a run, in the order of the options.

    The geometry of events comes last where the format of the output wants one.
    """

    def __init__(self, options: argparse.Namespace, run: MatchRun) -> None:
        """Read what is kept of the subscriptions; the events come with the pairs."""
        wanted = read_wanted(options)
        self._order = list(dict.fromkeys(options.keep or ()))
        added = [GEOMETRY] if wants_geometry(options.output) else []
        if added:
            self._order = [*(name for name in self._order if name != GEOMETRY), GEOMETRY]
            wanted.events[GEOMETRY] = primary_geometry(run.rows)
        self.events = EventKeeping(wanted.events, run, added)
        self._ids = run.subscriptions.ids if wanted.subscriptions else pa.nulls(0)
        self._subscriptions = _SubscriptionKeeping(wanted.subscriptions, options, self._ids)
        kinds = [*self.events.fields, *self._subscriptions.fields]
        self._types = {kept.name: decoded_type(kept.type) for kept in kinds}
        geometries = self.events.geometries | self._subscriptions.geometries
        self.geometries = tuple(name for name in self._order if name in geometries)

    def schema(self, first: Sequence[pa.Field]) -> pa.Schema:
        """Return the schema of the output, which begins with some fields."""
        return pa.schema([*first, *(pa.field(name, self._types[name]) for name in self._order)])

    @property
    def is_slim(self) -> bool:
        """Whether nothing long is kept: no text, geometry, list or struct."""
        return not any(
            is_text(kind) or is_binary(kind) or pa.types.is_nested(kind)
            for kind in self._types.values()
        )

    def pieces(
        self, pairs: pa.RecordBatch, events: Beside, ranks: NDArray[np.int64], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Put what is kept beside pairs, given the events' side and the ranks of subscriptions."""
        if not self._order:
            return iter([pairs])
        return put_beside(pairs, [events, (self._subscriptions.side, ranks)], schema)

    def describe_subscriptions(self) -> dict[str, Sequence[str]]:
        """Texts of what is kept of the subscriptions, by rank, without geometries."""
        columns = self._subscriptions.side.columns
        names = [name for name in columns if name not in self.geometries]
        return {name.removeprefix(_SUBSCRIPTION): Texts(columns[name], _write) for name in names}

    def ranks_of(self, subscriptions: pa.Array) -> NDArray[np.int64]:
        """Find the ranks of subscriptions by their ids; zeros where nobody will ask."""
        if not self._subscriptions.fields:
            return np.zeros(len(subscriptions), np.int64)
        ranks = pc.index_in(subscriptions, self._ids.cast(subscriptions.type))
        return np.asarray(ranks.to_numpy(zero_copy_only=False), np.int64)


class _SubscriptionKeeping:
    """Columns of the subscriptions, read once, in the order of the ids of a run."""

    def __init__(
        self, columns: Mapping[str, str], options: argparse.Namespace, ids: pa.Array
    ) -> None:
        self.fields: list[pa.Field] = []
        self.geometries: frozenset[str] = frozenset()
        self.side = KeptSide({})
        if columns:
            self._read(columns, options, ids)

    def _read(self, columns: Mapping[str, str], options: argparse.Namespace, ids: pa.Array) -> None:
        rows = read_subscription_rows(options.subscriptions)
        own = {name: resolve(column, rows) for name, column in columns.items()}
        self.geometries = frozenset(n for n, column in own.items() if is_geometry(column, rows, ()))
        self.fields = [
            pa.field(name, pa.binary() if name in self.geometries else rows.schema.field(c).type)
            for name, c in own.items()
        ]
        id_column = choose_id_column(rows, options.id, Remedy.SUBSCRIPTION_ID)
        rows = rows.identified(id_column)
        narrow = rows.narrowed([n for n in rows.schema.names if n in {id_column, *own.values()}])
        parts, first_row = [pa.table([ids[:0], *map(_widen, self._nothing())], ["", *own])], 0
        narrow.warn_of_misfits([] if id_column is None else [id_column])
        for batch, _ in narrow.judged():
            keys = pa.array(np.arange(first_row, first_row + batch.num_rows))
            if id_column is not None:
                keys, _ = read_event_ids(batch.column(id_column), id_column, rows.name)
            used = batch.filter(pc.is_in(keys, ids.cast(keys.type)))
            arrays = [self._column(name, used.column(c), options.repair) for name, c in own.items()]
            keys = keys.filter(pc.is_in(keys, ids.cast(keys.type))).cast(ids.type)
            parts.append(pa.table([keys, *map(_widen, arrays)], ["", *own]))
            first_row += batch.num_rows
        table = pa.concat_tables(parts)
        by_rank = table.take(pc.index_in(ids, table.column("").combine_chunks()))
        self.side = KeptSide({name: _as_one(by_rank.column(name)) for name in own})

    def _nothing(self) -> list[pa.Array]:
        return [pa.nulls(0, decoded_type(kept.type)) for kept in self.fields]

    def _column(self, name: str, array: pa.Array, repair: bool) -> pa.Array:
        if name in self.geometries:
            array = as_wkb(array, repair=repair)
        return array.cast(decoded_type(array.type))


def _write(value: pa.Scalar) -> str:
    return as_text(python_values(pa.array([value], value.type))[0])


def _widen(array: pa.Array) -> pa.Array:
    """Make room for more than 2 GiB of text or bytes: that of all subscriptions together."""
    if is_text(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if is_binary(array.type) else array


def _as_one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
