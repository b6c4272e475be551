"""CSV and TSV: geometries from WKT or from longitude and latitude, types from all cells.

A coordinate that is no number makes its row's geometry undecodable and is null in its own column,
so that one bad cell neither ends the file nor turns all numbers into text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import shapely

from contrada.deferred import compute as pc
from contrada.files.rows import Rows, keep_columns
from contrada.files.sheet import RowTooLong, Sheet, open_sheet
from contrada.files.text_types import ColumnTypes, convert, to_coordinates
from contrada.model.geometry import tell_fault
from contrada.showing import brief

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
WKT_NAMES = ("geometry", "wkt", "geom", "the_geom")
X_NAMES = ("lon", "lng", "long", "longitude", "x")
Y_NAMES = ("lat", "latitude", "y")


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the columns of a sheet go: its types, and the column or columns of the geometry.

    `impure` are the columns of coordinates that hold other texts too.
    """

    types: dict[str, pa.DataType]
    wkt: str | None
    position: tuple[str, str] | None
    impure: frozenset[str] = frozenset()

    def schema(self) -> pa.Schema:
        """Give the columns of the sheet, with `geometry` among them or at the end."""
        fields = [
            pa.field("geometry" if column == self.wkt else column, kind)
            for column, kind in self.types.items()
        ]
        if self.position:
            fields.append(pa.field("geometry", pa.binary()))
        return pa.schema(fields)

    def column(self, name: str, cells: pa.RecordBatch) -> pa.Array:
        """Give one column of the schema, from a batch of cells."""
        if name == "geometry" and self.position:
            return _to_points(cells, *self.position)
        if name in self.impure:
            return to_coordinates(cells.column(name))
        source = self.wkt if name == "geometry" and self.wkt else name
        return convert(cells.column(source), self.types[source])


def read_delimited(
    path: Path, name: str, *, batch_rows: int, columns: Sequence[str] | None
) -> Rows:
    """Read the rows of a CSV or TSV file, which may be compressed with gzip."""
    sheet = open_sheet(path, name)
    keep_columns(pa.schema([(column, pa.string()) for column in sheet.header]), None, name)
    sheet, types = _survey(sheet)
    plan = _make_plan(sheet, types)
    full = plan.schema()
    schema = pa.schema([full.field(column) for column in keep_columns(full, columns, name)])

    def deliver() -> Iterator[pa.RecordBatch]:
        count = 0
        try:
            for cells in sheet.read_cells():
                arrays = [plan.column(column, cells) for column in schema.names]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
                count += cells.num_rows
        except RowTooLong as fault:
            raise sheet.fault("a row is longer than before: the file has changed") from fault
        if count != sheet.count:
            raise sheet.fault(f"{count} rows, {sheet.count} before: the file has changed")

    is_spatial = (plan.wkt or plan.position) and "geometry" in schema.names
    geometries = ("geometry",) if is_spatial else ()
    return Rows(
        name,
        schema,
        geometries,
        None,
        sheet.count,
        batch_rows,
        deliver,
        _open_lines=sheet.first_lines,
    )


def _survey(sheet: Sheet) -> tuple[Sheet, dict[str, pa.DataType]]:
    """Find the types of all columns, with blocks that every row fits in; no row may be missing."""
    while True:
        columns = {column: ColumnTypes(column) for column in sheet.header}
        count = 0
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
        raise sheet.fault(f"of {sheet.count} rows {count} can be read; is it being written to?")
    if sheet.suspects:
        sheet.refuse_swallowed(_see_short_cells(sheet))
    return sheet, {column: types.best() for column, types in columns.items()}


def _see_short_cells(sheet: Sheet) -> dict[str, ColumnTypes]:
    """Find the types of all columns, leaving out cells of several lines."""
    columns = {column: ColumnTypes(column) for column in sheet.header}
    for batch in sheet.read_cells():
        for column, types in columns.items():
            cells = batch.column(column)
            is_long = pc.fill_null(pc.match_substring_regex(cells, r"[\r\n]"), False)
            types.see(cells.filter(pc.invert(is_long)))
    return columns


def _make_plan(sheet: Sheet, types: dict[str, pa.DataType]) -> Plan:
    wkt = _find_column(sheet.header, WKT_NAMES)
    if wkt is not None:
        return Plan({**types, wkt: pa.string()}, wkt, None)
    x = _find_column(sheet.header, X_NAMES)
    y = _find_column(sheet.header, Y_NAMES)
    if x is None or y is None:
        return Plan(types, None, None)
    impure = frozenset(column for column in (x, y) if not _is_number(types[column]))
    if (x.lower(), y.lower()) == ("x", "y") and not all(
        _is_mostly_numbers(sheet, c) for c in impure
    ):
        return Plan(types, None, None)  # any sheet may have an x and a y of its own
    return Plan({**types, **dict.fromkeys(impure, pa.float64())}, None, (x, y), impure)


def _find_column(header: tuple[str, ...], known: tuple[str, ...]) -> str | None:
    """Find the column with the first of the known names, capitals aside."""
    lowered = {column.lower(): column for column in reversed(header)}
    return next((lowered[name] for name in known if name in lowered), None)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_mostly_numbers(sheet: Sheet, column: str) -> bool:
    """Tell whether at least half of the cells that are not empty are numbers."""
    balance = 0
    for batch in sheet.read_cells():
        cells = batch.column(column)
        present = len(cells) - cells.null_count
        numbers = len(cells) - to_coordinates(cells).null_count
        balance += 2 * numbers - present
    return balance >= 0


def _to_points(cells: pa.RecordBatch, x_column: str, y_column: str) -> pa.Array:
    """Encode points as WKB: null where a coordinate is missing, a fault where one is no number."""
    x_cells, y_cells = cells.column(x_column), cells.column(y_column)
    x, y = to_coordinates(x_cells), to_coordinates(y_cells)
    xs, ys = (np.asarray(values.to_numpy(zero_copy_only=False)) for values in (x, y))
    is_missing = np.asarray(x.is_null()) | np.asarray(y.is_null())
    encoded = np.array(shapely.to_wkb(shapely.points(xs, ys)), dtype=object)
    is_bad = np.zeros(len(encoded), bool)
    for column, texts, values in ((y_column, y_cells, y), (x_column, x_cells, x)):
        is_other = np.asarray(texts.is_valid()) & np.asarray(values.is_null())
        for row in np.flatnonzero(is_other).tolist():
            shown = brief(texts[row].as_py())
            encoded[row] = tell_fault(f"column {column!r}: {shown} is not a number")
        is_bad |= is_other
    return pa.array(encoded, pa.binary(), mask=is_missing & ~is_bad)
