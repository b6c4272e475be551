"""The vector formats that GDAL reads, by the suffix of a file, and what lies beside such a file."""

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from contrada.errors import InvalidInput, MissingPackage, blame
from contrada.showing import listed

FOLDER_SUFFIX = ".gdb"  # the one format that is a folder
ZIP = ".zip"
FOR_MACOS = "__MACOSX/"  # what macOS puts into archives for itself
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
COMMON_SUFFIXES = (*_COMMON, ZIP)
# Formats of ours, of rasters and spreadsheets, those that name other files or addresses to read,
# and one that runs a program.
_OTHER_DRIVERS = frozenset(
    "CSV GeoJSON GeoJSONSeq ESRIJSON JSONFG Parquet Arrow PCIDSK PDS4 VICAR ODS XLSX XLS OGR_VRT "
    "GDALG ADBC WFS OAPIF OGCAPI HTTP GPSBabel MEM GTFS".split()
)
_VAGUE_SUFFIXES = frozenset(".xml .json .txt .csv .zip .dbf .mid .db .map".split())
_SIDE_SUFFIXES = {
    ".shp": (".shx", ".dbf", ".prj", ".cpg", ".qix", ".sbn", ".sbx"),
    ".tab": (".dat", ".map", ".id", ".ind"),
    ".mif": (".mid",),
    ".gml": (".xsd",),
}
_CACHED = frozenset({".gml", ".vfk"})  # GDAL keeps what it learns of such a file beside it
_MIXED_TYPES = (0x8000_0000, 2000, 3000)  # GDAL's wkbUnknown with z, with m and with both


def import_pyogrio() -> Any:
    """Import pyogrio, which reads all of these formats."""
    try:
        import pyogrio
    except ImportError as fault:
        raise MissingPackage(
            "FlatGeobuf, GeoPackage, shapefiles and other vector formats are read through pyogrio, "
            "which is not installed: pip install pyogrio"
        ) from fault
    # GDAL's faster way to read FlatGeobuf spoils the rows around a missing geometry.
    pyogrio.set_gdal_config_options({"OGR_FLATGEOBUF_STREAM_BASE_IMPL": True})
    # It has a name for a layer of mixed geometries only where none of them has a z or an m.
    known_types = getattr(getattr(pyogrio, "_geometry", None), "GEOMETRY_TYPES", {})
    for mixed in _MIXED_TYPES:
        known_types.setdefault(mixed, "Unknown")
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


def check_driver(driver: str, suffix: str, name: str) -> None:
    """Refuse a file that GDAL reads as another format than its suffix says."""
    known = list_drivers()
    wanted = known.get(suffix, ())
    if suffix == ZIP:
        wanted = tuple({driver for drivers in known.values() for driver in drivers})
    if driver not in wanted:
        kinds = " or ".join(wanted) if suffix != ZIP else "zip archive of a known format"
        raise InvalidInput(f"{name}: not a {kinds} file, but {driver}")


@contextmanager
def gdal_path(path: Path, suffix: str, name: str) -> Iterator[str]:
    """Spell a path for GDAL, for as long as the context lasts.

    Where GDAL would write beside a file, or believe what it has written there once, it reads the
    file through a link in a folder that goes away again.
    """
    if suffix == ZIP:
        yield _find_in_archive(path, name)
        return
    if "!" in str(path):
        raise InvalidInput(f'{name}: GDAL takes what follows the "!" for a file in an archive')
    if suffix not in _CACHED:
        yield str(path)
        return
    with TemporaryDirectory(prefix="contrada-") as folder:
        for file in (path, *path.parent.glob("*.[xX][sS][dD]")):
            (Path(folder) / file.name).symlink_to(os.path.realpath(file))
        try:
            yield str(Path(folder) / path.name)
        except RuntimeError as fault:
            raise RuntimeError(str(fault).replace(folder, str(path.parent))) from fault


def _find_in_archive(path: Path, name: str) -> str:
    """Spell the one file of a known format in a zip archive; the archive if there are several."""
    with open_archive(path, name) as archive:
        members = [m for m in archive.namelist() if not m.startswith(FOR_MACOS)]
    known = [m for m in members if any(m.lower().endswith(s) for s in list_drivers())]
    if not known and not any(f"{FOLDER_SUFFIX}/" in m for m in members):
        raise InvalidInput(f"{name}: it contains no file of a known format, only {listed(members)}")
    inside = f"/{known[0]}" if len(known) == 1 else ""
    return f"/vsizip/{os.path.realpath(path)}{inside}"


@contextmanager
def open_archive(path: Path, name: str) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive, with our errors for what is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as fault:
        raise blame(fault, f"{name}: cannot be read: {fault}") from fault


def list_side_files(path: Path) -> list[Path]:
    """List the files beside one that are read with it, whether or not they are there."""
    suffixes = _SIDE_SUFFIXES.get(path.suffix.lower(), ())
    return [find_side_file(path, suffix) for suffix in suffixes]


def find_side_file(path: Path, suffix: str) -> Path:
    """Find a file of the same name with another suffix, in lower or upper case."""
    upper = path.with_suffix(suffix.upper())
    return upper if upper.exists() else path.with_suffix(suffix)
