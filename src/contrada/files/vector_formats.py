"""The vector formats that GDAL reads, by the suffix of a file, and what lies beside such a file."""

import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from contrada.errors import InvalidInput, MissingPackage
from contrada.showing import listed

FOLDER_SUFFIX = ".gdb"  # the one format that is a folder
_ZIP = ".zip"
_COMMON = {
    ".fgb": ("FlatGeobuf",),
    ".gpkg": ("GPKG",),
    ".shp": ("ESRI Shapefile",),
    ".shz": ("ESRI Shapefile",),
    ".shp.zip": ("ESRI Shapefile",),
    FOLDER_SUFFIX: ("OpenFileGDB",),
    ".kml": ("LIBKML", "KML"),
    ".kmz": ("LIBKML",),
    ".gpx": ("GPX",),
    ".gml": ("GML",),
    ".tab": ("MapInfo File",),
    ".mif": ("MapInfo File",),
    ".sqlite": ("SQLite",),
    ".dxf": ("DXF",),
}
COMMON_SUFFIXES = (*_COMMON, _ZIP)
# Formats of ours, of rasters and spreadsheets, those that name other files or addresses to read,
# and one that runs a program.
_OTHER_DRIVERS = frozenset(
    "CSV GeoJSON GeoJSONSeq ESRIJSON JSONFG Parquet Arrow PCIDSK PDS4 VICAR ODS XLSX XLS OGR_VRT "
    "GDALG ADBC WFS OAPIF OGCAPI HTTP GPSBabel MEM GTFS".split()
)
_VAGUE_SUFFIXES = frozenset(".xml .json .txt .csv .zip .dbf .mid .db .map".split())
_REDIRECTIONS = (b"<OGRVRTDataSource", b"<OGRWFSDataSource", b"gdal_streamed_alg")
_MAGIC = {
    ".fgb": (b"fgb", "FlatGeobuf file"),
    ".gpkg": (b"SQLite format 3\0", "GeoPackage file"),
    ".sqlite": (b"SQLite format 3\0", "SQLite database"),
    ".shp": (b"\x00\x00\x27\x0a", "shapefile"),
    ".shz": (b"PK", "zipped shapefile"),
    ".kmz": (b"PK", "zipped KML file"),
    _ZIP: (b"PK", "zip archive"),
}
_SIDE_SUFFIXES = {
    ".shp": (".shx", ".dbf", ".prj", ".cpg", ".qix", ".sbn", ".sbx"),
    ".tab": (".dat", ".map", ".id", ".ind"),
    ".mif": (".mid",),
    ".gml": (".xsd",),
}
_CACHED = frozenset({".gml", ".vfk"})  # GDAL keeps what it learns of such a file beside it
_XML_SUFFIXES = frozenset(".gml .kml .gpx .jml .osm".split())
_XML_ROOT = re.compile(rb"<([A-Za-z_][^\s>/]*)[^>]*>")
_HEAD_BYTES = 4096


def import_pyogrio() -> Any:
    """Give pyogrio, which reads all of these formats."""
    try:
        import pyogrio
    except ImportError as fault:
        raise MissingPackage(
            "FlatGeobuf, GeoPackage, shapefiles and other vector formats are read through pyogrio, "
            "which is not installed: pip install pyogrio"
        ) from fault
    # GDAL's faster way to read FlatGeobuf spoils the rows around a missing geometry.
    pyogrio.set_gdal_config_options({"OGR_FLATGEOBUF_STREAM_BASE_IMPL": True})
    return pyogrio


def find_suffix(path: Path) -> str | None:
    """Find the suffix of a vector format in a path; None where there is none."""
    for suffix in COMMON_SUFFIXES:
        if path.name.lower().endswith(suffix):
            return suffix
    try:
        known = list_drivers()
    except MissingPackage:
        return None
    return next((suffix for suffix in known if path.name.lower().endswith(suffix)), None)


@cache
def list_drivers() -> dict[str, tuple[str, ...]]:
    """List the suffixes of the formats that the installed GDAL reads, with its names for them."""
    pyogrio = import_pyogrio()
    readable = set(pyogrio.list_drivers(read=True))
    known = {
        suffix: tuple(driver for driver in drivers if driver in readable)
        for suffix, drivers in _COMMON.items()
    }
    details = pyogrio.list_drivers_details() if hasattr(pyogrio, "list_drivers_details") else {}
    for driver in sorted((readable & set(details)) - _OTHER_DRIVERS):
        for suffix in details[driver]["extensions"] or ():
            if suffix not in _VAGUE_SUFFIXES and driver not in known.get(suffix, ()):
                known[suffix] = (*known.get(suffix, ()), driver)
    return {suffix: drivers for suffix, drivers in known.items() if drivers}


