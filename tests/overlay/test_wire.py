"""Messages come back from the wire as they were sent, and nothing else comes from it."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from typing import Any, get_args

import numpy as np
import pytest

from contrada.errors import InvalidInput, PeerError
from contrada.overlay.boxes import DIMENSIONS_MAX, Space
from contrada.overlay.cell_windows import Cells
from contrada.overlay.effects import Deliver
from contrada.overlay.messages import (
    Copy,
    Dissolve,
    Entry,
    Event,
    Handed,
    Lead,
    Message,
    PeerId,
    Report,
)
from contrada.overlay.peer import Peer
from contrada.overlay.state import CHILDREN_MAX, HEIGHT_MAX, WIDE_MAX, Settings
from contrada.overlay.wire import (
    PAYLOAD_BYTES_MAX,
    PAYLOAD_DEPTH_MAX,
    WIRE_BYTES_MAX,
    decode,
    encode,
)
from contrada.simulation.garbage import Garbage
from contrada.simulation.simulator import Simulator

BOX = (0.0, 0.5, 1.0, 2.0)


def test_every_kind_of_message_comes_back() -> None:
    rng = np.random.default_rng(1)
    simulator = Simulator(Settings(Space((0.0, 0.0, 1.0, 1.0))), rng)
    for _ in range(9):
        simulator.add(BOX)
    garbage = Garbage(simulator, rng)
    kinds = set()
    for _ in range(400):
        message = garbage.make_message()
        kinds.add(type(message))
        assert decode(encode(message), 2) == message
    assert kinds == set(get_args(Message)) - {Event}


def test_unbounded_boxes_and_events_come_back() -> None:
    report = Report(3, Entry(PeerId(4), (-inf, 0.1, inf, inf), 7), 0.5, None, (inf, 0.0, -inf, 1.0))
    assert decode(encode(report), 2) == report
    event = Event(PeerId(1), 2, BOX, {"wind": [1, 2.5, None]}, 0, True)
    assert decode(encode(event), 2) == event


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a message"),
        (b"nonsense", "not a message"),
        (b"[" * 100_000, "not a message"),
        (b"{}", "not a message"),
        (b"[1]", "not a message"),
        (b'[2,"Leave",0]', "version 2; this peer speaks 1"),
        (b'[true,"Leave",0]', "version True"),
        (b'[1,"Shout",0]', "unknown kind of message 'Shout'"),
        (b'[1,["Leave"],0]', "unknown kind"),
        (b'[1,"Leave"]', "1 fields, not 0"),
        (b'[1,"Leave",-1]', "level cannot be -1"),
        (b'[1,"Leave",48]', "level cannot be 48"),
        (b'[1,"Leave",true]', "level cannot be True"),
        (b'[1,"Leave","0"]', "level cannot be '0'"),
        (b'[1,"Report",0,[1,[0,0,1],0,null,[]],0,null,null]', "entry cannot be"),
        (b'[1,"Event",1,2,[0,0,NaN,1],0,0,true]', "NaN is not a number"),
        (b'[1,"Event",1,2,[2,0,1,1],0,0,true]', "box cannot be"),
        (b'[1,"Event",1,2,["far",0,1,1],0,0,true]', "box cannot be"),
        (b'[1,"Event",1,2,7,0,0,true]', "box cannot be 7"),
        (b'[1,"Event",1,2,[0,0,1e400,1],0,0,true]', "1e400 is not a number"),
        (b'[1,"Event",1,2,[0,0,1,1],1e999,0,true]', "1e999 is not a number"),
        (b'[1,"Event",1,2,[0,0,1' + b"0" * 400 + b",1],0,0,true]", "box cannot be"),
        (b'[1,"Report",0,[1,[0,0,1,1],1e99,null,[]],0,null,null]', "entry cannot be"),
        (b'[1,"Report",0,[1,[0,0,1,1],0,[0,0,0,[2]],[]],0,null,null]', "entry cannot be"),
        (b'[1,"Report",0,[1,[0,0,1,1],0,[3,9,0,[1]],[]],0,null,null]', "entry cannot be"),
        (b'[1,"Report",0,[1,[0,0,1,1],0,null,[[1,7]]],0,null,null]', "entry cannot be"),
        (b'[1,"Accept",0,null,0,0,null]', "parent cannot be None"),
        (b'[1,"Adopt",1,[[1,[0,0,1,1]]]]', "entries cannot be"),
        (b'[1,"Adopt",1,{"1":2}]', "entries cannot be"),
        (b'[1,"Lead",1,[[[1,[0,0,1,1],-2,null,[]]]],2]', "lists cannot be"),
        (b'[1,"Lead",1,[],null]', "above cannot be None"),
    ],
)
def test_whatever_is_no_message_is_refused_and_said(data: bytes, words: str) -> None:
    with pytest.raises(PeerError, match=words.replace("[", "\\[")):
        decode(data, 2)


def test_what_is_too_long_is_refused_on_both_ways() -> None:
    with pytest.raises(PeerError, match="is too long; the limit is"):
        decode(b" " * (WIRE_BYTES_MAX + 1), 2)
    entries = tuple(Entry(PeerId(n), BOX, 1) for n in range(9_000))
    with pytest.raises(PeerError, match="too long to send"):
        encode(Lead(1, (entries,) * HEIGHT_MAX, PeerId(3)))
    many: list[Any] = [1, "Adopt", 1, [[n, BOX, 1, None, []] for n in range(CHILDREN_MAX + 2)]]
    with pytest.raises(PeerError, match="entries cannot be"):
        decode(json.dumps(many).encode(), 2)


# What is largest


LONG = -1.2345678901234567e-300  # no float has more characters
LONG_ID = PeerId(2**63 - 1)
LONG_BOX = (LONG,) * DIMENSIONS_MAX * 2
LONG_CELLS = Cells(20, 2**20 - 32, 2**20 - 32, (2**32 - 1,) * 32)
LONG_WIDE = ((LONG_ID, LONG_BOX),) * WIDE_MAX
LONG_ENTRY = Entry(LONG_ID, LONG_BOX, 2**63 - 1, LONG_CELLS, LONG_WIDE)


def test_the_largest_lists_of_one_node_come_back() -> None:
    entries = (LONG_ENTRY,) * CHILDREN_MAX
    messages: list[Message] = [
        Lead(HEIGHT_MAX - 1, (entries,), LONG_ID),
        Copy((entries,), LONG_ID, LONG_ID),
        Handed(HEIGHT_MAX - 1, (LONG_ID,) * len(entries), (*entries, LONG_ENTRY), False),
        Dissolve(HEIGHT_MAX - 1, (*entries, LONG_ENTRY), False),
    ]
    for message in messages:
        assert decode(encode(message), DIMENSIONS_MAX) == message


@pytest.mark.parametrize("kind", [Lead, Copy])
def test_the_largest_lists_of_all_levels_come_back_with_the_names_for_which_there_is_room(
    kind: type[Lead | Copy],
) -> None:
    lists = ((LONG_ENTRY,) * CHILDREN_MAX,) * (HEIGHT_MAX - 1)
    data = encode(Lead(1, lists, LONG_ID) if kind is Lead else Copy(lists, LONG_ID, LONG_ID))
    assert 0.9 * WIRE_BYTES_MAX < len(data) <= WIRE_BYTES_MAX
    message = decode(data, DIMENSIONS_MAX)
    assert isinstance(message, kind)
    nameless = (replace(LONG_ENTRY, wide=None),) * CHILDREN_MAX
    assert message.lists == (lists[0], *[nameless] * (HEIGHT_MAX - 2))


def test_an_overlay_may_have_no_more_children_than_a_message_has_room_for() -> None:
    space, most = Space((0.0, 0.0, 1.0, 1.0)), CHILDREN_MAX // 4
    assert Settings(space, M=most).children_max == CHILDREN_MAX
    with pytest.raises(InvalidInput, match=f"M must be at most {most}, not {most + 1}"):
        Settings(space, M=most + 1)


# Payloads


def nest(depth: int) -> Any:
    """Make lists in each other."""
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def make_event(payload: str) -> bytes:
    """Write an event as no peer of ours would."""
    return f'[1,"Event",1,2,[0,0,1,1],{payload},0,true]'.encode()


@pytest.mark.parametrize(
    "payload",
    [
        inf,
        {"a": inf},
        object(),
        "x" * PAYLOAD_BYTES_MAX,
        nest(PAYLOAD_DEPTH_MAX + 1),
        nest(900),
        nest(100_000),
        {"a": ({"b": nest(PAYLOAD_DEPTH_MAX - 2)},)},
    ],
    ids=lambda payload: type(payload).__name__,
)
def test_a_payload_that_cannot_be_sent_is_refused_before_it_is_published(payload: Any) -> None:
    peer = Peer(PeerId(1), [BOX], Settings(Space((0.0, 0.0, 1.0, 1.0))))
    with pytest.raises(InvalidInput, match="the payload"):
        peer.publish(BOX, payload, 0.0)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ('"' + "é" * 450_000 + '"', "2,700,002 bytes as JSON"),
        ("[" + "9e15," * 50_000 + "0]", "950,003 bytes as JSON"),
        ("[" * 65 + "]" * 65, "more than 64 levels deep"),
        ("[" * 900 + "]" * 900, "Event: payload cannot be"),
        ('{"a":' * 65 + "0" + "}" * 65, "more than 64 levels deep"),
    ],
    ids=["accents", "floats", "deep", "deeper", "objects"],
)
def test_a_payload_that_could_not_be_passed_on_is_refused(payload: str, words: str) -> None:
    with pytest.raises(PeerError, match=words):
        decode(make_event(payload), 2)


def test_the_largest_payloads_come_back() -> None:
    for payload in ("é" * ((PAYLOAD_BYTES_MAX - 2) // 6), nest(PAYLOAD_DEPTH_MAX)):
        event = Event(PeerId(1), 2, BOX, payload, 0, True)
        assert decode(encode(event), 2) == event


@pytest.mark.parametrize("before", ["", "1,", '1,"Leave",', '1,"Event",1,2,'])
@pytest.mark.parametrize("depth", [100, 900, 960, 990])
def test_what_is_nested_in_any_place_is_refused(before: str, depth: int) -> None:
    with pytest.raises(PeerError):
        decode(f"[{before}{'[' * depth}{']' * depth}]".encode(), 2)


# Boxes of events


def test_an_event_has_a_box_of_floats() -> None:
    peer = Peer(PeerId(1), [BOX], Settings(Space((0.0, 0.0, 1.0, 1.0))))
    deliver = next(effect for effect in peer.publish((0, 0, 1, 1), None, 0.0))
    assert isinstance(deliver, Deliver)
    assert all(type(side) is float for side in deliver.event.box)
    with pytest.raises(InvalidInput, match="a side of the box is too long for a float"):
        peer.publish((0, 0, 10**400, 1), None, 0.0)
