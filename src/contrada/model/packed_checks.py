"""Columns of packed geometries, checked: nothing in them leads beyond an array, or GEOS to fail.

They come from a file, which may be damaged or a stranger's. An error names the place and the
column. Whether a geometry is valid is not looked at.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.arrays import Floats, Geometries, Mask, Positions
from contrada.errors import InvalidInput
from contrada.model.encodings import read_wkbs
from contrada.model.geometry import tidy
from contrada.model.packed_lists import split_bytes
from contrada.showing import brief_text

COLLECTION = 7
_MANY = np.iinfo(np.int64).max
_NONE, _ONE, _SOME = (0, 0), (1, 1), (1, _MANY)
_STRUCTURES = {  # the fewest and the most parts of a geometry, rings of a part, vertices of a ring
    0: (_ONE, _ONE, _ONE),
    1: (_ONE, _ONE, (2, _MANY)),
    3: (_ONE, _SOME, (4, _MANY)),
    4: (_SOME, _ONE, _ONE),
    5: (_SOME, _ONE, (2, _MANY)),
    6: (_SOME, _SOME, (4, _MANY)),
    COLLECTION: (_NONE, _NONE, _NONE),
}
PACKED_KINDS = tuple(_STRUCTURES)
IS_AREA = np.isin(np.arange(256), (3, 6))  # by kind
_IS_KNOWN = np.isin(np.arange(256), PACKED_KINDS)
_COUNTS = {  # by column: the fewest and the most, by kind
    name: np.array([_STRUCTURES.get(kind, (_NONE,) * 3)[level] for kind in range(8)]).T
    for level, name in enumerate(("parts", "rings", "vertices"))
}
_TYPES: Mapping[str, type[np.generic]] = {
    "kinds": np.uint8,
    "parts": np.int64,
    "rings": np.int64,
    "vertices": np.int64,
    "coordinates": np.float64,
    "collections": np.int64,
    "wkb_starts": np.int64,
    "wkb": np.uint8,
}
_READING_ERRORS = (shapely.errors.ShapelyError, ValueError, NotImplementedError)


def check_columns(columns: Mapping[str, NDArray[Any]], place: str) -> None:
    """Refuse columns that are not those of packed geometries."""
    try:
        for name, kind in _TYPES.items():
            _check_array(name, columns.get(name), kind)
        _check_levels(columns)
        _check_collections(columns)
    except InvalidInput as error:
        raise error.within(place) from error.__cause__


def _check_array(name: str, array: NDArray[Any] | None, kind: type[np.generic]) -> None:
    if not isinstance(array, np.ndarray):
        raise _wrong(name, "is missing")
    if array.dtype != kind:
        raise _wrong(name, f"has the type {array.dtype}, not {kind.__name__}")
    members = (2,) if name == "coordinates" else ()
    if not array.ndim or array.shape[1:] != members:
        raise _wrong(name, f"has the shape {array.shape}, not {'(n, 2)' if members else '(n,)'}")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise _wrong(name, "is not contiguous and aligned in memory")


def _check_levels(columns: Mapping[str, NDArray[Any]]) -> None:
    """Check the parts of geometries, the rings of parts, and the vertices of rings."""
    kinds, coordinates = columns["kinds"], columns["coordinates"]
    parts, rings, vertices = columns["parts"], columns["rings"], columns["vertices"]
    _check_kinds(kinds)
    _check_starts("parts", parts, len(kinds) + 1, len(rings) - 1)
    _check_starts("rings", rings, len(rings), len(vertices) - 1)
    _check_starts("vertices", vertices, len(vertices), len(coordinates))
    _check_counts("parts", parts, kinds)
    kinds = np.repeat(kinds, np.diff(parts))
    _check_counts("rings", rings, kinds)
    kinds = np.repeat(kinds, np.diff(rings))
    _check_counts("vertices", vertices, kinds)
    _check_coordinates(coordinates)
    _check_closure(coordinates, vertices, IS_AREA[kinds])


def _find(wrong: Mask) -> int | None:
    """Find the first that is wrong."""
    return int(wrong.argmax()) if wrong.any() else None


def _check_kinds(kinds: NDArray[np.uint8]) -> None:
    at = _find(~_IS_KNOWN[kinds])
    if at is not None:
        raise _wrong("kinds", f"has {kinds[at]} at {at}, which is not a kind of geometry")


def _check_starts(name: str, starts: Positions, count: int, end: int) -> None:
    """Check where lists begin and the last ends: so many starts, up to the end of the members."""
    if len(starts) != count or not count:
        raise _wrong(name, f"has {len(starts):,} starts, not {max(count, 1):,}")
    if starts[0] != 0:
        raise _wrong(name, f"begins with {starts[0]}, not with 0")
    at = _find(starts[1:] < starts[:-1])  # a difference could overflow
    if at is not None:
        raise _wrong(name, f"decreases at {at}, from {starts[at]} to {starts[at + 1]}")
    if starts[-1] != end:
        raise _wrong(name, f"ends with {starts[-1]}, not with {end}")


def _check_counts(name: str, starts: Positions, kinds: NDArray[np.uint8]) -> None:
    """Check how many members lists have that belong to geometries of these kinds."""
    counts, (fewest, most) = np.diff(starts), _COUNTS[name]
    at = _find((counts < fewest[kinds]) | (counts > most[kinds]))
    if at is not None:
        kind = shapely.GeometryType(int(kinds[at])).name
        raise _wrong(name, f"has {counts[at]} at {at}, which a {kind} cannot have")


def _check_coordinates(coordinates: Floats) -> None:
    at = _find(~np.isfinite(coordinates))
    if at is not None:
        raise _wrong("coordinates", f"has {tuple(coordinates[at // 2].tolist())} at {at // 2}")


def _check_closure(coordinates: Floats, vertices: Positions, are_rings: Mask) -> None:
    """Refuse rings of areas that do not end where they begin."""
    pairs = coordinates.view(np.complex128).reshape(-1)  # x and y at once
    at = _find(are_rings & (pairs.take(vertices[:-1]) != pairs.take(vertices[1:] - 1)))
    if at is not None:
        raise _wrong("coordinates", f"has a ring that is not closed, from {vertices[at]} on")


def _check_collections(columns: Mapping[str, NDArray[Any]]) -> None:
    """Check which geometries are collections, and that each is written as packing writes it."""
    collections, starts, wkb = columns["collections"], columns["wkb_starts"], columns["wkb"]
    expected = np.flatnonzero(columns["kinds"] == COLLECTION)
    if not np.array_equal(collections, expected):
        raise _wrong("collections", f"does not list the {len(expected):,} collections of 'kinds'")
    _check_starts("wkb_starts", starts, len(collections) + 1, len(wkb))
    wkbs = split_bytes(wkb, starts)
    try:
        with np.errstate(invalid="ignore"):
            is_tidy = are_tidy(wkbs)
    except _READING_ERRORS as error:
        raise _wrong("wkb", f"cannot be read: {brief_text(error, 200)}") from error
    at = _find(~is_tidy)
    if at is not None:
        raise _wrong("wkb", f"has something else than a tidy collection at {starts[at]}")


def are_tidy(wkbs: NDArray[np.object_]) -> Mask:
    """Which WKBs are collections of two dimensions, finite and without empty or nested members."""
    shapes = read_wkbs(wkbs)
    is_tidy: Mask = (shapely.get_type_id(shapes) == COLLECTION) & ~shapely.is_empty(shapes)
    is_tidy &= write_wkbs(shapes) == wkbs
    members, owners = shapely.get_parts(shapes, return_index=True)
    is_member = (shapely.get_type_id(members) != COLLECTION) & ~shapely.is_empty(members)
    is_member &= write_wkbs(tidy(members)) == write_wkbs(members)
    is_tidy[owners[~is_member]] = False
    coordinates, owners = shapely.get_coordinates(shapes, return_index=True)
    is_tidy[owners[~np.isfinite(coordinates).all(axis=1)]] = False
    return is_tidy


def write_wkbs(shapes: Geometries) -> NDArray[np.object_]:
    """Write geometries as WKB, least byte first and without an SRID."""
    return np.asarray(shapely.to_wkb(shapes, byte_order=1, include_srid=False), object)


def _wrong(name: str, what: str) -> InvalidInput:
    return InvalidInput(f"column {name!r} {what}")