def check_file(path: Path, suffix: str, name: str) -> None:
    """Refuse what only has the suffix, what leads GDAL elsewhere, and a shapefile without a part.

    GDAL would try every format that it knows.
    """
    if path.is_dir():
        return
    magic, kind = _MAGIC.get(suffix, (b"", ""))
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.startswith(magic):
        raise InvalidInput(f"{name}: not a {kind}")
    if any(mark in head for mark in _REDIRECTIONS):
        raise InvalidInput(f"{name}: it names other files or addresses to read; name those")
    if suffix == ".shp":
        _check_shapefile(path, name)
    if suffix in _XML_SUFFIXES:
        _check_end(path, head, name)


def _check_shapefile(path: Path, name: str) -> None:
    """Refuse a shapefile without a part, or with one that is cut: GDAL reads on in silence."""
    _refuse_cut(path, lambda head: 2 * int.from_bytes(head[24:28], "big"), name)
    for suffix, content in ((".shx", "the places of its rows"), (".dbf", "its attributes")):
        if not _find_side_file(path, suffix).exists():
            raise InvalidInput(
                f"{name}: there is no {path.with_suffix(suffix).name}, which has {content}; "
                "a shapefile is the .shp, the .shx and the .dbf together"
            )
    index, attributes = _find_side_file(path, ".shx"), _find_side_file(path, ".dbf")
    _refuse_cut(index, lambda head: 2 * int.from_bytes(head[24:28], "big"), name)
    _refuse_cut(attributes, _find_dbf_length, name)


def _find_dbf_length(head: bytes) -> int:
    rows, head_bytes, row_bytes = struct.unpack_from("<IHH", head.ljust(12, b"\0"), 4)
    return int(head_bytes + rows * row_bytes)


def _refuse_cut(path: Path, find_length: Callable[[bytes], int], name: str) -> None:
    with path.open("rb") as file:
        stated = find_length(file.read(100))
    length = path.stat().st_size
    if length < max(stated, 12):
        raise InvalidInput(f"{name}: {path.name} is cut after {length:,} of {stated:,} bytes")


def _check_end(path: Path, head: bytes, name: str) -> None:
    """Refuse XML that does not come to the end of its root: GDAL reads what is there."""
    root = _XML_ROOT.search(head)
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _HEAD_BYTES))
        tail = file.read()
    if root is None or (b"</" + root[1] not in tail and not root[0].endswith(b"/>")):
        raise InvalidInput(f"{name}: it is cut, or no XML: its root does not end")


def check_driver(driver: str, suffix: str, name: str) -> None:
    """Refuse a file that GDAL reads as another format than its suffix says."""
    known = list_drivers()
    wanted = known.get(suffix, ())
    if suffix == _ZIP:
        wanted = tuple({driver for drivers in known.values() for driver in drivers})
    if driver not in wanted:
        kinds = " or ".join(wanted) if suffix != _ZIP else "zip archive of a known format"
        raise InvalidInput(f"{name}: not a {kinds} file, but {driver}")


@contextmanager
def gdal_path(path: Path, suffix: str, name: str) -> Iterator[str]:
    """Spell a path for GDAL, for as long as the context lasts.

    Where GDAL would write beside a file, or believe what it has written there once, it reads the
    file through a link in a folder that goes away again.
    """
    if suffix == _ZIP:
        yield _find_in_archive(path, name)
        return
    if "!" in str(path):
        raise InvalidInput(f'{name}: GDAL takes what follows the "!" for a file in an archive')
    if suffix not in _CACHED:
        yield str(path)
        return
    with TemporaryDirectory(prefix="contrada-") as folder:
        for file in (path, *path.parent.glob("*.[xX][sS][dD]")):
            (Path(folder) / file.name).symlink_to(file.resolve())
        try:
            yield str(Path(folder) / path.name)
        except RuntimeError as fault:
            raise RuntimeError(str(fault).replace(folder, str(path.parent))) from fault


def _find_in_archive(path: Path, name: str) -> str:
    """Spell the one file of a known format in a zip archive; the archive if there are several."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.namelist() if not m.startswith("__MACOSX/")]
    except (zipfile.BadZipFile, OSError, NotImplementedError) as fault:
        raise InvalidInput(f"{name}: cannot be read: {fault}") from fault
    known = [m for m in members if any(m.lower().endswith(s) for s in list_drivers())]
    if not known and not any(f"{FOLDER_SUFFIX}/" in m for m in members):
        raise InvalidInput(f"{name}: it has no file of a known format, only {listed(members)}")
    inside = f"/{known[0]}" if len(known) == 1 else ""
    return f"/vsizip/{path.resolve()}{inside}"


def list_side_files(path: Path) -> list[Path]:
    """List the files beside one that are read with it, whether or not they are there."""
    suffixes = _SIDE_SUFFIXES.get(path.suffix.lower(), ())
    return [_find_side_file(path, suffix) for suffix in suffixes]


def _find_side_file(path: Path, suffix: str) -> Path:
    """Find a file of the same name with another suffix, in small letters or in capitals."""
    upper = path.with_suffix(suffix.upper())
    return upper if upper.exists() else path.with_suffix(suffix)
