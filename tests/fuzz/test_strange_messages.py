"""CloudEvents that were spoilt on purpose are read, or refused with our errors."""

import random

import pytest

from contrada.errors import ContradaError
from contrada.files.cloudevents import read_binary, read_structured, write_structured

NAMES = {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}
SOUND = (
    (
        b'{"specversion":"1.0","id":"1","source":"s","type":"t","data":{"type":"Feature","geometry":'
        b'{"type":"Point","coordinates":[1,2]},"properties":{"a":1e5}}}'
    ),
    b'{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"eyJhIjoxfQ==","x":1}',
)
PARTS = (b"[", b"{", b'"', b"\\ud800", b"9" * 4_400, b"NaN", b"1e999", b"\xff", b"[" * 240, b"\0")
TYPES = (None, "application/json", "text/plain", "a/b+json;", "\ud800")


def spoil(sound: bytes, source: random.Random) -> bytes:
    """Change some bytes of a message, or put others in their place."""
    spoilt = bytearray(sound)
    for _ in range(source.randint(1, 5)):
        at = source.randrange(len(spoilt) + 1)
        spoilt[at : at + source.randint(0, 8)] = source.choice((*PARTS, b"", source.randbytes(1)))
    return bytes(spoilt)


def read_spoilt(first: int, count: int) -> int:
    """Read so many messages; return how many are refused."""
    refused = 0
    for seed in range(first, first + count):
        source = random.Random(seed)
        text = spoil(source.choice(SOUND), source)
        try:
            write_structured(read_structured(text))
            read_binary(NAMES, source.choice(TYPES), text)
        except ContradaError:
            refused += 1
    return refused


def test_spoilt_messages_are_read_or_refused() -> None:
    assert 0 < read_spoilt(0, 3_000) < 3_000


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_many_spoilt_messages_are_read_or_refused() -> None:
    read_spoilt(random.SystemRandom().randrange(10**9), 1_000_000)
