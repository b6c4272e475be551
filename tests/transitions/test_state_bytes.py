"""The state of objects as bytes: it comes back whole, and damage and newer formats are refused."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import InvalidInput
from contrada.transitions.column_bytes import (
    ByteReader,
    read_floats,
    read_ids,
    read_integers,
    write_floats,
    write_ids,
    write_integers,
)
from contrada.transitions.followed import StreamOptions
from contrada.transitions.state_bytes import FORMAT, decode, encode
from contrada.transitions.track_state import TrackState
from transition_cases import Batch, Fence, Follower, make_fix, options, streams

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = struct.Struct("<4sIQII")


@pytest.fixture
def state() -> TrackState:
    """Two objects, one of which is in a fence and has a position that waits."""
    follower = Follower(StreamOptions(lateness_us=2))
    fences = {"pier": Fence((0, 0), (4, 4), subscriber="harbour")}
    fixes = [make_fix("ship", 1, 1, (2, 2)), make_fix("tug", 3, 2, (9, 9))]
    follower.follow(Batch((*fixes, make_fix("ship", 4, 3, (3, 3))), fences))
    assert (follower.state.visit_count, follower.state.held_count) == (1, 2)
    return follower.state


def forge(data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """Change the facts of a state, and sum the bytes anew."""
    magic, format_, _, _, spelt = HEAD.unpack_from(data)
    facts = json.loads(data[HEAD.size : HEAD.size + spelt])
    change(facts)
    text = json.dumps(facts).encode()
    body = text + data[HEAD.size + spelt :]
    head = struct.pack("<4sIQ", magic, format_, HEAD.size + len(body))
    sum_ = zlib.crc32(body, zlib.crc32(head + struct.pack("<I", len(text))))
    return head + struct.pack("<II", sum_, len(text)) + body


@settings(max_examples=50, deadline=None)
@given(streams(), options())
def test_a_state_that_was_written_goes_on_as_if_it_had_not_been(
    batches: list[Batch], how: StreamOptions
) -> None:
    follower, written = Follower(how), Follower(how)
    for batch in batches:
        assert written.follow(batch) == follower.follow(batch)
        data = encode(written.state)
        written.state = decode(data)
        assert encode(written.state) == data


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200)))
def test_integers_come_back(values: list[int]) -> None:
    facts, parts = write_integers(np.array(values, np.int64))
    reader = ByteReader(memoryview(b"".join(parts)))
    assert read_integers(facts, reader).tolist() == values
    assert reader.is_done


def test_integers_take_no_more_bytes_than_they_need() -> None:
    for values, size in (([7, 7, 7], 0), ([1, -128], 2), ([300, 0], 4), ([2**31, 0], 16)):
        _, parts = write_integers(np.array(values, np.int64))
        assert sum(map(len, parts)) == size


@given(st.lists(st.floats()))
def test_floats_come_back_bit_by_bit(values: list[float]) -> None:
    column = np.array(values, np.float64)
    facts, parts = write_floats(column)
    found = read_floats(facts, ByteReader(memoryview(b"".join(parts))))
    assert found.tobytes() == column.tobytes()


@given(
    st.lists(st.none() | st.text()).map(lambda ids: pa.array(ids, pa.large_string()))
    | st.lists(st.none() | st.text()).map(lambda ids: pa.array(ids, pa.string()))
    | st.lists(st.none() | st.integers(-9, 2**63 - 1)).map(lambda ids: pa.array(ids, pa.int64())),
    st.integers(0, 3),
)
def test_ids_come_back_with_their_type_also_those_of_a_slice(ids: pa.Array, start: int) -> None:
    for column in (ids, ids[start:]):
        facts, parts = write_ids(column)
        found = read_ids(facts, ByteReader(memoryview(b"".join(parts))))
        assert found.type == column.type
        assert found.to_pylist() == column.to_pylist()


def test_notes_and_numbers_are_kept(state: TrackState) -> None:
    told = replace(state, numbered=7, notes={"crs": "EPSG:4326"})
    found = decode(encode(told))
    assert (found.numbered, dict(found.notes), found.clock_us) == (7, {"crs": "EPSG:4326"}, 4)
    assert decode(encode(TrackState.empty())).clock_us is None


def test_a_newer_format_is_refused_by_name(state: TrackState) -> None:
    data = bytearray(encode(state))
    data[4] = FORMAT + 1
    with pytest.raises(InvalidInput) as refused:
        decode(bytes(data))
    assert str(refused.value) == (
        f"the state of objects is of format {FORMAT + 1}; this version of Contrada reads format "
        f"{FORMAT}"
    )


def test_what_is_not_a_state_is_refused() -> None:
    for data in (b"", b"PAR1 and more of that", b"CTRS"):
        with pytest.raises(InvalidInput, match="is not the state of objects: it begins with"):
            decode(data)


def test_every_damaged_byte_and_every_cut_is_found(state: TrackState) -> None:
    data = encode(state)
    for place in range(len(data)):
        spoilt = bytearray(data)
        spoilt[place] ^= 0x10
        with pytest.raises(InvalidInput):
            decode(bytes(spoilt))
        with pytest.raises(InvalidInput):
            decode(data[:place])
    with pytest.raises(InvalidInput, match=r"damaged: it has .* bytes, not"):
        decode(data + b"more")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda facts: facts.pop("columns"), "KeyError"),
        (lambda facts: facts["columns"].pop(), "columns are missing"),
        (lambda facts: facts["columns"].append({}), "there is more than was written"),
        (lambda facts: facts["columns"][1].update(count=-1), "a count of -1"),
        (lambda facts: facts["columns"][1].update(kind="<U9"), "integers of kind '<U9'"),
        (
            lambda facts: facts["columns"][1].update(all=0, count=9),
            "columns of objects have|ArrowInvalid",
        ),
        (lambda facts: facts["columns"][7].update(all=5), "a visit has an object"),
        (lambda facts: facts["columns"][8].update(all=5), "a visit has a subscription"),
        (lambda facts: facts["columns"][8].update(all=-1), "a visit has a subscription"),
        (lambda facts: facts["tables"][0].update(rows=7), "2 rows instead of 7"),
        (lambda facts: facts.update(tables=[]), "there is more than was written"),
        (lambda facts: facts.update(notes={"crs": 4326}), "another type"),
        (lambda facts: facts.update(clock_us="noon"), "another type"),
    ],
)
def test_facts_that_cannot_be_are_refused(
    state: TrackState, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    data = encode(state)
    assert decode(forge(data, lambda _: None)).held_count == 2
    with pytest.raises(InvalidInput, match=r"^the state of objects is damaged: ") as refused:
        decode(forge(data, change))
    assert refused.match(message)
