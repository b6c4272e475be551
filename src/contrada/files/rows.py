"""Rows of one source as Arrow record batches, whatever the format.

Rows are counted from 0, as default ids are; lines of a text file from 1, as editors do.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import chain, islice

import numpy as np
import pyarrow as pa

from contrada.deferred import compute as pc
from contrada.errors import InvalidInput, blame
from contrada.files.arrow_types import decoded_type, is_text
from contrada.files.expanding import PIECE_BYTES, cut_rows
from contrada.files.shared_values import write_out
from contrada.model.geometry import Fault
from contrada.showing import listed

_FAULT_PARTS = tuple(part.name for part in fields(Fault))
_FAULT = pa.struct([(part, pa.string()) for part in _FAULT_PARTS])


@dataclass(frozen=True)
class Rows:
    """Rows of one source, as Arrow record batches, in bounded memory.

    Every batch has the schema `schema`, at least one row and at most `batch_rows`; fewer than these
    only the last one, and those that come to `PIECE_BYTES` before, once they are written out.
    Columns in `geometry_columns` hold WKB (binary) or, where the source had text, WKT (string);
    the primary one comes first. `crs` is None where the source states none, `count` where it is
    not known without reading everything. `misfits` says of columns of a text file what is wrong
    with some of their cells, which are null; `blank` are those without any cell that is filled.
    """

    name: str
    schema: pa.Schema
    geometry_columns: tuple[str, ...]
    crs: str | None
    count: int | None
    batch_rows: int = field(repr=False, compare=False)
    _open: Callable[[], Iterator[pa.RecordBatch]] = field(repr=False, compare=False)
    _narrow: Callable[[Sequence[str], Set[str]], "Rows"] | None = field(
        default=None, repr=False, compare=False
    )
    _open_lines: Callable[[], Iterator[int]] | None = field(default=None, repr=False, compare=False)
    _judge: Callable[[Collection[str]], Iterator[pa.RecordBatch]] | None = field(
        default=None, repr=False, compare=False
    )
    _identify: Callable[[str], "Rows"] | None = field(default=None, repr=False, compare=False)
    misfits: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    blank: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    _explain_text: Callable[[str], str | None] = field(
        default=lambda _: None, repr=False, compare=False
    )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows from the start; what can be read only once refuses a second call.

        A row that is not whole, or has a bad cell, is refused.
        """
        return self._refuse_faults(self.judged(self.schema.names))

    def judged(
        self, read: Collection[str] = (), *, compact: Collection[str] = ()
    ) -> Iterator[tuple[pa.RecordBatch, dict[int, Fault]]]:
        """Iterate over the rows as `batches` does, with the faults of some by place in the batch.

        A row that is not whole is all null. A bad cell is null, and a fault of its row where its
        column is among those `read`. In `compact` columns, texts and bytes that many rows share are
        dictionaries, whatever the schema says.
        """
        batches = _rechunk(self._opened(read), self.batch_rows)
        if not set(compact).issuperset(self.schema.names):
            batches = (piece for batch in batches for piece, _ in cut_rows(batch, compact))
        sound = self._refuse_damage(batches)
        pairs = (_split_faults(batch, len(self.schema)) for batch in sound)
        return ((self._written_out(batch, compact), faults) for batch, faults in pairs)

    def _written_out(self, batch: pa.RecordBatch, compact: Container[str]) -> pa.RecordBatch:
        if batch.schema.equals(self.schema):
            return batch
        columns = [
            column if field.name in compact else write_out(column, field.type)
            for column, field in zip(batch.columns, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=self.schema.names)

    def _opened(self, read: Collection[str]) -> Iterator[pa.RecordBatch]:
        return self._open() if self._judge is None else self._judge(read)

    def warn_of_misfits(self, read: Collection[str]) -> None:
        """Warn of bad cells in columns that nobody reads, but that may be shown."""
        known = set(self.schema.names)
        for column, what in self.misfits.items():
            if column in known and column not in read:
                warnings.warn(f"{self.name}: column {column!r} {what}", stacklevel=3)

    def explain_text(self, column: str) -> str | None:
        """Explain why a column is text although most cells are numbers; None where they are not.

        The file is read for it.
        """
        return self._explain_text(column)

    def narrowed(self, columns: Sequence[str], attributes: Set[str] | None = None) -> "Rows":
        """Return the same rows with only some columns, where the format reads them one by one.

        With `attributes`, dotted names, a column of mappings may lack the members of which none
        of them speaks. At least one column stays, since rows without any could not be counted.
        """
        if self._narrow is None:
            return self
        names = set(columns) if attributes is None else attributes
        return self._narrow(columns or self.schema.names[:1], names)

    def whole(self) -> "Rows":
        """Return the same rows with all columns, whichever are asked for later."""
        return replace(self, _narrow=None)

    def identified(self, column: str | None) -> "Rows":
        """Return the same rows for reading ids from a column, if one is named.

        Where the types of columns follow from the values, numbers in it are 64-bit integers, and
        one beyond them is a fault of its row.
        """
        if self._identify is None or column is None:
            return self
        found = self._identify(column)
        return found.whole() if self._narrow is None else found

    def filled(self, defaults: Mapping[str, str]) -> "Rows":
        """Return the same rows with a text wherever one of these columns is null or absent."""
        if not defaults:
            return self
        schema = self.schema
        for column in defaults:
            place = schema.get_field_index(column)
            kind = pa.null() if place < 0 else decoded_type(schema.field(place).type)
            if not is_text(kind) and not pa.types.is_null(kind):
                raise InvalidInput(f"{self.name}: column {column!r} holds {kind}, not text")
            text = pa.field(column, pa.string())
            schema = schema.append(text) if place < 0 else schema.set(place, text)

        def narrow(columns: Sequence[str], attributes: Set[str]) -> "Rows":
            known = set(self.schema.names)
            own = self.narrowed([name for name in columns if name in known], attributes)
            return own.filled({name: text for name, text in defaults.items() if name in columns})

        def identify(column: str) -> "Rows":
            return self.identified(column).filled(defaults)

        return replace(
            self,
            schema=schema,
            _identify=identify,
            _judge=lambda read: _fill(self._opened(read), schema, defaults),
            _narrow=narrow,
        )

    def line_finder(self) -> Callable[[int], int | None]:
        """Return a function that finds the line of a text file at which a row begins.

        It finds None where there are no lines, and goes through the file once as long as it is
        asked in the order of the rows.
        """
        if self._open_lines is None:
            return lambda _: None
        open_lines = self._open_lines
        lines, at = open_lines(), 0

        def find(row: int) -> int | None:
            nonlocal lines, at
            if row < at:
                lines, at = open_lines(), 0
            skipped, at = row - at, row + 1
            with suppress(InvalidInput, OSError):  # the file may have changed since
                return next(islice(lines, skipped, None), None)
            return None

        return find

    def place(self, row: int) -> str:
        """Describe where a row is: the file, with the line as editors count it if it has lines."""
        return f"{self.name}, {place_of(row, self.line_finder()(row))}"

    def _refuse_faults(
        self, judged: Iterator[tuple[pa.RecordBatch, dict[int, Fault]]]
    ) -> Iterator[pa.RecordBatch]:
        first_row = 0
        for batch, faults in judged:
            for row, fault in faults.items():
                raise fault.as_error().within(self.place(first_row + row))
            yield batch
            first_row += batch.num_rows

    def _refuse_damage(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        row = 0
        try:
            for batch in batches:
                yield batch
                row += batch.num_rows
        except (pa.ArrowException, OSError) as fault:
            raise blame(fault, f"{self.name}: reading failed after row {row}: {fault}") from fault


def place_of(row: int, line: int | None) -> str:
    """Describe where in a file a row is."""
    return f"row {row}" if line is None else f"line {line} (row {row})"


def keep_columns(schema: pa.Schema, columns: Sequence[str] | None, name: str) -> list[str]:
    """List the columns asked for, in that order; all but pandas' unnamed index by default."""
    known, counts = schema.names, Counter(schema.names)
    for column, count in counts.items():
        if count > 1:
            raise InvalidInput(f'{name}: two columns are named "{column}"')
    if columns is None:
        return [column for column in known if not column.startswith("__index_level_")]
    for column in columns:
        if column not in counts:
            raise InvalidInput(f'{name}: no column "{column}"; the columns are: {listed(known)}')
    return list(dict.fromkeys(columns))


def with_faults(batch: pa.RecordBatch, faults: Mapping[int, Fault]) -> pa.RecordBatch:
    """Add a column that says of some rows what is wrong with them, for `Rows` to take off."""
    column = np.full(batch.num_rows, None, object)
    for row, fault in faults.items():
        column[row] = {part: getattr(fault, part) for part in _FAULT_PARTS}
    schema = batch.schema.append(pa.field("", _FAULT))
    return pa.RecordBatch.from_arrays([*batch.columns, pa.array(column, _FAULT)], schema=schema)


def _split_faults(batch: pa.RecordBatch, columns: int) -> tuple[pa.RecordBatch, dict[int, Fault]]:
    if batch.num_columns == columns:
        return batch, {}
    column = batch.column(columns)
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    told = column.take(rows).to_pylist()
    faults = {row: Fault(**fault) for row, fault in zip(rows.tolist(), told, strict=True)}
    return batch.select(list(range(columns))), faults


def _fill(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, defaults: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """Put texts where columns are null or absent; a column of faults stays the last one."""
    own = set(schema.names)
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name, text in defaults.items():
            given = columns.get(name, pa.nulls(batch.num_rows))
            columns[name] = pc.fill_null(given.cast(pa.string()), text)
        faults = [field for field in batch.schema if field.name not in own]
        whole = pa.schema([*schema, *faults])
        yield pa.RecordBatch.from_arrays([columns[name] for name in whole.names], schema=whole)


def _rechunk(batches: Iterator[pa.RecordBatch], rows_max: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of `rows_max`; the last is shorter, and so are large ones."""
    held: list[pa.RecordBatch] = []
    rows_held = bytes_held = 0
    cut = (cut_rows(batch, batch.schema.names) for batch in batches)
    for batch, size in chain.from_iterable(cut):
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, rows_max - rows_held)
            held.append(piece)
            start += piece.num_rows
            rows_held += piece.num_rows
            share = 0 if size is None else size * piece.num_rows // batch.num_rows
            bytes_held += piece.nbytes if size is None else share
            if rows_held == rows_max or bytes_held > PIECE_BYTES:
                yield from _join(held)
                held, rows_held, bytes_held = [], 0, 0
    yield from _join(held)


def _join(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Make one batch of several; more than one only where 32-bit offsets would overflow.

    They stay as they are where dictionaries cannot become one: Arrow joins none that holds a null,
    nor those that together have more values than their indices can count.
    """
    if len(batches) <= 1:
        return batches
    try:
        whole = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return batches
    return list(whole.to_batches())
