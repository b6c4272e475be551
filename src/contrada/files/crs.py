"""Coordinate systems as sources state them: one spelling, and when two are the same.

A coordinate system is a string that pyproj understands. Longitude comes first whatever the
authority says, as in GeoParquet and GeoPandas, so axis order never tells two systems apart.
"""

import json
from functools import lru_cache
from typing import Any

from pyproj import CRS
from pyproj.exceptions import CRSError

from contrada.errors import InvalidInput

LONGITUDE_LATITUDE = "OGC:CRS84"


def spell_crs(stated: object, name: str) -> str | None:
    """The coordinate system that the source `name` states, as `EPSG:4326` where it has a code.

    `stated` is a string, a PROJJSON mapping, or None where the source does not know.
    """
    if stated is None or stated == "":
        return None
    identifier = stated.get("id") if isinstance(stated, dict) else None
    if isinstance(identifier, dict) and {"authority", "code"} <= identifier.keys():
        text = f"{identifier['authority']}:{identifier['code']}"
    else:
        text = stated if isinstance(stated, str) else json.dumps(stated)
    try:
        _parse(text)
    except CRSError as fault:
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        raise InvalidInput(f'{name}: unknown coordinate system "{shown}": {fault}') from fault
    return text


@lru_cache(maxsize=256)
def is_same_crs(a: str, b: str) -> bool:
    """Whether coordinates in `a` are coordinates in `b`; `EPSG:4326` and `OGC:CRS84` are one."""
    return a == b or bool(_parse(a).equals(_parse(b), ignore_axis_order=True))


def to_projjson(crs: str) -> dict[str, Any]:
    """The PROJJSON mapping of a coordinate system, as GeoParquet stores it."""
    return dict(_parse(crs).to_json_dict())


@lru_cache(maxsize=64)
def _parse(crs: str) -> CRS:
    return CRS.from_user_input(crs)
