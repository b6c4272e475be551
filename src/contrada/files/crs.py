"""Coordinate systems as sources state them: one spelling, and when two are the same.

A coordinate system is a string that pyproj understands. Longitude comes first whatever the
authority says, as in GeoParquet and GeoPandas, so axis order never tells two systems apart.
"""

import contextlib
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from contrada.errors import InvalidInput
from contrada.showing import brief_text

if TYPE_CHECKING:
    from pyproj import CRS

CRS84 = "OGC:CRS84"


def spell_crs(stated: object, name: str) -> str | None:
    """Spell the system that the source `name` states, as `EPSG:4326` where it has a code.

    `stated` is a string, an EPSG code, a PROJJSON mapping, or None where the source does not know.
    """
    if stated is None or (isinstance(stated, str) and not stated):
        return None
    if isinstance(stated, int) and not isinstance(stated, bool) and 0 < stated < 10**9:
        stated = f"EPSG:{stated}"
    if not isinstance(stated, str | dict):
        what = f'unknown coordinate system "{brief_text(stated, 80)}"'
        raise InvalidInput(f"{name}: {what}: expected text or PROJJSON")
    code = _find_code(stated)
    if code is not None:
        with contextlib.suppress(InvalidInput):
            _parse(code)
            return code
    try:
        text = stated if isinstance(stated, str) else json.dumps(stated)
        _parse(text)
    except InvalidInput as fault:
        raise InvalidInput(f"{name}: {fault}") from fault
    except (RecursionError, TypeError, ValueError) as fault:
        raise InvalidInput(f"{name}: its coordinate system cannot be read: {fault}") from fault
    return text


def spell_given_crs(given: object, name: str) -> str | None:
    """Spell the system that a caller names; an empty text, as some files have it, names none."""
    if isinstance(given, str) and not given:
        raise InvalidInput(
            f"{name}: the coordinate system is an empty string; use None if it is unknown"
        )
    return spell_crs(given, name)


@lru_cache(maxsize=256)
def is_same_crs(a: str, b: str) -> bool:
    """Whether coordinates in `a` are also in `b`; `EPSG:4326` and `OGC:CRS84` are the same."""
    return a == b or bool(_parse(a).equals(_parse(b), ignore_axis_order=True))


def is_longitude_latitude(crs: str) -> bool:
    """Whether coordinates are angles on a globe, and not lengths on a map."""
    return bool(_parse(crs).is_geographic)


def to_projjson(crs: str) -> dict[str, Any]:
    """Return the PROJJSON mapping of a coordinate system, as GeoParquet stores it."""
    return dict(_parse(crs).to_json_dict())


@lru_cache(maxsize=64)
def _parse(crs: str) -> "CRS":
    from pyproj import CRS  # slow to load
    from pyproj.exceptions import CRSError

    try:
        return CRS.from_user_input(crs)
    except (CRSError, ValueError, TypeError, KeyError, RecursionError) as fault:
        shown = f'unknown coordinate system "{brief_text(crs, 80)}"'
        raise InvalidInput(f"{shown}: {brief_text(fault, 400)}") from fault


def _find_code(stated: object) -> str | None:
    """Find the short spelling that a long one holds, if any."""
    if isinstance(stated, str):
        urn = re.fullmatch(r"urn:ogc:def:crs:(\w+):[^:]*:(\w+)", stated)
        return f"{urn[1]}:{urn[2]}" if urn else None
    identifier = stated.get("id") if isinstance(stated, dict) else None
    if isinstance(identifier, dict):
        return f"{identifier.get('authority')}:{identifier.get('code')}"
    return None
