"""The protocol of `/v1/socket`: one WebSocket that publishes and receives. No I/O here.

Every frame is a text with one JSON object, whose `type` says what it is.

| a client sends | and is answered |
| --- | --- |
| `{"type": "publish", "events": …, "ref"?, "key"?, "all"?}` | `published` or `error` |
| `{"type": "read", "subscriber": …, "credit": n, "after"?}` | `reading`, then `deliveries` |
| `{"type": "credit", "subscriber": …, "credit": n}` | more `deliveries` |
| `{"type": "ack", "subscriber": …, "position": …, "ref"?}` | `acked` |
| `{"type": "stop", "subscriber": …}` | `stopped` |

- `events` is what `POST /v1/events` takes as JSON: a Feature, a FeatureCollection, a CloudEvent or
  a list of them; `key` stands for `Idempotency-Key`, `all` for `?all=true`.
- `{"type": "published", "ref", "accepted", "position", "matches", "errors", "repeated"?}` comes
  once the events are on disk, in the order of the `publish` frames. Events of one socket keep that
  order: a broker that is full makes the socket wait, and no frame overtakes another. `ref` is any
  text or integer of the client's, and comes back as it was.
- `{"type": "deliveries", "subscriber", "deliveries": […], "next", "gap"?}` is a page, as
  `GET …/deliveries` answers it. Each delivery uses up one credit; without credit none comes. A
  `read` begins at `after`, or at the cursor; a second one of the same subscriber starts anew.
- Reading moves no cursor: `ack` does. After a break a client reads on from its own last `next`.
- `{"type": "error", "problem": {…}, "ref"?, "subscriber"?}` answers a frame that is wrong or cannot
  be done; `problem` is that of HTTP. The socket stays open; a `read` that has failed has ended.
- The server pings, and closes with 1012 where it stops, 1008 where the key is no longer allowed or
  too many control frames come, 1009 where a frame is too long. A client that sends frames faster
  than it may is read more slowly.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from contrada.broker.deliveries import DeliveryPage
from contrada.errors import InvalidInput
from contrada.model.json_message import decode_json
from contrada.server.delivery_reader import write_page
from contrada.server.json_answers import write_json
from contrada.showing import brief, listed

CLOSE_STOPPING, CLOSE_REFUSED, CLOSE_TOO_LONG = 1012, 1008, 1009

Ref: TypeAlias = str | int | None

_REF_LENGTH_MAX = 200
_KEY_LENGTH_MAX = 255


@dataclass(frozen=True, slots=True)
class PublishFrame:
    """Events to publish."""

    ref: Ref
    events: Any
    key: str | None
    is_all_or_none: bool


@dataclass(frozen=True, slots=True)
class ReadFrame:
    """A wish to read the deliveries of a subscriber, and how many at first."""

    subscriber: str
    after: str | None
    credit: int


@dataclass(frozen=True, slots=True)
class CreditFrame:
    """Further deliveries that a reader is ready for."""

    subscriber: str
    credit: int


@dataclass(frozen=True, slots=True)
class AckFrame:
    """A position up to which a subscriber has dealt with its deliveries."""

    ref: Ref
    subscriber: str
    position: str


@dataclass(frozen=True, slots=True)
class StopFrame:
    """A wish to read a subscriber no longer."""

    subscriber: str


SocketFrame: TypeAlias = PublishFrame | ReadFrame | CreditFrame | AckFrame | StopFrame

_MEMBERS = {
    "publish": ("events", "ref", "key", "all"),
    "read": ("subscriber", "credit", "after"),
    "credit": ("subscriber", "credit"),
    "ack": ("subscriber", "position", "ref"),
    "stop": ("subscriber",),
}


class BadFrame(InvalidInput):
    """A frame that cannot be read; `names` are those of its members that say what it was about."""

    names: dict[str, Any]


def read_frame(text: bytes, credit_max: int) -> SocketFrame:
    """Read a frame; one that is wrong is a `BadFrame`."""
    names: dict[str, Any] = {}
    try:
        return _read_frame(decode_json(text), credit_max, names)
    except InvalidInput as fault:
        bad = BadFrame(fault.what, place=fault.place, code=fault.code)
        bad.names = names
        raise bad from None


def _read_frame(value: Any, credit_max: int, names: dict[str, Any]) -> SocketFrame:
    if not isinstance(value, dict):
        raise InvalidInput(f"a frame is a JSON object, not {brief(value)}")
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _MEMBERS:
        raise InvalidInput(f"{brief(kind)} is not one of {listed(_MEMBERS)}", place="type")
    members = _Members(value)
    ref = members.ref() if "ref" in _MEMBERS[kind] else None
    names |= {} if ref is None else {"ref": ref}
    members.check_known(kind)
    if kind == "publish":
        key = members.text("key", _KEY_LENGTH_MAX)
        return PublishFrame(ref, members.wanted("events"), key, members.truth("all"))
    subscriber = members.wanted_text("subscriber")
    names["subscriber"] = subscriber
    match kind:
        case "read":
            return ReadFrame(subscriber, members.text("after"), members.credit(credit_max))
        case "credit":
            return CreditFrame(subscriber, members.credit(credit_max))
        case "ack":
            return AckFrame(ref, subscriber, members.wanted_text("position"))
        case _:
            return StopFrame(subscriber)


class _Members:
    """The members of one frame; those that its type does not have are refused by name."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._names = list(value)
        self._members = {name: member for name, member in value.items() if member is not None}

    def check_known(self, kind: str) -> None:
        for name in self._names:
            if name not in _MEMBERS[kind] and name != "type":
                known = listed(_MEMBERS[kind])
                raise InvalidInput(f"unknown; {kind!r} has {known}", place=brief(name))

    def wanted(self, name: str) -> Any:
        if name not in self._members:
            raise InvalidInput("it is missing", place=name)
        return self._members[name]

    def wanted_text(self, name: str) -> str:
        self.wanted(name)
        text = self.text(name)
        assert text is not None
        return text

    def text(self, name: str, length_max: int = 1_000) -> str | None:
        value = self._members.get(name)
        if value is not None and not (isinstance(value, str) and 0 < len(value) <= length_max):
            words = f"a text of 1 to {length_max:,} characters is wanted"
            raise InvalidInput(f"{words}, not {brief(value)}", place=name)
        return value

    def truth(self, name: str) -> bool:
        value = self._members.get(name, False)
        if not isinstance(value, bool):
            raise InvalidInput(f"true or false is wanted, not {brief(value)}", place=name)
        return value

    def credit(self, most: int) -> int:
        value = self.wanted("credit")
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not 1 <= value <= most:
            words = f"a number from 1 to {most:,} is wanted"
            raise InvalidInput(f"{words}, not {brief(value)}", place="credit")
        return int(value)

    def ref(self) -> Ref:
        value = self._members.get("ref")
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        is_text = isinstance(value, str) and len(value) <= _REF_LENGTH_MAX
        if value is not None and not is_text and not (is_whole and value.bit_length() < 64):
            words = f"a whole number or a text of at most {_REF_LENGTH_MAX} characters is wanted"
            raise InvalidInput(f"{words}, not {brief(value)}", place="ref")
        return value


def write_frame(kind: str, **members: Any) -> str:
    """Write a frame for a client; members that are None are left out."""
    present = {name: value for name, value in members.items() if value is not None}
    return write_json({"type": kind} | present).decode()


def write_deliveries(subscriber: str, page: DeliveryPage) -> str:
    """Write the frame of a page of deliveries."""
    head = write_json({"type": "deliveries", "subscriber": subscriber})
    return (head[:-1] + b"," + write_page(page)[1:]).decode()
