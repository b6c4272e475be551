"""Parquet and GeoParquet out."""

import base64
import contextlib
import json
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
import shapely

from contrada.arrays import Geometries
from contrada.deferred import parquet as pq
from contrada.files.crs import CRS84, to_projjson
from contrada.files.geometry_text import decode_geometries, to_iso_wkb

ROW_GROUP_ROWS = 131_072
ROW_GROUP_BYTES = 128 * 2**20
_ARROW_SCHEMA = "ARROW:schema"  # where Arrow keeps its own types
TYPE_NAMES = {
    shapely.GeometryType.POINT: "Point",
    shapely.GeometryType.LINESTRING: "LineString",
    shapely.GeometryType.POLYGON: "Polygon",
    shapely.GeometryType.MULTIPOINT: "MultiPoint",
    shapely.GeometryType.MULTILINESTRING: "MultiLineString",
    shapely.GeometryType.MULTIPOLYGON: "MultiPolygon",
    shapely.GeometryType.GEOMETRYCOLLECTION: "GeometryCollection",
}


class PlainParquetWriter:
    """Parquet with zstd; small writes are gathered into row groups of a useful size."""

    def __init__(
        self, file: IO[bytes], schema: pa.Schema, metadata: dict[str, str] | None = None
    ) -> None:
        schema = schema.remove_metadata().with_metadata(metadata)
        self._parquet = pq.ParquetWriter(file, schema, compression="zstd")
        self._held: list[pa.Table] = []
        self._rows_held = 0
        self._bytes_held = 0

    def write(self, table: pa.Table) -> None:
        """Hold rows until a row group is full."""
        self._held.append(table)
        self._rows_held += table.num_rows
        self._bytes_held += table.nbytes
        if self._rows_held >= ROW_GROUP_ROWS or self._bytes_held >= ROW_GROUP_BYTES:
            self._write_group()

    def finish(self) -> None:
        """Write the last row group and the footer."""
        self._write_group()
        self._parquet.close()

    def abandon(self) -> None:
        """Close the writer, which may fail where the file is beyond help."""
        with contextlib.suppress(Exception):
            self._parquet.close()

    def _write_group(self) -> None:
        if self._held:
            table = pa.concat_tables(self._held).replace_schema_metadata(None)
            self._parquet.write_table(table, row_group_size=ROW_GROUP_ROWS)
            self._held = []
            self._rows_held = self._bytes_held = 0


class GeoParquetWriter(PlainParquetWriter):
    """GeoParquet 1.1; the types and boxes of its geometry columns are known at the end."""

    def __init__(
        self,
        file: IO[bytes],
        schema: pa.Schema,
        primary: str,
        crs: str | None,
        name: str,
        others: Sequence[str] = (),
    ) -> None:
        self._columns = {column: _Seen() for column in (primary, *others)}
        self._primary = primary
        self._crs = crs
        self._name = name
        self._rows = 0
        for column in self._columns:
            schema = schema.set(schema.get_field_index(column), _as_wkb_field(column))
        # What is known at the end takes the place of this.
        super().__init__(file, schema, self._key_values())

    def write(self, table: pa.Table) -> None:
        """Hold rows with their geometries as ISO WKB."""
        for column, seen in self._columns.items():
            geometries = decode_geometries(table.column(column), self._rows, self._name)
            seen.add(geometries)
            at = table.schema.get_field_index(column)
            table = table.set_column(at, _as_wkb_field(column), to_iso_wkb(geometries))
        self._rows += table.num_rows
        super().write(table)

    def finish(self) -> None:
        """Write the last row group, the `geo` metadata and the footer."""
        self._write_group()
        known = self._key_values()
        schema = self._parquet.schema.with_metadata(known)  # which many read instead of the footer
        serialized = base64.b64encode(schema.serialize().to_pybytes()).decode()
        self._parquet.add_key_value_metadata({**known, _ARROW_SCHEMA: serialized})
        super().finish()

    def _key_values(self) -> dict[str, str]:
        columns = {name: self._describe(seen) for name, seen in self._columns.items()}
        geo = {"version": "1.1.0", "primary_column": self._primary, "columns": columns}
        return {"geo": json.dumps(geo)}

    def _describe(self, seen: "_Seen") -> dict[str, Any]:
        column: dict[str, Any] = {"encoding": "WKB", "geometry_types": sorted(seen.types)}
        boxes = seen.boxes[~np.isnan(seen.boxes).any(axis=1)]
        if len(boxes) and np.isfinite(boxes).all():  # JSON has no other numbers
            column["bbox"] = [*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0)]
        if self._crs is None:
            column["crs"] = None
        elif self._crs != CRS84:  # which is what no system stands for
            column["crs"] = to_projjson(self._crs)
        return column


class _Seen:
    """The types of the geometries of a column so far, and their boxes."""

    def __init__(self) -> None:
        self.types: set[str] = set()
        self.boxes = np.empty((0, 4))

    def add(self, geometries: Geometries) -> None:
        """Take in some geometries."""
        present = geometries[~shapely.is_missing(geometries)]
        if not len(present):
            return
        kinds = np.column_stack([shapely.get_type_id(present), shapely.has_z(present)])
        for type_id, has_z in np.unique(kinds, axis=0):
            self.types.add(TYPE_NAMES[shapely.GeometryType(type_id)] + (" Z" if has_z else ""))
        self.boxes = np.vstack([self.boxes, shapely.total_bounds(present)])


def _as_wkb_field(name: str) -> pa.Field:
    return pa.field(name, pa.large_binary())
