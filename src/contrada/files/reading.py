"""Reading rows from any source that Contrada takes: the format is known by the suffix alone."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from contrada.errors import InvalidInput, MissingPackage, Remedy, blame
from contrada.files import delimited, geojson, json_lines, parquet, snapshot, vector
from contrada.files.arrow import read_table
from contrada.files.parquet import is_part_name
from contrada.files.regular_files import check_named, check_regular
from contrada.files.rows import Rows
from contrada.files.vector_formats import (
    COMMON_SUFFIXES,
    FOLDER_SUFFIX,
    find_suffix,
    list_drivers,
    list_side_files,
)

__all__ = ["READ_SUFFIXES", "find_path", "is_part_of", "list_files", "name_layer", "read_rows"]

Reader = Callable[..., Rows]

_READERS: dict[str, Reader] = {
    **dict.fromkeys(parquet.SUFFIXES, parquet.read_parquet),
    **dict.fromkeys(geojson.SUFFIXES, geojson.read_geojson),
    **dict.fromkeys(json_lines.SUFFIXES, json_lines.read_json_lines),
    **dict.fromkeys(delimited.SUFFIXES, delimited.read_delimited),
    **dict.fromkeys(snapshot.SUFFIXES, snapshot.read_snapshot),
}
READ_SUFFIXES = (*_READERS, *COMMON_SUFFIXES)  # of the files that are read; GDAL may know more


def read_rows(
    source: object,
    *,
    batch_rows: int = 65_536,
    columns: Sequence[str] | None = None,
    is_decoded: bool = True,
) -> Rows:
    """Read the rows of a file or of a table, in batches of at most `batch_rows`.

    `source` is a path, anything with `__arrow_c_stream__` or `__arrow_c_array__` (pyarrow,
    polars, DuckDB, pandas) or a GeoDataFrame. `columns` names those to read, in this order.
    Rows stay as they are. One of several layers is asked for as `roads.gpkg|layername=main`.
    Geometries that a table in memory has in a dictionary are decoded unless `is_decoded` is false.
    """
    if batch_rows < 1:
        raise InvalidInput(f"batch_rows must be at least 1, not {batch_rows}")
    if isinstance(source, Rows):
        return source
    if isinstance(source, (str, os.PathLike)):
        name = os.fsdecode(source)
        check_named(name)
        return _read_file(name, batch_rows, columns)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return read_table(source, batch_rows=batch_rows, columns=columns, is_decoded=is_decoded)
    raise InvalidInput(
        f"expected a path, an Arrow table or a GeoDataFrame, not {type(source).__name__}"
    )


def list_files(name: str) -> list[Path]:
    """List the files that are read for a path: itself and those beside it, or a folder's parts."""
    path = find_path(name)
    if not path.is_dir():
        return [path, *list_side_files(path)]
    if _is_geodatabase(path):
        return [file for file in path.rglob("*") if not file.is_dir()]
    return parquet.list_parts(path)


def is_part_of(folder: Path, inside: Path) -> bool:
    """Whether a file of this name would be read with the folder."""
    return _is_geodatabase(folder) or is_part_name(inside)


def name_layer(name: str, layer: str) -> str:
    """Return the name of one layer of a file; refuse a file whose format has none."""
    if vector.LAYER_MARK in name:
        raise InvalidInput(f"{name} already names a layer")
    if _find_reader(Path(name), name) is not vector.read_vector:
        raise InvalidInput(f"{name}: this format has no layers")
    return f"{name}{vector.LAYER_MARK}{layer}"


def find_path(name: str) -> Path:
    """Return the path without the layer that it may name."""
    bare, mark, _ = name.partition(vector.LAYER_MARK)
    return Path(bare if mark and not Path(name).exists() else name)


def _is_geodatabase(folder: Path) -> bool:
    return folder.suffix.lower() == FOLDER_SUFFIX


def _read_file(name: str, batch_rows: int, columns: Sequence[str] | None) -> Rows:
    try:
        path = find_path(name)
        reader = _find_reader(path, name)
        _check_path(path, name)
        if reader is vector.read_vector:
            _check_side_files(name)
        elif path != Path(name):
            raise InvalidInput(f"{name}: this format has no layers")
        return reader(path, name, batch_rows=batch_rows, columns=columns)
    except OSError as fault:
        raise blame(fault, f"{name}: cannot be read: {fault.strerror or fault}") from fault


def _check_path(path: Path, name: str) -> None:
    try:
        check_regular(path, name)
    except InvalidInput:
        raise
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a name may hold a null character
        raise InvalidInput(f"{name}: no such file") from None


def _check_side_files(name: str) -> None:
    """Refuse a pipe among the files that GDAL opens along with one."""
    for file in list_files(name):
        if file.exists():
            check_regular(file, str(file))


def _find_reader(path: Path, name: str) -> Reader:
    if path.is_dir() and not _is_geodatabase(path):
        return parquet.read_parquet
    for suffix, reader in _READERS.items():
        if path.name.lower().endswith(suffix):
            return reader
    if find_suffix(path) is not None:
        return vector.read_vector
    if find_suffix(Path(name.partition("|")[0])) is not None:  # roads.gpkg|layer=main
        raise InvalidInput(f"{name}: no such file", remedies=[Remedy.LAYER])
    raise InvalidInput(
        f"{name}: unknown suffix; known suffixes: {', '.join(READ_SUFFIXES)}{_more()}"
    )


def _more() -> str:
    """Describe how many more suffixes the installed GDAL reads."""
    with suppress(MissingPackage):
        more = len(list_drivers().keys() - set(READ_SUFFIXES))
        return f" and {more} more that GDAL reads" if more else ""
    return ""
