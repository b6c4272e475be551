"""Which columns of an Arrow schema hold geometries, how, and in which coordinate system.

Three conventions state it, and the first that speaks of a column wins: the `geo` metadata of
GeoParquet, the extension names of GeoArrow, and the bare name `geometry`.
"""

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.files.arrow_types import (
    check_member_names,
    is_binary,
    is_text,
    plain_type,
    storage_type,
)
from contrada.files.crs import CRS84, is_same_crs, spell_crs
from contrada.files.geoarrow import NATIVE_TYPES, is_native
from contrada.showing import brief_text

Encoding: TypeAlias = Literal["wkb", "wkt"] | str  # or one of NATIVE_TYPES
EXTENSION_NAME = b"ARROW:extension:name"
EXTENSION_METADATA = b"ARROW:extension:metadata"
_POINTS = frozenset({"Point", "Point Z", "MultiPoint", "MultiPoint Z"})


@dataclass(frozen=True, slots=True)
class GeometryField:
    """How one column holds geometries; `crs` is None where it is not stated.

    `edges` says how vertices are joined, where that is not by straight lines and matters.
    """

    name: str
    encoding: Encoding
    crs: str | None
    edges: str | None = None


def find_geometry_columns(
    schema: pa.Schema, kept: Sequence[str], name: str, primary: str | None = None
) -> list[GeometryField]:
    """Find those of the columns `kept` that hold geometries, the primary one first."""
    geo = geoparquet_metadata(schema, name)
    stated = geo.get("columns", {})
    found = []
    for field in map(schema.field, kept):
        column = _from_geoparquet(field, stated, name) or _from_extension(field, name)
        if column is not None:
            found.append(column)
    if not found and "geometry" in kept:
        found = _from_name(schema.field("geometry"))
    first = primary or geo.get("primary_column") or "geometry"
    found.sort(key=lambda column: column.name != first)
    _refuse_two_systems(found, name)
    return found


def geoparquet_metadata(schema: pa.Schema, name: str) -> dict[str, Any]:
    """Return the `geo` metadata of a schema; empty for plain Parquet."""
    text = (schema.metadata or {}).get(b"geo")
    if text is None:
        return {}
    try:
        geo = json.loads(text)
        columns = geo["columns"]
        if all(isinstance(column, dict) for column in columns.values()):
            return dict(geo)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise InvalidInput(f'{name}: its "geo" metadata is not valid GeoParquet: {text[:80]!r}')


def _from_geoparquet(field: pa.Field, stated: dict[str, Any], name: str) -> GeometryField | None:
    if field.name not in stated:
        return None
    column = stated[field.name]
    encoding = _encoding(field, str(column.get("encoding", "WKB")), name)
    crs = spell_crs(column.get("crs", CRS84), name)
    kinds = column.get("geometry_types")
    are_points = isinstance(kinds, list) and bool(kinds) and _POINTS.issuperset(map(str, kinds))
    edges = _spell_edges(column.get("edges"), are_points)
    return GeometryField(field.name, encoding, crs, edges)


def _from_extension(field: pa.Field, name: str) -> GeometryField | None:
    label, metadata = _extension(field)
    family, _, encoding = label.partition(".")
    if family not in ("geoarrow", "ogc") or not encoding:
        return None
    try:
        stated = json.loads(metadata or b"{}")
        stated = {} if stated is None else stated
        crs, edges = stated.get("crs"), stated.get("edges")
    except (ValueError, AttributeError, RecursionError) as fault:
        raise InvalidInput(
            f'{name}: column "{field.name}" has extension metadata that is not a JSON object: '
            f"{metadata[:80]!r}"
        ) from fault
    encoding = _encoding(field, encoding, name)
    are_points = encoding in ("point", "multipoint")
    return GeometryField(
        field.name, encoding, spell_crs(crs, name), _spell_edges(edges, are_points)
    )


def _spell_edges(stated: object, are_points: bool) -> str | None:
    is_straight = stated in (None, "planar") or are_points
    return None if is_straight else brief_text(stated, 40)


def warn_of_edges(columns: Iterable[GeometryField], name: str) -> None:
    """Warn of geometries whose vertices are joined along a globe: here they are in the plane."""
    for column in columns:
        if column.edges is not None:
            warnings.warn(
                f'{name}: column "{column.name}" has "{column.edges}" edges, which follow a '
                "globe; they are treated as straight lines between vertices",
                stacklevel=3,
            )


def _extension(field: pa.Field) -> tuple[str, bytes]:
    """Return the name and metadata of a field's extension type, registered with pyarrow or not."""
    if isinstance(field.type, pa.ExtensionType):
        return field.type.extension_name, field.type.__arrow_ext_serialize__()
    metadata = field.metadata or {}
    return metadata.get(EXTENSION_NAME, b"").decode(errors="replace"), metadata.get(
        EXTENSION_METADATA, b""
    )


def _from_name(field: pa.Field) -> list[GeometryField]:
    kind = _held_type(field)
    if is_binary(kind):
        return [GeometryField(field.name, "wkb", None)]
    return [GeometryField(field.name, "wkt", None)] if is_text(kind) else []


def _encoding(field: pa.Field, stated: str, name: str) -> Encoding:
    """Return the stated encoding, corrected to WKT where the column holds text after all."""
    kind = _held_type(field)
    if is_text(kind):
        return "wkt"
    encoding = stated.lower()
    if encoding not in ("wkb", "wkt", *NATIVE_TYPES):
        raise InvalidInput(
            f'{name}: column "{field.name}" has geometries in the encoding "{stated}"; '
            f"known encodings: WKB, WKT, {', '.join(NATIVE_TYPES)}"
        )
    is_known_native = encoding in NATIVE_TYPES
    fits = is_native(storage_type(field.type), encoding) if is_known_native else is_binary(kind)
    if encoding == "wkt" or not fits:
        raise InvalidInput(
            f'{name}: column "{field.name}" is declared to hold geometries in the encoding '
            f'"{stated}", but its type is {field.type}'
        )
    check_member_names(field, name)  # which say what the coordinates are
    return encoding


def _held_type(field: pa.Field) -> pa.DataType:
    """Return the plain type of the values, those of a dictionary too."""
    kind = plain_type(field.type)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _refuse_two_systems(columns: list[GeometryField], name: str) -> None:
    """Refuse two coordinate systems: geometries of one source meet in one plane."""
    stated = [(column.name, column.crs) for column in columns if column.crs is not None]
    for column, crs in stated[1:]:
        first, first_crs = stated[0]
        if not is_same_crs(crs, first_crs):
            raise InvalidInput(
                f'{name}: column "{first}" is in {first_crs[:80]} but "{column}" is in {crs[:80]}; '
                "leave one out or transform it"
            )
