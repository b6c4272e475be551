"""CSV and TSV: geometries from WKT or from longitude and latitude, types from all cells.

A coordinate that is not a number makes its row's geometry undecodable, and any other such cell
among numbers is null in its own column, so that one bad cell neither ends the file nor turns
all numbers into text. Whether it makes its row a bad one depends on who reads the column.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from contrada.arrays import Floats
from contrada.deferred import compute as pc
from contrada.files.numerals import FLOATS, explain_misfits
from contrada.files.rows import Rows, keep_columns, with_faults
from contrada.files.sheet import RowTooLong, Sheet, open_sheet
from contrada.files.sheet_scan import describe_ragged
from contrada.files.text_types import ColumnTypes, convert, to_coordinates, to_numbers
from contrada.model.geometry import BAD_CELL, Fault, tell_fault
from contrada.showing import brief, brief_text

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
WKT_NAMES = ("geometry", "wkt", "geom", "the_geom")
X_NAMES = ("lon", "lng", "long", "longitude", "x")
Y_NAMES = ("lat", "latitude", "y")
LONGITUDE_MAX, LATITUDE_MAX = 360.0, 90.0
_DEGREES = {
    **dict.fromkeys(X_NAMES[:-1], ("longitude", LONGITUDE_MAX)),
    **dict.fromkeys(Y_NAMES[:-1], ("latitude", LATITUDE_MAX)),
}


@dataclass(frozen=True, slots=True)
class SheetPlan:
    """Where the columns of a sheet go: its types, and the column or columns of the geometry.

    `mixed` are the columns of numbers that hold other texts too; `misfits` says of them, but for
    coordinates, how many. `blank` are those of which no cell is filled.
    """

    types: dict[str, pa.DataType]
    wkt: str | None
    position: tuple[str, str] | None
    mixed: frozenset[str]
    misfits: Mapping[str, str]
    blank: frozenset[str]

    def schema(self) -> pa.Schema:
        """Return the columns of the sheet, with `geometry` among them or at the end."""
        fields = [
            pa.field("geometry" if column == self.wkt else column, kind)
            for column, kind in self.types.items()
        ]
        if self.position:
            fields.append(pa.field("geometry", pa.binary()))
        return pa.schema(fields)

    def column(self, name: str, cells: pa.RecordBatch) -> pa.Array:
        """Return one column of the schema, from a batch of cells."""
        if name == "geometry" and self.position:
            return _to_points(cells, *self.position)
        source = self.wkt if name == "geometry" and self.wkt else name
        if source in self.mixed and source in (self.position or ()):
            return to_coordinates(cells.column(source))
        change = to_numbers if source in self.mixed else convert
        return change(cells.column(source), self.types[source])

    def sources(self, names: Iterable[str]) -> set[str]:
        """Return the columns of the sheet from which these columns of the schema are made."""
        geometry = (self.wkt,) if self.wkt else self.position
        return {
            source
            for name in names
            for source in (geometry if name == "geometry" and geometry else (name,))
        }

    def find_misfits(self, cells: pa.RecordBatch, read: Collection[str]) -> dict[int, Fault]:
        """Find the cells that are not numbers in those columns of numbers that are read."""
        found: dict[int, Fault] = {}
        for column in sorted(self.mixed.intersection(read)):
            texts = cells.column(column)
            rows = np.flatnonzero(_are_others(texts, self.column(column, cells)))
            reasons = explain_misfits(texts.take(rows), self.types[column])
            for row, reason in zip(rows.tolist(), reasons, strict=True):
                found.setdefault(row, Fault(BAD_CELL, reason, f"column {column!r}"))
        return found


def read_delimited(
    path: Path, name: str, *, batch_rows: int, columns: Sequence[str] | None
) -> Rows:
    """Read the rows of a CSV or TSV file, which may be compressed with gzip."""
    sheet = open_sheet(path, name)
    keep_columns(pa.schema([(column, pa.string()) for column in sheet.header]), None, name)
    sheet, columns_seen = _survey(sheet)
    return _make_rows(sheet, _make_plan(sheet, columns_seen), batch_rows, columns)


def _make_rows(
    sheet: Sheet, plan: SheetPlan, batch_rows: int, columns: Sequence[str] | None
) -> Rows:
    full = plan.schema()
    schema = pa.schema([full.field(column) for column in keep_columns(full, columns, sheet.name)])

    def deliver(read: Collection[str]) -> Iterator[pa.RecordBatch]:
        judged = plan.mixed.intersection(read)
        is_judged = sheet.ragged > 0 or len(judged) > 0
        sources = plan.sources([*schema.names, *judged])
        count = 0
        try:
            for cells, widths in sheet.read_rows(sources):
                arrays = [plan.column(column, cells) for column in schema.names]
                batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
                faults = plan.find_misfits(cells, read) | _find_ragged(widths, len(sheet.header))
                yield with_faults(batch, faults) if is_judged else batch
                count += cells.num_rows
        except RowTooLong as fault:
            raise sheet.fault("the file has changed: a row is longer than before") from fault
        if count != sheet.count:
            raise sheet.fault(
                f"the file has changed: it had {sheet.count} rows and now has {count}"
            )

    def narrow(names: Sequence[str], _: Set[str]) -> Rows:
        return _make_rows(sheet, plan, batch_rows, names)

    is_spatial = (plan.wkt or plan.position) and "geometry" in schema.names
    return Rows(
        sheet.name,
        schema,
        ("geometry",) if is_spatial else (),
        None,
        sheet.count,
        batch_rows,
        lambda: deliver(()),
        narrow,
        _open_lines=sheet.first_lines,
        _judge=deliver,
        misfits=plan.misfits,
        blank=plan.blank,
        _explain_text=lambda column: _explain_text(sheet, column),
    )


def _find_ragged(widths: Mapping[int, int], columns: int) -> dict[int, Fault]:
    what = {row: describe_ragged(cells, columns) for row, cells in widths.items()}
    return {row: Fault(BAD_CELL, f"the row {words}") for row, words in what.items()}


def _survey(sheet: Sheet) -> tuple[Sheet, dict[str, ColumnTypes]]:
    """Find the types of all columns, with blocks that every row fits in; no row may be missing."""
    while True:
        columns = _expect_columns(sheet)
        count = sheet.ragged
        try:
            for cells in sheet.read_cells():
                count += cells.num_rows
                for column, types in columns.items():
                    types.see(cells.column(column))
        except RowTooLong:
            sheet = sheet.with_larger_blocks()
        else:
            break
    if count != sheet.count:
        raise sheet.fault(
            f"only {count} of {sheet.count} rows could be read; is the file still being written?"
        )
    if sheet.suspects:
        sheet.refuse_swallowed(_see_short_cells(sheet))
    return sheet, columns


def _see_short_cells(sheet: Sheet) -> dict[str, ColumnTypes]:
    """Find the types of all columns, leaving out cells of several lines."""
    columns = _expect_columns(sheet)
    for batch in sheet.read_cells():
        for column, types in columns.items():
            cells = batch.column(column)
            is_long = pc.fill_null(pc.match_substring_regex(cells, r"[\r\n]"), False)
            types.see(cells.filter(pc.invert(is_long)))
    return columns


def _expect_columns(sheet: Sheet) -> dict[str, ColumnTypes]:
    return {column: ColumnTypes(column, sheet.count) for column in sheet.header}


def _make_plan(sheet: Sheet, columns: Mapping[str, ColumnTypes]) -> SheetPlan:
    types = {column: seen.best() for column, seen in columns.items()}
    misfits = {column: seen.misfits for column, seen in columns.items() if seen.misfits is not None}
    blank = frozenset(column for column, seen in columns.items() if seen.is_blank)
    wkt = _find_column(sheet.header, WKT_NAMES)
    if wkt is not None:
        types[wkt] = pa.string()
        misfits.pop(wkt, None)
        return SheetPlan(types, wkt, None, frozenset(misfits), misfits, blank)
    plan = SheetPlan(types, None, None, frozenset(misfits), misfits, blank)
    x = _find_column(sheet.header, X_NAMES)
    y = _find_column(sheet.header, Y_NAMES)
    if x is None or y is None:
        return plan
    impure = {c for c in (x, y) if c in misfits or not _is_number(types[c])}
    if (x.lower(), y.lower()) == ("x", "y") and not all(
        _count_cells(sheet, c).is_mostly_numbers for c in impure
    ):
        return plan  # any sheet may have an x and a y of its own
    others = {column: what for column, what in misfits.items() if column not in impure}
    floats = dict.fromkeys(impure, FLOATS)
    return SheetPlan({**types, **floats}, None, (x, y), plan.mixed | impure, others, blank)


def _find_column(header: tuple[str, ...], known: tuple[str, ...]) -> str | None:
    """Find the column with the first of the known names, capitals aside."""
    lowered = {column.lower(): column for column in reversed(header)}
    return next((lowered[name] for name in known if name in lowered), None)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


@dataclass(slots=True)
class _CellCount:
    """How many cells of a column are filled, how many of these are not numbers, and the first."""

    filled: int = 0
    others: int = 0
    first_row: int = 0
    first_other: str = ""

    @property
    def is_mostly_numbers(self) -> bool:
        """Whether at least half of the cells that are not empty are numbers."""
        return 2 * self.others <= self.filled


def _count_cells(sheet: Sheet, column: str) -> _CellCount:
    count, first_row = _CellCount(), 0
    for batch, _ in sheet.read_rows((column,)):
        cells = batch.column(column)
        others = np.flatnonzero(_are_others(cells, to_coordinates(cells)))
        if len(others) and not count.others:
            count.first_row = first_row + int(others[0])
            count.first_other = cells[int(others[0])].as_py()
        count.filled += len(cells) - cells.null_count
        count.others += len(others)
        first_row += batch.num_rows
    return count


def _explain_text(sheet: Sheet, column: str) -> str | None:
    if column not in sheet.header:  # WKT goes by another name
        return None
    count = _count_cells(sheet, column)
    if not count.others or not count.is_mostly_numbers:
        return None
    line = next(islice(sheet.first_lines(), count.first_row, None))
    numbers = f"{count.filled - count.others:,} of {count.filled:,} cells are numbers"
    return f"{numbers}, and line {line} has {brief(count.first_other)}"


def _to_points(cells: pa.RecordBatch, x_column: str, y_column: str) -> pa.Array:
    """Encode points as WKB: null where a coordinate is missing, a fault where one is bad."""
    x, y = _Axis(x_column, cells.column(x_column)), _Axis(y_column, cells.column(y_column))
    encoded = np.array(shapely.to_wkb(shapely.points(x.values, y.values)), dtype=object)
    is_missing = x.is_missing | y.is_missing
    for axis, other in ((y, x), (x, y)):
        for row, reason in axis.find_faults(other):
            encoded[row] = tell_fault(axis.column, reason)
            is_missing[row] = False
    return pa.array(encoded, pa.binary(), mask=is_missing)


class _Axis:
    """A column of coordinates: its cells, and its values, which are NaN where one is missing."""

    def __init__(self, column: str, cells: pa.Array) -> None:
        self.column, self._cells = column, cells
        values = to_coordinates(cells)
        self.values: Floats = np.asarray(values.to_numpy(zero_copy_only=False))
        self.is_missing: NDArray[np.bool_] = np.asarray(values.is_null(), bool)
        self._is_other = _are_others(cells, values)

    def find_faults(self, partner: "_Axis") -> Iterator[tuple[int, str]]:
        """Find the rows whose cell is not a number, or not in degrees although its column is.

        The partner has the other coordinates.
        """
        others = np.flatnonzero(self._is_other)
        reasons = explain_misfits(self._cells.take(others), FLOATS)
        yield from zip(others.tolist(), reasons, strict=True)
        kind, most = _DEGREES.get(self.column.lower(), ("", math.inf))
        is_beyond = np.isfinite(self.values) & (np.abs(self.values) > most)
        for row in np.flatnonzero(is_beyond).tolist():
            shown = brief_text(self._cells[row].as_py().strip())
            hint = "use columns x and y for other coordinates"
            own, other = self.values[row], partner.values[row]
            if abs(own) <= LONGITUDE_MAX and abs(other) <= LATITUDE_MAX:
                hint = f"swapped with {partner.column!r}?"
            yield row, f"{shown} is not a {kind} ({hint})"


def _are_others(texts: pa.Array, values: pa.Array) -> NDArray[np.bool_]:
    """Which cells are neither empty nor numbers."""
    is_other: NDArray[np.bool_] = np.asarray(pc.and_(texts.is_valid(), values.is_null()), bool)
    return is_other
