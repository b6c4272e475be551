"""Messages come back from the wire as they were sent, and nothing else comes from it."""

from __future__ import annotations

import json
from math import inf
from typing import Any, get_args

import numpy as np
import pytest

from contrada.errors import InvalidInput, PeerError
from contrada.overlay.boxes import Space
from contrada.overlay.messages import Entry, Event, Lead, Message, PeerId, Report
from contrada.overlay.peer import Peer
from contrada.overlay.state import Settings
from contrada.overlay.wire import BYTES_MAX, PAYLOAD_BYTES_MAX, decode, encode
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
        (b"", "no message"),
        (b"nonsense", "no message"),
        (b"[" * 100_000, "no message"),
        (b"{}", "no message"),
        (b"[1]", "no message"),
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
        (b'[1,"Event",1,2,[0,0,NaN,1],0,0,true]', "NaN is no number"),
        (b'[1,"Event",1,2,[2,0,1,1],0,0,true]', "box cannot be"),
        (b'[1,"Event",1,2,["far",0,1,1],0,0,true]', "box cannot be"),
        (b'[1,"Event",1,2,7,0,0,true]', "box cannot be 7"),
        (b'[1,"Event",1,2,[0,0,1e400,1],0,0,true]', "1e400 is no number"),
        (b'[1,"Event",1,2,[0,0,1,1],1e999,0,true]', "1e999 is no number"),
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
    with pytest.raises(PeerError, match="no message"):
        decode(b" " * (BYTES_MAX + 1), 2)
    entries = tuple(Entry(PeerId(n), BOX, 1) for n in range(900))
    with pytest.raises(PeerError, match="too long to send"):
        encode(Lead(1, (entries,) * 48, PeerId(3)))
    many: list[Any] = [1, "Adopt", 1, [[n, BOX, 1] for n in range(300)]]
    with pytest.raises(PeerError, match="entries cannot be"):
        decode(json.dumps(many).encode(), 2)


@pytest.mark.parametrize("payload", [inf, {"a": inf}, object(), "x" * PAYLOAD_BYTES_MAX])
def test_a_payload_that_cannot_be_sent_is_refused_before_it_is_published(payload: Any) -> None:
    peer = Peer(PeerId(1), [BOX], Settings(Space((0.0, 0.0, 1.0, 1.0))))
    with pytest.raises(InvalidInput, match="the payload"):
        peer.publish(BOX, payload, 0.0)
