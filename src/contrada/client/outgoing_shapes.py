"""Geometries on their way out, as GeoJSON, whatever they came as."""

import json
from collections.abc import Mapping
from typing import Any

import shapely
from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput
from contrada.model.event import as_python
from contrada.model.geometry import Fault, read_geometry, read_meant
from contrada.showing import brief

INTERFACE = "__geo_interface__"


def spell_geometry(value: Any, place: str = "") -> Any:
    """Write a geometry as a GeoJSON mapping: of Shapely, WKB, WKT or what is one already."""
    try:
        return _spell(value)
    except InvalidInput as error:
        raise (error.within(place) if place else error) from None


def _spell(value: Any) -> Any:
    if value is None or isinstance(value, Mapping):
        return value
    if isinstance(value, BaseGeometry):
        return map_shape(value)
    if hasattr(value, INTERFACE):
        return value.__geo_interface__
    read = read_meant(as_python(value))
    if isinstance(read, Fault):
        raise read.as_error()
    if read is None and not isinstance(value, str):
        raise InvalidInput(f"{brief(value)} is not a geometry")
    return None if read is None else map_shape(read)


def map_shape(shape: BaseGeometry) -> Any:
    """Write a geometry of Shapely as a GeoJSON mapping."""
    try:
        text = shapely.to_geojson(shape)
    except (NotImplementedError, shapely.errors.ShapelyError) as fault:
        raise InvalidInput(f"the geometry cannot be written as GeoJSON: {fault}") from None
    return None if text is None else json.loads(text)


def map_wkb(raw: bytes) -> Any:
    """Write bytes, which no event has but as a geometry, as a GeoJSON mapping."""
    read = read_geometry(raw)
    if isinstance(read, Fault):
        raise read.as_error()
    return None if read is None else map_shape(read)
