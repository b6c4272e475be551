"""What is wrong with a vector file that GDAL would not say: it reads on, or finds fewer rows."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO
from zipfile import ZipInfo

from contrada.errors import InvalidInput
from contrada.files.flatgeobuf import count_bytes_left
from contrada.files.vector_formats import (
    FOR_MACOS,
    ZIP,
    find_side_file,
    open_archive,
)
from contrada.files.well_formed import check_xml
from contrada.limits import ARCHIVE_BYTES_MAX
from contrada.showing import listed

_REDIRECTIONS = (b"<OGRVRTDataSource", b"<OGRWFSDataSource", b"gdal_streamed_alg")
_MAGIC = {
    ".fgb": (b"fgb", "FlatGeobuf file"),
    ".gpkg": (b"SQLite format 3\0", "GeoPackage file"),
    ".sqlite": (b"SQLite format 3\0", "SQLite database"),
    ".shp": (b"\x00\x00\x27\x0a", "shapefile"),
    ".shz": (b"PK", "zipped shapefile"),
    ".kmz": (b"PK", "zipped KML file"),
    ZIP: (b"PK", "zip archive"),
}
_XML_SUFFIXES = frozenset(".gml .kml .gpx .jml .osm".split())
_COUNTED_SUFFIXES = frozenset({".fgb", *_XML_SUFFIXES})  # whose number of rows is believed
_HEAD_BYTES = 4096
_EXPANSION_MAX = 100  # XML of a map is compressed to a tenth or so


def check_file(path: Path, suffix: str, name: str) -> None:
    """Refuse what only has the suffix, what leads GDAL elsewhere, and a shapefile without a part.

    GDAL would try every format that it knows.
    """
    if path.is_dir():
        _check_geodatabase(path, name)
        return
    magic, kind = _MAGIC.get(suffix, (b"", ""))
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.startswith(magic):
        raise InvalidInput(f"{name}: not a {kind}")
    if any(mark in head for mark in _REDIRECTIONS):
        raise InvalidInput(f"{name}: it only refers to other files or addresses; use those instead")
    if suffix == ".shp":
        _check_shapefile(path, name)
    if suffix == ".fgb":
        _check_flatgeobuf(path, name)
    if suffix in _XML_SUFFIXES:
        with path.open("rb") as file:
            _check_xml(file, suffix, name)
    if suffix in (ZIP, ".kmz"):
        _check_xml_inside(path, name)


def _check_shapefile(path: Path, name: str) -> None:
    """Refuse a shapefile without a part, or with one that is cut: GDAL reads on in silence."""
    _refuse_cut(path, lambda head: 2 * int.from_bytes(head[24:28], "big"), name)
    for suffix, content in ((".shx", "the row index"), (".dbf", "the attributes")):
        if not find_side_file(path, suffix).exists():
            raise InvalidInput(
                f"{name}: {path.with_suffix(suffix).name}, which holds {content}, is missing; "
                "a shapefile needs its .shp, .shx and .dbf together"
            )
    index, attributes = find_side_file(path, ".shx"), find_side_file(path, ".dbf")
    _refuse_cut(index, lambda head: 2 * int.from_bytes(head[24:28], "big"), name)
    _refuse_cut(attributes, _find_dbf_length, name)


def _check_flatgeobuf(path: Path, name: str) -> None:
    """Refuse a file with more features than its header counts: GDAL would leave them out."""
    count, left = count_bytes_left(path)
    if left:
        raise InvalidInput(
            f"{name}: its header counts {count:,} features, but {left:,} bytes follow the last one"
        )


def _check_geodatabase(folder: Path, name: str) -> None:
    """Refuse a geodatabase with places of rows that are cut off: GDAL would find no row."""
    for places in sorted(folder.glob("*.gdbtablx")):
        _refuse_cut(places, _find_places_length, name)


def _find_places_length(head: bytes) -> int:
    version, blocks, _, place_bytes = struct.unpack_from("<4I", head.ljust(16, b"\0"))
    return 16 + blocks * 1024 * place_bytes if version == 3 else 16


def _find_dbf_length(head: bytes) -> int:
    rows, head_bytes, row_bytes = struct.unpack_from("<IHH", head.ljust(12, b"\0"), 4)
    return int(head_bytes + rows * row_bytes)


def _refuse_cut(path: Path, find_length: Callable[[bytes], int], name: str) -> None:
    with path.open("rb") as file:
        stated = find_length(file.read(100))
    length = path.stat().st_size
    if length < max(stated, 12):
        raise InvalidInput(f"{name}: {path.name} is cut off after {length:,} of {stated:,} bytes")


def _check_xml(file: IO[bytes], suffix: str, name: str) -> None:
    """Refuse XML of which GDAL would read a part only."""
    below_root = check_xml(file, name)
    if suffix == ".kml":
        del below_root["NetworkLinkControl"]
        if below_root.total() > 1:
            raise InvalidInput(
                f"{name}: its root has {below_root.total()} elements, {listed(below_root)}, but "
                "KML allows one and GDAL reads only one; put them inside a single Document"
            )


def _check_xml_inside(path: Path, name: str) -> None:
    """Refuse an archive with XML of which GDAL would read a part only."""
    with open_archive(path, name) as archive:
        for entry in archive.infolist():
            member = entry.filename
            suffix = Path(member).suffix.lower()
            if suffix in _XML_SUFFIXES and not member.startswith(FOR_MACOS):
                _check_size(entry, f"{name}: {member}")
                with archive.open(entry) as file:
                    _check_xml(file, suffix, f"{name}: {member}")


def _check_size(entry: ZipInfo, place: str) -> None:
    """Refuse what GDAL would take into memory as a whole though few bytes of it are in a file."""
    if entry.file_size > max(ARCHIVE_BYTES_MAX, _EXPANSION_MAX * entry.compress_size):
        raise InvalidInput(
            f"{place}: {entry.compress_size:,} bytes would take {entry.file_size:,}; the limit for "
            f"what is compressed so much is {ARCHIVE_BYTES_MAX:,} (ARCHIVE_BYTES_MAX)"
        )


def count_rows(path: Path, suffix: str, announced: int | None) -> int:
    """Count the rows that a file has at least, as far as it tells; GDAL announces a number or not.

    Some formats state a number that whoever changed the file may have left as it was.
    """
    if suffix in _COUNTED_SUFFIXES:
        return announced or 0
    attributes = find_side_file(path, ".mid")
    if suffix != ".mif" or not attributes.exists():
        return 0
    with attributes.open("rb") as lines:
        return sum(1 for line in lines if line.strip())
