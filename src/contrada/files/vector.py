"""FlatGeobuf and GeoPackage, through pyogrio."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from contrada.errors import InvalidInput, MissingPackage
from contrada.files.arrow import Layout, lay_out
from contrada.files.rows import Rows

SUFFIXES = (".fgb", ".gpkg")
LAYER_MARK = "|layername="  # as QGIS writes it
MAGIC = {".fgb": (b"fgb", "FlatGeobuf"), ".gpkg": (b"SQLite format 3\0", "GeoPackage")}
TIMESTAMP = pa.timestamp("us", "UTC")


def read_vector(path: Path, name: str, *, batch_rows: int, columns: Sequence[str] | None) -> Rows:
    """Read a FlatGeobuf file or one layer of a GeoPackage, with its geometry in `geometry`.

    The feature id is a column only where the file itself names it `id`.
    """
    pyogrio = _import_pyogrio()
    _check_magic(path, name)
    try:
        layer = _find_layer(pyogrio.list_layers(path), name)
        info = pyogrio.read_info(path, layer=layer)
        # Times come as text: GDAL's own timestamps drop the offset from UTC.
        options = {
            "layer": layer,
            "batch_size": batch_rows,
            "use_pyarrow": True,
            "datetime_as_string": True,
            "return_fids": info["fid_column"] == "id",
        }
        with pyogrio.open_arrow(path, **options) as (_, stream):
            schema, times = _rename(stream.schema)
    except (RuntimeError, IndexError, ValueError) as fault:
        if isinstance(fault, InvalidInput):
            raise
        raise InvalidInput(f"{name}: cannot be read: {fault}") from fault
    layout = lay_out(schema, columns, name)
    announced = info["features"] if info["features"] >= 0 else None

    def deliver() -> Iterator[pa.RecordBatch]:
        row = 0
        try:
            with pyogrio.open_arrow(path, **options) as (_, stream):
                for batch in stream:
                    yield _arrange(batch.rename_columns(schema.names), layout, times)
                    row += batch.num_rows
        except RuntimeError as fault:
            raise InvalidInput(f"{name}: cannot read on after row {row}: {fault}") from fault
        if path.suffix.lower() == ".fgb" and announced is not None and row < announced:
            # GDAL takes a file that is cut within its index for one without rows.
            raise InvalidInput(f"{name}: ends after {row} of {announced} rows")

    return Rows(
        name,
        _with_times(layout.schema, times),
        layout.geometry_columns,
        layout.crs,
        announced,
        batch_rows,
        deliver,
    )


def _import_pyogrio() -> Any:
    try:
        import pyogrio
    except ImportError as fault:
        raise MissingPackage(
            'FlatGeobuf and GeoPackage are read through pyogrio: pip install "contrada[files]"'
        ) from fault
    # GDAL's faster way to read FlatGeobuf spoils the rows around a missing geometry.
    pyogrio.set_gdal_config_options({"OGR_FLATGEOBUF_STREAM_BASE_IMPL": True})
    return pyogrio


def _check_magic(path: Path, name: str) -> None:
    """Refuse what only has the suffix; GDAL would try every format that it knows."""
    magic, kind = MAGIC[path.suffix.lower()]
    with path.open("rb") as file:
        if file.read(len(magic)) != magic:
            raise InvalidInput(f"{name}: not a {kind} file")


def _find_layer(layers: Any, name: str) -> str:
    """Find the layer that the name asks for, or the only one with geometries, or the only one."""
    known = [str(layer) for layer, _ in layers]
    _, mark, asked = name.partition(LAYER_MARK)
    if mark:
        if asked not in known:
            raise InvalidInput(f'{name}: no layer "{asked}"; there are: {", ".join(known)}')
        return asked
    spatial = [str(layer) for layer, geometry_type in layers if geometry_type is not None]
    candidates = spatial or known
    if len(candidates) != 1:
        raise InvalidInput(
            f"{name}: one layer is expected, there are: {', '.join(candidates) or 'none'}; "
            f"ask for one as {name}{LAYER_MARK}{(candidates or ['roads'])[0]}"
        )
    return candidates[0]


def _rename(schema: pa.Schema) -> tuple[pa.Schema, frozenset[str]]:
    """Give the schema with its geometry column called `geometry`, and the columns of times."""
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
    columns = [
        _to_times(column) if field.name in times else column
        for field, column in zip(layout.schema, layout.arrange(batch).columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_with_times(layout.schema, times))


def _to_times(texts: pa.Array) -> pa.Array:
    """Read times from ISO 8601 texts; one without a zone is in UTC."""
    has_zone = pc.match_substring_regex(texts, r":.*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")
    in_utc = pc.binary_join_element_wise(texts, "Z", "")
    return pc.if_else(has_zone, texts, in_utc).cast(TIMESTAMP)
