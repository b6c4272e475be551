"""Vector formats of GDAL, through pyogrio: FlatGeobuf, GeoPackage, shapefiles and many more."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from contrada.deferred import compute as pc
from contrada.errors import InvalidInput, Remedy, Unavailable, blame
from contrada.files.arrow import Layout, lay_out
from contrada.files.crs import spell_crs
from contrada.files.rows import Rows
from contrada.files.vector_checks import check_file, count_rows
from contrada.files.vector_formats import (
    check_driver,
    find_suffix,
    gdal_path,
    import_pyogrio,
    list_side_files,
)
from contrada.model.geometry import tell_fault
from contrada.showing import brief, listed

LAYER_MARK = "|layername="  # as QGIS writes it
_PRJ_BEGINNING = 40  # bytes that are shown of one that is not understood
TIMESTAMP = pa.timestamp("us", "UTC")


def read_vector(path: Path, name: str, *, batch_rows: int, columns: Sequence[str] | None) -> Rows:
    """Read one layer of a file, with its geometry in `geometry`.

    The feature id is a column only where the file itself names it `id`.
    """
    pyogrio = import_pyogrio()
    suffix = find_suffix(path)
    assert suffix is not None, "the reader was found by it"
    check_file(path, suffix, name)
    try:
        with gdal_path(path, suffix, name) as source:
            found = _look_at_layer(pyogrio, source, suffix, name, batch_rows)
    except (RuntimeError, IndexError, ValueError) as fault:
        if isinstance(fault, InvalidInput):
            raise
        raise _blame(path, f"{name}: cannot be read: {_explain(fault)}") from fault
    info, options, schema, times = found.info, found.options, found.schema, found.times
    layout = lay_out(schema, columns, name)
    crs = layout.crs or spell_crs(info["crs"], name)  # not every driver states it in both places
    if suffix == ".shp" and layout.geometries and crs is None:
        warnings.warn(
            f"{name}: {_lacking_prj(path, name)}, so its coordinate system is unknown; "
            "the other file's is assumed",
            stacklevel=2,
        )
    announced = info["features"] if info["features"] >= 0 else None

    def deliver() -> Iterator[pa.RecordBatch]:
        row = 0
        try:
            with gdal_path(path, suffix, name) as source:
                with pyogrio.open_arrow(source, **options) as (_, stream):
                    for batch in stream:
                        yield _arrange(batch.rename_columns(schema.names), layout, times)
                        row += batch.num_rows
                if row != announced:
                    rows_min = count_rows(path, suffix, announced)
                    _check_end(pyogrio, source, options["layer"], row, rows_min, name)
        except RuntimeError as fault:
            raise _blame(path, f"{name}: reading failed after row {row}: {fault}") from fault

    return Rows(
        name,
        _with_times(layout.schema, times),
        layout.geometry_columns,
        crs,
        announced,
        batch_rows,
        deliver,
    )


@dataclass(frozen=True, slots=True)
class _FoundLayer:
    """What GDAL says of a layer, how it is opened, its columns, and those that are times."""

    info: dict[str, Any]
    options: dict[str, Any]
    schema: pa.Schema
    times: frozenset[str]


def _look_at_layer(
    pyogrio: Any, source: str, suffix: str, name: str, batch_rows: int
) -> _FoundLayer:
    """Open the layer that the name asks for, without reading rows."""
    layer = _find_layer(pyogrio.list_layers(source), name)
    info = _read_info(pyogrio, source, layer)
    check_driver(info["driver"], suffix, name)
    # Times come as text: GDAL's own timestamps drop the offset from UTC.
    options = {
        "layer": layer,
        "batch_size": batch_rows,
        "use_pyarrow": True,
        "datetime_as_string": True,
        "return_fids": info["fid_column"] == "id",
    }
    if _lacks_ids(pyogrio, source, info):
        options["columns"] = [field for field in info["fields"] if field != "id"]
    with pyogrio.open_arrow(source, **options) as (_, stream):
        return _FoundLayer(info, options, *_rename(stream.schema))


def _lacking_prj(path: Path, name: str) -> str:
    """Return what is wrong with a .prj that states no system; refuse one that means to."""
    for prj in (path.with_suffix(".prj"), path.with_suffix(".PRJ")):
        if prj.exists():
            with prj.open("rb") as file:
                beginning = file.read(_PRJ_BEGINNING)
            if beginning.strip():
                raise InvalidInput(
                    f"{name}: {prj.name} states no coordinate system that is understood "
                    f"({brief(beginning)}); write it as WKT in UTF-8, or remove it"
                )
            return f"{prj.name} is empty"
    return f"{path.with_suffix('.prj').name} is missing"


def _read_info(pyogrio: Any, source: str, layer: str) -> dict[str, Any]:
    """Ask for a layer's columns and system; pyogrio stumbles over texts that are not UTF-8."""
    try:
        info: dict[str, Any] = pyogrio.read_info(source, layer=layer)
    except UnboundLocalError as fault:
        what = "the text of its coordinate system, which is not UTF-8 (of a shapefile, the .prj)"
        raise ValueError(what) from fault
    return info


