"""Reading rows from any source that Contrada takes: the format is known by the suffix alone."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from contrada.errors import InvalidInput
from contrada.files import delimited, geojson, json_lines, parquet, snapshot, vector
from contrada.files.arrow import read_table
from contrada.files.parquet import is_part_name
from contrada.files.rows import Rows

__all__ = ["is_part_name", "list_files", "read_rows"]

Reader = Callable[..., Rows]


def read_rows(
    source: object, *, batch_rows: int = 65_536, columns: Sequence[str] | None = None
) -> Rows:
    """Read the rows of a file or of a table, in batches of at most `batch_rows`.

    `source` is a path, anything with `__arrow_c_stream__` or `__arrow_c_array__` (pyarrow,
    polars, DuckDB, pandas) or a GeoDataFrame. `columns` names those to read, in this order.
    Rows stay as they are. One of several layers is asked for as `roads.gpkg|layername=main`.
    """
    if batch_rows < 1:
        raise InvalidInput(f"batch_rows must be at least 1, not {batch_rows}")
    if isinstance(source, Rows):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _read_file(os.fsdecode(source), batch_rows, columns)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return read_table(source, batch_rows=batch_rows, columns=columns)
    raise InvalidInput(
        f"rows come from a path, an Arrow table or a GeoDataFrame, not from {type(source).__name__}"
    )


def list_files(name: str) -> list[Path]:
    """List the files that are read for a path: itself, or the parts of a folder."""
    path = _find_path(name)
    return parquet.list_parts(path) if path.is_dir() else [path]


def _find_path(name: str) -> Path:
    """Give the path without the layer that it may name."""
    bare = Path(name.partition(vector.LAYER_MARK)[0])
    return bare if bare.suffix.lower() in vector.SUFFIXES else Path(name)


def _read_file(name: str, batch_rows: int, columns: Sequence[str] | None) -> Rows:
    path = _find_path(name)
    try:
        reader = _find_reader(path, name)
        if not path.exists():
            raise InvalidInput(f"{name}: no such file")
        return reader(path, name, batch_rows=batch_rows, columns=columns)
    except OSError as fault:
        raise InvalidInput(f"{name}: cannot be read: {fault.strerror or fault}") from fault


def _find_reader(path: Path, name: str) -> Reader:
    if path.is_dir():
        return parquet.read_parquet
    readers = _readers()
    for suffix, reader in readers.items():
        if path.name.lower().endswith(suffix):
            return reader
    raise InvalidInput(f"{name}: unknown suffix; known are: {', '.join(readers)}")


def _readers() -> dict[str, Reader]:
    return {
        **dict.fromkeys(parquet.SUFFIXES, parquet.read_parquet),
        **dict.fromkeys(geojson.SUFFIXES, geojson.read_geojson),
        **dict.fromkeys(json_lines.SUFFIXES, json_lines.read_json_lines),
        **dict.fromkeys(delimited.SUFFIXES, delimited.read_delimited),
        **dict.fromkeys(vector.SUFFIXES, vector.read_vector),
        **dict.fromkeys(snapshot.SUFFIXES, snapshot.read_snapshot),
    }
