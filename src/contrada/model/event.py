"""An event: attributes by name, some of them geometries."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import shapely
from shapely import Point
from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput, Remedy
from contrada.flags import check_flags
from contrada.model.envelopes import (
    CONTENT_TYPE,
    check_carried,
    check_version,
    is_envelope,
    read_data,
)
from contrada.model.geometry import (
    UNDECODABLE,
    Fault,
    as_array,
    copied,
    find_faults,
    is_plain_point,
    read_geometry,
    read_meant,
)
from contrada.model.mending import mend
from contrada.showing import brief

GEOMETRY = "geometry"


class Names:
    """Names of attributes, and the paths on which those with dots may lie."""

    __slots__ = ("all", "beginnings")

    def __init__(self, names: Iterable[str]) -> None:
        """Collect names."""
        self.all = frozenset(names)
        self.beginnings = frozenset(path for name in self.all for path in paths_of(name)[:-1])


class Event:
    """Attributes of one event. Geometries are read, tidied and judged once, when first asked for.

    A value that is not a geometry is unknown (None) where a geometry is wanted; one that is meant
    as a geometry but cannot be used is refused, as is any other text in `geometry`.
    """

    __slots__ = ("_attributes", "_geometries", "_is_settled", "_repair", "id", "place")

    def __init__(
        self,
        attributes: Mapping[str, Any],
        *,
        id: str | int | None = None,
        geometries: Mapping[str, BaseGeometry | None] | None = None,
        repair: bool = False,
        place: str = "the event",
        is_settled: bool = False,
    ) -> None:
        """Wrap attributes; `geometries` are those already read, tidied and judged.

        If that is settled, any other attribute is unknown where a geometry is wanted.
        """
        self._attributes = attributes
        self._is_settled = is_settled
        self._geometries: dict[str, BaseGeometry | None] = dict(geometries or {})
        self._repair = repair
        self.id = id
        self.place = place

    @property
    def attributes(self) -> Mapping[str, Any]:
        """All attributes as they came."""
        return self._attributes

    def value(self, name: str) -> Any:
        """Return the value of an attribute; None where it is absent or null."""
        return as_python(find_value(self._attributes, name))

    def names(self) -> list[str]:
        """List the names of all attributes."""
        return [name for name in self._attributes if isinstance(name, str)]

    def find_names(self, names: "Names") -> Collection[str]:
        """Return those of some names that the event has, each once, and perhaps others.

        The cost follows the attributes of the event or the names, whichever are fewer.
        """
        if len(names.all) <= len(self._attributes):
            return names.all
        found: dict[str, None] = {}
        pending: list[tuple[str, Mapping[Any, Any]]] = [("", self._attributes)]
        while pending:
            path, attributes = pending.pop()
            for key in attributes:
                if not isinstance(key, str):
                    continue
                name = path + key
                if name in names.all:
                    found[name] = None
                inner = attributes[key] if name in names.beginnings else None
                if isinstance(inner, Mapping):
                    pending.append((f"{name}.", inner))
        return found.keys()

    def geometry(self, name: str) -> BaseGeometry | None:
        """Return an attribute as a geometry; None where it is absent, empty or not a geometry."""
        if name not in self._geometries:
            self._geometries[name] = None if self._is_settled else self._read(name)
        return self._geometries[name]

    def prepared(self, name: str) -> BaseGeometry | None:
        """Return a geometry for whoever asks GEOS about it: answers come faster, and are right more
        often. A point has nothing to prepare, and may be the caller's own."""
        geometry = self.geometry(name)
        if geometry is not None and not isinstance(geometry, Point):
            shapely.prepare(geometry)
        return geometry

    def settled(self, names: Iterable[str]) -> "Event":
        """Return the event with some geometries read; a bad one is refused, others stay unread."""
        return Event(
            self._attributes,
            id=self.id,
            geometries={name: self.geometry(name) for name in names},
            place=self.place,
            is_settled=True,
        )

    def _read(self, name: str) -> BaseGeometry | None:
        value = find_value(self._attributes, name)
        if is_plain_point(value):
            return value  # most events are points: nothing about them needs tidying
        geometry = read_meant(value) if name == GEOMETRY else read_geometry(value)
        if isinstance(geometry, Fault):
            is_unread = geometry.code == UNDECODABLE and isinstance(value, str | Mapping)
            shown = f" (value {brief(value)})" if is_unread else ""
            raise self._refusal(name, replace(geometry, message=f"{geometry.message}{shown}"))
        if geometry is None or geometry.is_empty:
            return None
        fault = find_faults(as_array([geometry])).get(0)
        if fault is None:
            return copied(geometry)
        mended = mend(geometry) if self._repair and fault.code == "invalid" else fault
        if isinstance(mended, Fault):
            can_mend = fault.code == "invalid" and not self._repair
            raise self._refusal(name, mended, [Remedy.REPAIR] if can_mend else ())
        return None if mended.is_empty else copied(mended)

    def _refusal(self, name: str, fault: Fault, remedies: Sequence[Remedy] = ()) -> InvalidInput:
        error = replace(fault, place=f"attribute {name!r}").as_error(remedies)
        return error.within(self.place) if self.place else error


