"""CSV and TSV: geometries from WKT or from longitude and latitude, types from all cells."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import shapely

from contrada.files.rows import Rows, keep_columns
from contrada.files.sheet import RowTooLong, Sheet, open_sheet
from contrada.files.text_types import ColumnTypes, convert

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
WKT_NAMES = ("geometry", "wkt", "geom", "the_geom")
X_NAMES = ("lon", "lng", "long", "longitude", "x")
Y_NAMES = ("lat", "latitude", "y")


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the columns of a sheet go: its types, and the column or columns of the geometry."""

    types: dict[str, pa.DataType]
    wkt: str | None
    position: tuple[str, str] | None

    def schema(self) -> pa.Schema:
        """The columns of the sheet, with `geometry` among them or at the end."""
        fields = [
            pa.field("geometry" if column == self.wkt else column, kind)
            for column, kind in self.types.items()
        ]
        if self.position:
            fields.append(pa.field("geometry", pa.binary()))
        return pa.schema(fields)

    def column(self, name: str, cells: pa.RecordBatch) -> pa.Array:
        """One column of the schema, from a batch of cells."""
        if name == "geometry" and self.position:
            x, y = (convert(cells.column(part), self.types[part]) for part in self.position)
            return _to_points(x.cast(pa.float64(), safe=False), y.cast(pa.float64(), safe=False))
        source = self.wkt if name == "geometry" and self.wkt else name
        return convert(cells.column(source), self.types[source])


def read_delimited(
    path: Path, name: str, *, batch_rows: int, columns: Sequence[str] | None
) -> Rows:
    """Rows of a CSV or TSV file, which may be compressed with gzip."""
    sheet = open_sheet(path, name)
    keep_columns(pa.schema([(column, pa.string()) for column in sheet.header]), None, name)
    sheet, types, count = _survey(sheet)
    plan = _make_plan(sheet, types)
    full = plan.schema()
    schema = pa.schema([full.field(column) for column in keep_columns(full, columns, name)])

    def deliver() -> Iterator[pa.RecordBatch]:
        try:
            for cells in sheet.read_cells():
                arrays = [plan.column(column, cells) for column in schema.names]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        except RowTooLong as fault:
            raise sheet.fault("a row is longer than before: the file has changed") from fault

    is_spatial = (plan.wkt or plan.position) and "geometry" in schema.names
    geometries = ("geometry",) if is_spatial else ()
    return Rows(name, schema, geometries, None, count, batch_rows, deliver)


def _survey(sheet: Sheet) -> tuple[Sheet, dict[str, pa.DataType], int]:
    """The types of all columns and the number of rows, with blocks that every row fits in."""
    while True:
        columns = {column: ColumnTypes() for column in sheet.header}
        count = 0
        try:
            for cells in sheet.read_cells():
                count += cells.num_rows
                for column, types in columns.items():
                    types.see(cells.column(column))
        except RowTooLong:
            sheet = sheet.with_larger_blocks()
        else:
            return sheet, {column: types.best() for column, types in columns.items()}, count


def _make_plan(sheet: Sheet, types: dict[str, pa.DataType]) -> Plan:
    wkt = _find_column(sheet.header, WKT_NAMES)
    if wkt is not None:
        return Plan({**types, wkt: pa.string()}, wkt, None)
    x = _find_column(sheet.header, X_NAMES)
    y = _find_column(sheet.header, Y_NAMES)
    if x is None or y is None:
        return Plan(types, None, None)
    wrong = [column for column in (x, y) if not _is_number(types[column])]
    place = [_find_text(sheet, column) for column in wrong]
    found = next((text for text in place if text), None)
    if found is None:
        return Plan(types, None, (x, y))
    if (x.lower(), y.lower()) == ("x", "y"):
        return Plan(types, None, None)
    raise sheet.fault(found)


def _find_column(header: tuple[str, ...], known: tuple[str, ...]) -> str | None:
    """The column with the first of the known names, capitals aside."""
    lowered = {column.lower(): column for column in reversed(header)}
    return next((lowered[name] for name in known if name in lowered), None)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _find_text(sheet: Sheet, column: str) -> str | None:
    """The first cell of a column that is no number; None where all of them are empty."""
    row = 0
    for cells in sheet.read_cells():
        for cell in cells.column(column):
            types = ColumnTypes()
            types.see(pa.array([cell.as_py()], pa.string()))
            if cell.is_valid and not _is_number(types.best()):
                return f'column "{column}" in row {row} is no coordinate: "{cell}"'
            row += 1
    return None


def _to_points(x: pa.Array, y: pa.Array) -> pa.Array:
    """Points as WKB; null where either coordinate is missing."""
    xs, ys = (np.asarray(values.to_numpy(zero_copy_only=False)) for values in (x, y))
    is_missing = np.asarray(x.is_null()) | np.asarray(y.is_null())
    return pa.array(shapely.to_wkb(shapely.points(xs, ys)), pa.binary(), mask=is_missing)
