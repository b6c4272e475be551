"""Requests and frames as no client writes them, against every route of a whole server."""

import json
import logging
import os
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hosted import Hosted, hosted, wait_until
from process_memory import measure_tree
from server.open_server import SQUARE, point

PATIENCE_S = 20.0
ANSWERED = {503, 507}  # of what begins with a 5
AT_REST = [
    "contrada_bodies_bytes 0\n",
    'contrada_events_waiting{tenant="default"} 0\n',
    "contrada_streams 0\n",
]
LIMITS = ["wait_s_max=0.01", "requests_per_s_max=1000000"]

QUICKLY = settings(
    max_examples=150,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
LONG = settings(QUICKLY, max_examples=20_000, derandomize=False)

METHODS = st.sampled_from(["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "BREW"])
SEGMENTS = st.sampled_from(
    "v1 subscriptions subscribers events deliveries ack cursor rows match explain settings socket "
    "dead-letters redrive bay x healthz readyz metrics docs openapi.json .. %2e%2e %2F %00 %ff "
    "%ed%a0%80 a%20b ... é ~ * {id} // ; &".split()
) | st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#?"), max_size=9)
ROUTES = st.sampled_from(
    [
        "/",
        "/docs",
        "/openapi.json",
        "/metrics",
        "/v1/events",
        "/v1/match",
        "/v1/explain",
        "/v1/settings",
        "/v1/socket",
        "/v1/subscriptions",
        "/v1/subscriptions/bay",
        "/v1/subscriptions/x",
        "/v1/subscribers",
        "/v1/subscribers/bay",
        "/v1/subscribers/x",
        "/v1/subscribers/bay/deliveries",
        "/v1/subscribers/bay/ack",
        "/v1/subscribers/bay/cursor",
        "/v1/subscribers/bay/dead-letters",
        "/v1/subscribers/bay/dead-letters/redrive",
    ]
)
PATHS = ROUTES | st.lists(SEGMENTS, max_size=5).map(lambda parts: "/" + "/".join(parts))
ODD_TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=12)
NUMBERS = st.sampled_from(["0", "1", "-1", "1e999", "nan", "9" * 30, "٣", "0x10", "1_0", "", " "])
QUERIES = st.lists(
    st.tuples(
        st.sampled_from("after limit wait all subscriber position".split()) | ODD_TEXTS,
        NUMBERS | ODD_TEXTS | st.just("%ff%00"),
    ),
    max_size=3,
).map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs))
HEADER_VALUES = (
    st.sampled_from(
        "application/json application/geo+json application/x-ndjson application/cloudevents+json "
        "application/cloudevents-batch+json text/event-stream text/html */* gzip deflate identity "
        "chunked close keep-alive, upgrade websocket h2c 100-continue bytes=0- 13 null".split()
    )
    | ODD_TEXTS
    | NUMBERS
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            "Accept Authorization Content-Type Content-Encoding Expect Idempotency-Key Origin Host "
            "Last-Event-ID Connection Upgrade Sec-WebSocket-Key Sec-WebSocket-Version Range Cookie "
            "ce-id ce-source ce-specversion ce-type ce-time ce-subject X-Forwarded-For".split()
        ),
        HEADER_VALUES,
    ),
    max_size=5,
)
EVENT = json.dumps(point(1, 1, n=1)).encode()
WORDS = st.sampled_from(
    "type geometry properties id features Feature Point coordinates filter where relation webhook "
    "url position time subscriber transitions kinds events credit specversion source data".split()
)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=3), inner),
    max_leaves=10,
)
BODIES = (
    st.just(b"")
    | st.binary(max_size=200)
    | TREES.map(lambda tree: json.dumps(tree).encode())
    | st.sampled_from([EVENT, EVENT + b"\n" + EVENT, b"\x1e" + EVENT, EVENT[:-1], b"[" * 5_000])
    | st.sampled_from(
        [b"\x1f\x8b\x08" + bytes(40), b"\x78\x9c" + bytes(9), EVENT.decode().encode("utf-16")]
    )
)
FRAMINGS = st.sampled_from(["length", "chunked", "short", "long", "both", "broken chunk"])


def write_request(
    method: str, path: str, query: str, headers: list[tuple[str, str]], body: bytes, framing: str
) -> bytes:
    """A request as it goes over the wire; a length may lie."""
    target = f"{path}?{query}" if query else path
    lines = [f"{method} {target} HTTP/1.1"]
    if all(name != "Host" for name, _ in headers):
        lines.append("Host: localhost")
    lines += [f"{name}: {value}" for name, value in headers]
    length = len(body) + {"short": -1, "long": 1}.get(framing, 0)
    if framing in ("length", "short", "long", "both"):
        lines.append(f"Content-Length: {length}")
    if framing in ("chunked", "both", "broken chunk"):
        lines.append("Transfer-Encoding: chunked")
        size = "zz" if framing == "broken chunk" else f"{len(body):x}"
        body = size.encode() + b"\r\n" + body + b"\r\n" + (b"0\r\n\r\n" if body else b"\r\n")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


def exchange(server: Hosted, request: bytes, *, is_over: bool = True) -> bytes:
    """Send something, and perhaps no more; return what comes back, of a stream its head."""
    port = int(server.address.rpartition(":")[2])
    heard = b""
    address = "127.0.0.1", port
    with (
        socket.create_connection(address, PATIENCE_S) as connection,
        suppress(ConnectionError),
    ):
        connection.sendall(request)
        if is_over:
            connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(65_536):
            heard += piece
            if b"text/event-stream" in heard:
                break
    return heard


