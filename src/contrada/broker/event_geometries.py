"""The geometries of Features: judged, whoever may want them, and written as WKB.

Plain points, which most events are, are written without a look at each.
"""

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from contrada.arrays import Geometries
from contrada.broker.geojson_words import reword
from contrada.limits import EVENT_VERTICES_MAX
from contrada.model.geometry import UNDECODABLE, Fault, as_array, find_faults, read_geometry, tidy
from contrada.showing import brief

_POINT_HEADER = np.frombuffer(b"\x01\x01\x00\x00\x00", np.uint8)
_POINT_BYTES = 21
_WITHOUT_MEMBERS = frozenset(
    "Point LineString Polygon MultiPoint MultiLineString MultiPolygon".split()
)
_dump = json.JSONEncoder(separators=(",", ":")).encode
_EMPTY = shapely.GeometryCollection()
_NUMBERS = frozenset({int, float})


def write_geometries_of(values: Sequence[Any]) -> tuple[pa.Array, dict[int, Fault]]:
    """Write the geometries of Features as WKB; what is wrong with one is told by its row.

    An empty one stays empty, since it is not null.
    """
    written = _write_points(values)
    if written is not None:
        return written, {}
    shapes, faults = _read_all(values)
    faults |= find_faults(shapes) | _find_long(shapes)
    shapes[shapely.is_empty(shapes)] = _EMPTY
    wkb = np.asarray(shapely.to_wkb(shapes, output_dimension=2, byte_order=1), object)
    return pa.array(wkb, pa.binary()), faults


def _read_all(values: Sequence[Any]) -> tuple[Geometries, dict[int, Fault]]:
    """Read geometries, those of GeoJSON that have nothing unusual all at once."""
    texts = np.array([_write_usual(value) for value in values], object)
    with np.errstate(all="ignore"):  # what is not finite is found and named when it is judged
        shapes = tidy(np.asarray(shapely.from_geojson(texts, on_invalid="ignore"), object))
    faults = {}
    for row in np.flatnonzero(shapely.is_missing(shapes)).tolist():
        value = values[row]
        read = read_geometry(value)
        if isinstance(read, Fault):
            faults[row] = _with_value(read, value)
        elif read is not None:
            shapes[row] = read
        elif value is not None:
            what = f"it is not a geometry of GeoJSON: {brief(value)}"
            faults[row] = Fault(UNDECODABLE, what)
    return shapes, faults


def _write_usual(value: Any) -> str | None:
    """Write a geometry as JSON again; None if somebody has to look at it."""
    if type(value) is not dict or len(value) != 2 or "coordinates" not in value:
        return None
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _WITHOUT_MEMBERS:
        return None
    try:
        return _dump(value)
    except RecursionError:
        return None


def _with_value(fault: Fault, value: Any) -> Fault:
    if fault.code != UNDECODABLE:
        return fault
    words = reword(fault.message, value)
    if words is not None:
        return Fault(fault.code, words)
    return Fault(fault.code, f"{fault.message} (value {brief(value)})")


def _find_long(shapes: Geometries) -> dict[int, Fault]:
    counts = shapely.get_num_coordinates(shapes)
    return {
        row: Fault(
            "too_long",
            f"it has {counts[row]:,} vertices, more than {EVENT_VERTICES_MAX:,} "
            "(EVENT_VERTICES_MAX)",
        )
        for row in np.flatnonzero(counts > EVENT_VERTICES_MAX).tolist()
    }


def _write_points(values: Sequence[Any]) -> pa.Array | None:
    """Write points of two finite numbers each; None if one is anything else."""
    try:
        pairs = [value["coordinates"] for value in values if value["type"] == "Point"]
    except (TypeError, KeyError):
        return None
    if len(pairs) < len(values) or not pairs or set(map(type, pairs)) != {list}:
        return None
    if set(map(len, pairs)) != {2} or not _NUMBERS.issuperset(map(type, chain(*pairs))):
        return None
    try:
        xy = np.fromiter(chain(*pairs), np.float64, 2 * len(pairs))
    except OverflowError:
        return None
    if not np.isfinite(xy).all():
        return None
    wkb = np.empty((len(pairs), _POINT_BYTES), np.uint8)
    wkb[:, : len(_POINT_HEADER)] = _POINT_HEADER
    wkb[:, len(_POINT_HEADER) :] = xy.astype("<f8").view(np.uint8).reshape(-1, 16)
    offsets = np.arange(len(pairs) + 1, dtype=np.int32) * np.int32(_POINT_BYTES)
    return pa.Array.from_buffers(
        pa.binary(), len(pairs), [None, pa.py_buffer(offsets), pa.py_buffer(wkb)]
    )


def read_text_geometry(text: str) -> dict[str, Any] | Fault:
    """Read the text of a geometry, WKT or WKB in hexadecimal digits, as GeoJSON."""
    read = read_geometry(text)
    if isinstance(read, Fault):
        return _with_value(read, text)
    if read is None:
        what = f"it is neither GeoJSON nor WKT nor hex WKB: {brief(text)}"
        return Fault(UNDECODABLE, what)
    if not np.isfinite(shapely.get_coordinates(as_array([read]))).all():
        return Fault("non_finite", f"it has a coordinate that is not finite: {brief(text)}")
    mapping: dict[str, Any] = shapely.geometry.mapping(read)
    return mapping
