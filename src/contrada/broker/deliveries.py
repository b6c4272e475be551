"""Deliveries as CloudEvents: an event, and all that one subscriber has matched of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from contrada.broker.log_reading import StoredDelivery
from contrada.broker.match_lists import unpack

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TYPE = "contrada.delivery"


class Delivery(NamedTuple):
    """A delivery: its position, and the whole CloudEvent as JSON in UTF-8."""

    position: str
    json: bytes


@dataclass(frozen=True, slots=True)
class DeliveryGap:
    """What is no longer kept: deliveries up to a position, and how many, if that is known."""

    until: str
    deliveries: int | None


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """Some deliveries in order; `next` is where to go on, `is_end` that nothing more is there."""

    deliveries: list[Delivery]
    next: str
    is_end: bool
    gap: DeliveryGap | None = None


class NumberNaming(Protocol):
    """What knows the id of a subscription, its relation and its row by a number."""

    def find(self, number: int) -> Mapping[str, Any]:
        """Return the members of a match that name what a number stands for."""

    def find_all(self, numbers: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """Return the same of many numbers, sorted."""


def write_delivery(
    stored: StoredDelivery, position: str, subscriber: str, names: NumberNaming
) -> Delivery:
    """Write a stored delivery as a CloudEvent; `names` says what numbers stand for."""
    entries = unpack(stored.matches)
    matches: Sequence[Mapping[str, Any]]
    if isinstance(stored.matches, str):  # with transitions, in any order
        matches = [{**names.find(number), **(facts or {})} for number, facts in entries]
    else:
        matches = names.find_all([entry.number for entry in entries])
    head = {
        "specversion": "1.0",
        "id": position,
        "source": f"/v1/subscribers/{quote(subscriber, safe='')}",
        "type": TYPE,
        "time": write_time(stored.time_us),
        "datacontenttype": "application/json",
        "position": position,
    }
    parts = [_dump(head)[:-1], b',"data":{']
    if stored.body is not None:
        parts += [b'"event":', stored.body, b","]
    parts += [b'"matches":', _dump(matches), b"}}"]
    return Delivery(position, b"".join(parts))


def write_time(time_us: int) -> str:
    """Write a moment as ISO 8601 text, in UTC."""
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _dump(value: Mapping[str, Any] | Sequence[Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