def check_answers(heard: bytes, request: bytes) -> None:
    """No answer may be a failure of the server."""
    for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", heard):
        assert int(status) < 500 or int(status) in ANSWERED, (request, heard)


@pytest.fixture(scope="module")
def fuzzed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with hosted(tmp_path_factory.mktemp("fuzzed"), *LIMITS) as server, server.client() as client:
        client.put("/v1/subscriptions/bay", json={"geometry": SQUARE})
        yield server


@pytest.fixture
def still_well(fuzzed_server: Hosted, caplog: pytest.LogCaptureFixture) -> Iterator[Hosted]:
    """The server, which afterwards works as before, holds nothing, and has logged no failure."""
    with fuzzed_server.client() as client, caplog.at_level(logging.ERROR):
        exchange(fuzzed_server, EVENT)
        before_mb = sum(measure_tree(os.getpid()).values())
        yield fuzzed_server
        client.put("/v1/subscriptions/bay", json={"geometry": SQUARE})
        assert client.post("/v1/events", json=point(1, 1)).json()["matches"] >= 1
        wait_until(lambda: all(line in client.get("/metrics").text for line in AT_REST))
        assert sum(measure_tree(os.getpid()).values()) < before_mb + 150
    said = [record.getMessage() for record in caplog.get_records("call")]
    assert not [line for line in said if "unexpected" in line or "Fatal" in line]


REQUESTS = st.builds(write_request, METHODS, PATHS, QUERIES, HEADERS, BODIES, FRAMINGS)


@QUICKLY
@given(request=REQUESTS)
def test_any_request_is_answered_or_ended(still_well: Hosted, request: bytes) -> None:
    check_answers(exchange(still_well, request), request)


NOT_OURS = {"Host", "Connection", "Upgrade", "Expect"}  # headers that may end a connection
PLAIN_REQUESTS = st.builds(
    lambda method, path, query, headers, body: write_request(
        method,
        path,
        query,
        [*((n, v) for n, v in headers if n not in NOT_OURS), ("Connection", "close")],
        body,
        "length",
    ),
    METHODS,
    PATHS,
    QUERIES,
    HEADERS,
    BODIES,
)


@QUICKLY
@given(request=PLAIN_REQUESTS)
def test_a_request_that_is_http_is_answered(still_well: Hosted, request: bytes) -> None:
    heard = exchange(still_well, request, is_over=False)
    assert heard.startswith(b"HTTP/1.1 "), request
    check_answers(heard, request)


def write_frame(opcode: int, flags: int, payload: bytes, is_masked: bool) -> bytes:
    """A frame of a WebSocket."""
    mask = 0x80 if is_masked else 0
    if len(payload) < 126:
        head = struct.pack("!BB", flags | opcode, mask | len(payload))
    else:
        head = struct.pack("!BBH", flags | opcode, mask | 126, len(payload))
    return head + (bytes(4) if is_masked else b"") + payload


KINDS = st.sampled_from("publish read credit ack stop ping".split())
MEMBERS = st.dictionaries(WORDS, TREES, max_size=4)
SPOKEN = st.builds(lambda kind, members: {**members, "type": kind}, KINDS, MEMBERS)
PAYLOADS = st.binary(max_size=150) | (SPOKEN | TREES).map(lambda tree: json.dumps(tree).encode())
SPOKEN_FRAMES = SPOKEN.map(lambda tree: write_frame(1, 0x80, json.dumps(tree).encode(), True))
ODD_FRAMES = st.builds(
    write_frame,
    st.sampled_from([0, 1, 1, 1, 2, 3, 8, 9, 10, 15]),
    st.sampled_from([0x80, 0x80, 0x80, 0, 0x40, 0xC0]),
    PAYLOADS,
    st.sampled_from([True, True, True, False]),
)
HANDSHAKE = (
    b"GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
FRAME_LISTS = st.lists(SPOKEN_FRAMES | ODD_FRAMES, max_size=6)


def talk(server: Hosted, frames: list[bytes]) -> None:
    """Send frames, take leave, and listen to the end: no answer may be a failure of the server."""
    port = int(server.address.rpartition(":")[2])
    heard = b""
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
        connection.sendall(HANDSHAKE)
        while not heard.endswith(b"\r\n\r\n"):
            heard += connection.recv(4_096)
        assert heard.startswith(b"HTTP/1.1 101 ")
        with suppress(ConnectionError):
            connection.sendall(b"".join(frames) + write_frame(8, 0x80, b"\x03\xe8", True))
            while piece := connection.recv(65_536):
                heard += piece
    for status in re.findall(rb'"status":(\d{3})', heard):
        assert int(status) < 500 or int(status) in ANSWERED, (frames, heard)


@QUICKLY
@given(frames=FRAME_LISTS)
def test_any_frames_of_a_socket_are_answered_or_ended(
    still_well: Hosted, frames: list[bytes]
) -> None:
    talk(still_well, frames)


@pytest.mark.parametrize("opcode", [1, 2])
def test_a_text_that_is_not_utf8_closes_a_socket_that_is_being_closed(
    still_well: Hosted, opcode: int
) -> None:
    talk(still_well, [write_frame(opcode, 0x80, b"\xbb", True)])


@pytest.mark.soak
@LONG
@given(request=REQUESTS, frames=FRAME_LISTS)
def test_many_requests_and_frames_are_answered_or_ended(
    still_well: Hosted, request: bytes, frames: list[bytes]
) -> None:
    check_answers(exchange(still_well, request), request)
    talk(still_well, frames)