def as_python(value: Any) -> Any:
    """Convert a NumPy scalar to Python; times stay, since some would become integers.

    The missing values of pandas are null, whether or not pandas is there to ask, and so are those
    of NumPy's times, as in the columns of tables. A UUID is its text, as there.
    """
    if type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return None if np.isnat(value) else value
    return value.item() if isinstance(value, np.generic) else value


def read_event(event: Any, *, repair: bool = False, place: str = "the event") -> Event:
    """Read a mapping of attributes, a GeoJSON Feature, or a CloudEvent that carries one."""
    if repair is not False:
        check_flags(repair=repair)
    if isinstance(event, Event):
        return event
    if type(event) is dict and "type" not in event and "specversion" not in event:
        return Event(event, repair=repair, place=place)  # as most are: attributes and no more
    if not isinstance(event, Mapping):
        raise InvalidInput(f"{place} must be a mapping, not {type(event).__name__}: {brief(event)}")
    if is_envelope(event):
        inner = read_event(_open_envelope(event, place), repair=repair, place=place)
        if inner.id is None and inner.value("id") is None:
            inner.id = as_python(event.get("id"))
        return inner
    kind = event.get("type")
    if isinstance(kind, str) and kind == "FeatureCollection" and "features" in event:
        raise InvalidInput(f"{place} is a FeatureCollection; pass its features to match_many")
    if is_feature(event):
        return _read_feature(event, repair, place)
    return Event(event, repair=repair, place=place)


def _open_envelope(envelope: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Return the attributes or the Feature that a CloudEvent carries."""
    try:
        check_version(envelope)
        data = read_data(envelope)
        check_carried(data, envelope.get(CONTENT_TYPE))
    except InvalidInput as fault:
        raise fault.within(place) from None
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{place} is a CloudEvent whose data is not an object: {brief(data)}")
    return data


def is_feature(value: Mapping[str, Any]) -> bool:
    """Whether a mapping is a GeoJSON Feature, and not just of a type that somebody calls so."""
    kind = value.get("type")
    is_named_so = isinstance(kind, str) and kind == "Feature"
    return is_named_so and ("properties" in value or GEOMETRY in value)


def _read_feature(feature: Mapping[str, Any], repair: bool, place: str) -> Event:
    properties = feature.get("properties")
    if properties is None:
        properties = {}
    if not isinstance(properties, Mapping):
        raise InvalidInput(f"{place}: properties must be an object, not {brief(properties)}")
    attributes = {**properties, GEOMETRY: feature.get(GEOMETRY)}
    id_ = as_python(feature.get("id"))
    if id_ is not None:
        attributes["id"] = id_  # as in files: a property of that name counts where there is none
    elif "id" in feature:
        attributes.setdefault("id", None)
    return Event(attributes, id=id_, repair=repair, place=place)


def paths_of(name: str) -> list[str]:
    """List where a dotted name may begin: each of its prefixes, and last the whole name."""
    return [name[:i] for i, letter in enumerate(name) if letter == "."] + [name]


def find_value(attributes: Mapping[str, Any], name: str) -> Any:
    """Find the value of an attribute; None where it is absent or null.

    A dotted name is looked up as it stands, then as a path into nested mappings: the first value
    that is not null counts, and of two paths the one that begins with the shorter name comes first.
    """
    if "." not in name:
        return attributes.get(name)
    pending: list[tuple[Mapping[str, Any], str]] = [(attributes, name)]
    seen: set[tuple[int, int]] = set()  # one mapping may stand in many places
    while pending:
        outer, rest = pending.pop()
        if (id(outer), len(rest)) in seen:
            continue
        seen.add((id(outer), len(rest)))
        value = outer.get(rest)
        if as_python(value) is not None:
            return value
        for path in reversed(find_beginnings(outer, rest)):
            inner = outer[path]
            if isinstance(inner, Mapping):
                pending.append((inner, rest[len(path) + 1 :]))
    return None


def find_beginnings(names: Collection[str], dotted: str) -> list[str]:
    """List the names at which the path of a dotted one may begin, the shortest first."""
    if dotted.count(".") < len(names):
        return [path for path in paths_of(dotted)[:-1] if path in names]
    found = [name for name in names if isinstance(name, str) and dotted.startswith(f"{name}.")]
    return sorted(found, key=len)
