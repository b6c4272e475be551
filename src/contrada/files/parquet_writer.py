"""Parquet and GeoParquet out."""

import contextlib
import json
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from contrada.files.crs import LONGITUDE_LATITUDE, is_same_crs, to_projjson
from contrada.files.geometry_text import Geometries, decode_geometries, to_iso_wkb

ROW_GROUP_ROWS = 131_072
ROW_GROUP_BYTES = 128 * 2**20
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
    """GeoParquet 1.1 with one geometry column; its types and box are known at the end."""

    def __init__(
        self, file: IO[bytes], schema: pa.Schema, geometry: str, crs: str | None, name: str
    ) -> None:
        self._index = schema.get_field_index(geometry)
        self._field = pa.field(geometry, pa.large_binary())
        self._crs = crs
        self._name = name
        self._rows = 0
        self._types: set[str] = set()
        self._boxes = np.empty((0, 4))
        # Who reads a folder sees this of its first file; what is known at the end takes its place.
        super().__init__(file, schema.set(self._index, self._field), self._key_values())

    def write(self, table: pa.Table) -> None:
        """Hold rows with their geometries as ISO WKB."""
        geometries = decode_geometries(table.column(self._index), self._rows, self._name)
        self._rows += table.num_rows
        self._note(geometries)
        super().write(table.set_column(self._index, self._field, to_iso_wkb(geometries)))

    def finish(self) -> None:
        """Write the last row group, the `geo` metadata and the footer."""
        self._write_group()
        self._parquet.add_key_value_metadata(self._key_values())
        super().finish()

    def _note(self, geometries: Geometries) -> None:
        present = geometries[~shapely.is_missing(geometries)]
        if not len(present):
            return
        kinds = np.column_stack([shapely.get_type_id(present), shapely.has_z(present)])
        for type_id, has_z in np.unique(kinds, axis=0):
            self._types.add(TYPE_NAMES[shapely.GeometryType(type_id)] + (" Z" if has_z else ""))
        self._boxes = np.vstack([self._boxes, shapely.total_bounds(present)])

    def _key_values(self) -> dict[str, str]:
        return {"geo": json.dumps(self._metadata())}

    def _metadata(self) -> dict[str, Any]:
        column: dict[str, Any] = {"encoding": "WKB", "geometry_types": sorted(self._types)}
        boxes = self._boxes[~np.isnan(self._boxes).any(axis=1)]
        if len(boxes) and np.isfinite(boxes).all():  # JSON has no other numbers
            column["bbox"] = [*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0)]
        if self._crs is None:
            column["crs"] = None
        elif not is_same_crs(self._crs, LONGITUDE_LATITUDE):
            column["crs"] = to_projjson(self._crs)
        columns = {self._field.name: column}
        return {"version": "1.1.0", "primary_column": self._field.name, "columns": columns}