def _check_end(pyogrio: Any, source: str, layer: str, row: int, rows_min: int, name: str) -> None:
    """Refuse a file that GDAL has read only in part: where it fails, its stream just ends.

    A second pass, without any column, does report the failure or finds the other rows; or it ends
    as soon, and there are fewer than `rows_min`.
    """
    _, ids, *_ = pyogrio.raw.read(
        source, layer=layer, columns=[], read_geometry=False, return_fids=True
    )
    rows = max(len(ids), rows_min)
    if row < rows:
        raise InvalidInput(f"{name}: ends after {row} of {rows} rows")


def _blame(path: Path, message: str) -> InvalidInput | Unavailable:
    """Make an error of what GDAL says, which does not tell a file that may not be read."""
    try:
        for file in (path, *list_side_files(path)):
            if file.is_dir():
                list(file.iterdir())
            elif file.exists():
                with file.open("rb") as content:
                    content.read(1)
    except OSError as fault:
        return blame(fault, message)
    return InvalidInput(message)


def _explain(fault: Exception) -> str:
    """Describe what is wrong with a file, where pyogrio has only a number."""
    unread = re.search(r"Geometry type is not supported: (-?\d+)", str(fault))
    if unread is None:
        return str(fault)
    return (
        f"a layer has geometries of GDAL's type {unread[1]}, perhaps curves or surfaces; "
        "convert them first: ogr2ogr -nlt CONVERT_TO_LINEAR -dim XY"
    )


def _find_layer(layers: Any, name: str) -> str:
    """Find the layer that the name asks for, or the only one with geometries, or the only one."""
    known = [str(layer) for layer, _ in layers]
    bare, mark, asked = name.partition(LAYER_MARK)
    if mark:
        if asked not in known:
            raise InvalidInput(
                f"{bare}: there is no layer {asked!r}; it has {listed(known)}",
                remedies=[Remedy.LAYER],
            )
        return asked
    spatial = [str(layer) for layer, geometry_type in layers if geometry_type is not None]
    candidates = spatial or known
    if len(candidates) != 1:
        raise InvalidInput(
            f"{name}: expected one layer, but it has {listed(candidates) or 'none'}",
            remedies=[Remedy.LAYER] if candidates else (),
        )
    return candidates[0]


def _lacks_ids(pyogrio: Any, source: str, info: Mapping[str, Any]) -> bool:
    """Whether a KML layer, which always has a field for ids, has no id in it."""
    if info["driver"] != "LIBKML" or "id" not in info["fields"]:
        return False
    _, table = pyogrio.read_arrow(
        source, layer=info["layer_name"], columns=["id"], read_geometry=False
    )
    return bool(table.column("id").null_count == table.num_rows)


def _rename(schema: pa.Schema) -> tuple[pa.Schema, frozenset[str]]:
    """Return the schema with its geometry column called `geometry`, and the columns of times."""
    times = set()
    for index, field in enumerate(schema):
        metadata = field.metadata or {}
        if metadata.get(b"GDAL:OGR:type") == b"DateTime":
            times.add(field.name)
        if b"ARROW:extension:name" in metadata and "geometry" not in schema.names:
            schema = schema.set(index, field.with_name("geometry"))
    return schema, frozenset(times)


def _with_times(schema: pa.Schema, times: frozenset[str]) -> pa.Schema:
    return pa.schema(
        [field.with_type(TIMESTAMP) if field.name in times else field for field in schema]
    )


def _arrange(batch: pa.RecordBatch, layout: Layout, times: frozenset[str]) -> pa.RecordBatch:
    (arranged,) = layout.arrange(batch)  # GDAL writes every value out
    columns = dict(zip(layout.schema.names, arranged.columns, strict=True))
    for name in times & columns.keys():
        columns[name] = _to_times(columns[name])
    for name in layout.geometry_columns:
        columns[name] = _tell_lost(columns[name], name)
    schema = _with_times(layout.schema, times)
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)


def _tell_lost(geometries: pa.Array, name: str) -> pa.Array:
    """Mark geometries of which GDAL returns no bytes at all as bad, with the reason."""
    is_lost = pc.equal(pc.binary_length(geometries), 0)
    if not pc.any(is_lost).as_py():
        return geometries
    what = "GDAL cannot write this geometry as WKB (a LinearRing on its own, for example)"
    return pc.if_else(is_lost, pa.scalar(tell_fault(name, what), geometries.type), geometries)


def _to_times(texts: pa.Array) -> pa.Array:
    """Read times from ISO 8601 texts; one without a zone is in UTC."""
    has_zone = pc.match_substring_regex(texts, r":.*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")
    in_utc = pc.binary_join_element_wise(texts, "Z", "")
    return pc.if_else(has_zone, texts, in_utc).cast(TIMESTAMP)
