"""GeoJSON: a FeatureCollection, a single Feature or a bare geometry, of any length."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from contrada.errors import InvalidInput
from contrada.files.crs import CRS84, spell_crs
from contrada.files.geojson_wkb import is_geometry
from contrada.files.json_rows import Record, Survey, read_json_rows
from contrada.files.json_window import JsonWindow
from contrada.files.rows import Rows
from contrada.showing import brief_text

SUFFIXES = (".geojson", ".json")


def read_geojson(path: Path, name: str, *, batch_rows: int, columns: Sequence[str] | None) -> Rows:
    """Read a GeoJSON file, in longitude and latitude unless it has a `crs` of the old style."""
    members: dict[str, Any] = {}

    def open_records() -> Iterator[Record]:
        with path.open("rb") as file:
            yield from _read_features(JsonWindow(file, name), members, name)

    def open_lines() -> Iterator[int]:
        with path.open("rb") as file:
            window = JsonWindow(file, name)
            for _ in _read_features(window, {}, name):
                yield window.marked_line

    def find_crs(_: Survey) -> str | None:
        return _find_crs(members, name)

    return read_json_rows(
        name, open_records, open_lines, find_crs, batch_rows=batch_rows, columns=columns
    )


def _read_features(window: JsonWindow, members: dict[str, Any], name: str) -> Iterator[Record]:
    """Read the Features, and into `members` what stands beside them, in whatever order."""
    is_collection = False
    length_all = 0
    window.mark()
    window.take("{")
    while window.peek() != "}":
        if window.peek() not in ('"', ""):
            raise window.fault("expected the name of a member")
        key, length = window.value()
        length_all += length
        window.take(":")
        if key == "features" and window.peek() == "[":
            is_collection = True
            yield from _read_list(window)
        else:
            members[key], length = window.value()
            length_all += length
            window.refuse_long(length_all)
        if window.peek() != ",":
            break
        window.take(",")
    window.take("}")
    if window.peek():
        raise window.fault("text after the end of the object")
    if is_collection and members.get("type") == "FeatureCollection":
        return
    if is_geometry(members) and not is_collection:
        yield {"type": "Feature", "geometry": members}, length_all
    elif members.get("type") == "Feature" and not is_collection:
        yield members, length_all
    else:
        shown = brief_text(members.get("type"))
        raise InvalidInput(
            f'{name}: expected a FeatureCollection, a Feature or a geometry, not type "{shown}"'
        )


def _read_list(window: JsonWindow) -> Iterator[Record]:
    window.take("[")
    while window.peek() != "]":
        window.mark()
        yield window.value()
        if window.peek() != ",":
            break
        window.take(",")
        if window.peek() == "]":
            raise window.fault("a Feature is missing after the comma")
    window.take("]")


def _find_crs(members: dict[str, Any], name: str) -> str | None:
    """Read the `crs` member that GeoJSON had before RFC 7946; null there means unknown."""
    if "crs" not in members:
        return CRS84
    crs = members["crs"]
    if crs is None:
        return None
    try:
        if crs["type"] == "name":
            return spell_crs(crs["properties"]["name"], name)
    except (KeyError, TypeError):
        pass
    raise InvalidInput(f"{name}: its crs has no name: {brief_text(crs, 80)}")
