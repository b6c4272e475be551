"""The body of a subscription as it is put: a subscription row, and what only a broker knows.

Errors name the member by its JSON path. A body is kept as canonical JSON, without members that are
null and without `id`: two bodies are equal if their texts are.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contrada.broker.geojson_words import reword
from contrada.broker.transition_bodies import find_idle_terms, read_transitions
from contrada.errors import InvalidInput
from contrada.limits import BROKER_NAME_LENGTH_MAX
from contrada.matcher.inside import read_predicate
from contrada.matching.fences import find_form
from contrada.model.event import GEOMETRY
from contrada.model.instant import read_instant
from contrada.model.row_columns import BESIDE_GEOMETRY, DEFAULT_RELATION, DEFAULTS, ROW_COLUMNS
from contrada.model.subscription import Predicate
from contrada.model.unicode import is_unicode
from contrada.showing import brief, listed

_ROW_MEMBERS = [column.name for column in ROW_COLUMNS]
_MEMBERS = [*_ROW_MEMBERS, "expires", "transitions"]
_BESIDE = {column.name for column in BESIDE_GEOMETRY}


@dataclass(frozen=True, slots=True)
class SubscriptionBody:
    """A body that was read: `text` is what is kept, `predicate` is None in a collection.

    `warnings` are sentences about what can do nothing.
    """

    text: str
    subscriber: str
    predicate: Predicate | None
    expires_us: int | None
    has_transitions: bool
    members: Mapping[str, Any]
    warnings: Sequence[str] = ()

    @property
    def is_collection(self) -> bool:
        """Whether its geometries are rows, to be put by themselves."""
        return self.predicate is None


def read_name(name: Any, place: str) -> str:
    """Read the id of a subscription or the name of a subscriber."""
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"a name is a text that is not empty, not {brief(name)}", place=place)
    if len(name) > BROKER_NAME_LENGTH_MAX:
        raise InvalidInput(
            f"the name {brief(name)} is longer than {BROKER_NAME_LENGTH_MAX} characters "
            "(BROKER_NAME_LENGTH_MAX)",
            place=place,
        )
    if not is_unicode(name) or not name.isprintable():
        raise InvalidInput(
            f"the name {brief(name)} has characters that cannot be shown", place=place
        )
    return name


def read_subscription_body(id_: str, body: Any, reader: Any) -> SubscriptionBody:
    """Read the body of a subscription; `reader` is the matcher that will hold it."""
    if not isinstance(body, Mapping):
        raise InvalidInput(f"a subscription is a JSON object, not {brief(body)}")
    members = {name: value for name, value in body.items() if value is not None}
    unknown = [name for name in members if name not in _MEMBERS]
    if unknown:
        raise InvalidInput(
            f"there is no such member of a subscription; it has {listed(_MEMBERS)}",
            place=brief(unknown[0]),
        )
    stated = members.pop("id", id_)
    if stated != id_ and stated != _as_whole(id_):
        raise InvalidInput(f"is not {brief(id_)}, the id in the path", place="id")
    if not members:
        raise InvalidInput("there is neither a filter nor a geometry")
    subscriber = read_name(members.get("subscriber", id_), "subscriber")
    expires_us = _read_expires(members.get("expires"))
    if "transitions" in members:
        read_transitions(members["transitions"], "transitions")
        if members["transitions"] is False:
            del members["transitions"]
    predicate = _read_predicate(members, reader)
    is_fence = find_form(predicate.expression) is not None
    is_collection = "filter" not in members and GEOMETRY not in members
    kept = {name: value for name, value in members.items() if DEFAULTS.get(name) != value} | {
        "subscriber": subscriber
    }
    return SubscriptionBody(
        write_canonical(kept),
        subscriber,
        None if is_collection else predicate,
        expires_us,
        "transitions" in members,
        kept,
        find_idle_terms(members.get("transitions"), is_fence=is_fence),
    )


def _as_whole(id_: str) -> int | str:
    return int(id_) if id_.isascii() and id_.isdigit() and len(id_) < 19 else id_


def _read_predicate(members: Mapping[str, Any], reader: Any) -> Predicate:
    """Make the predicate; that of a collection is of a row as it might have."""
    given = {name: members[name] for name in _BESIDE if name in members}
    area = members.get(GEOMETRY)
    if "filter" not in members and area is None:  # any geometry serves to judge the rest
        area = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    try:
        return read_predicate(reader, members.get("filter"), area, **given)
    except InvalidInput as fault:
        words = reword(fault.what, area)
        if words is None:
            raise
        raise InvalidInput(words, place=GEOMETRY) from None


def _read_expires(value: Any) -> int | None:
    if value is None:
        return None
    moment = read_instant(value) if isinstance(value, str) else None
    if moment is None:
        raise InvalidInput(
            f'{brief(value)} is not a moment such as "2027-01-31T12:00:00Z"', place="expires"
        )
    return moment.ns // 1_000


def write_canonical(members: Mapping[str, Any]) -> str:
    """Write a body such that equal ones have equal texts."""
    return json.dumps(members, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def relation_of(body: Mapping[str, Any]) -> str | None:
    """Return the relation that a body names or stands for; None where it has a filter."""
    return None if "filter" in body else str(body.get("relation", DEFAULT_RELATION))
