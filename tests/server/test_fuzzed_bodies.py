"""Bodies and frames that nobody would send on purpose: each is answered, and none by a failure."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.sync.client import ClientConnection, connect

from server.open_server import SQUARE, OpenServer, point, serving

QUICKLY = settings(
    max_examples=80,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
NAMES = st.sampled_from(
    "type geometry properties id features coordinates geometries specversion source data "
    "data_base64 datacontenttype filter relation where attribute subscriber expires transitions "
    "event why op args kinds dwell webhook url batch position positions time events ref key "
    "credit after".split()
)
WORDS = st.sampled_from(
    "Feature FeatureCollection Point Polygon GeometryCollection 1.0 application/json intersects "
    "T*F**F*** = S_INTERSECTS publish read credit ack stop bay".split()
)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["\ud800", "\x00", "é", "a = ", "2020-01-01T00:00:00Z", 1e400])
    | WORDS
)
VALUES = st.recursive(
    PLAIN | st.just(point(1, 1)) | st.just(SQUARE),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)
MEMBERS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=5)
FEATURES = st.builds(
    lambda feature, more: {**feature, **more},
    st.just(point(1, 1, n=1)),
    st.dictionaries(NAMES, VALUES, max_size=2),
)
KINDS = st.sampled_from(["publish", "read", "credit", "ack", "stop"])
FRAMES = st.builds(lambda kind, members: {**members, "type": kind}, KINDS, MEMBERS)
PLACES = st.sampled_from(
    [
        ("POST", "/v1/events"),
        ("POST", "/v1/match"),
        ("POST", "/v1/explain"),
        ("PUT", "/v1/subscriptions/x"),
        ("PUT", "/v1/subscribers/x"),
        ("PUT", "/v1/subscribers/bay/cursor"),
        ("POST", "/v1/subscribers/bay/ack"),
        ("POST", "/v1/subscribers/bay/dead-letters/redrive"),
    ]
)
TYPES = st.sampled_from(
    "application/json application/geo+json application/cloudevents+json "
    "application/cloudevents-batch+json application/x-ndjson application/geo+json-seq".split()
)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenServer]:
    with serving(tmp_path_factory.mktemp("fuzzed")) as server:
        server.client.put("/v1/subscriptions/bay", json={"geometry": SQUARE})
        yield server
        assert server.client.post("/v1/events", json=point(1, 1)).json()["accepted"] == 1
        assert len(server.client.get("/v1/subscribers/bay/deliveries").json()["deliveries"]) > 0
        assert server.app.state.service.bodies.bytes_held == 0


def send(server: OpenServer, place: tuple[str, str], body: bytes, media_type: str) -> None:
    headers = {"content-type": media_type}
    answer = server.client.request(*place, content=body, headers=headers)
    assert answer.status_code < 500, (place, body, answer.text)
    assert isinstance(answer.json(), dict)


@QUICKLY
@given(place=PLACES, value=VALUES | FEATURES | MEMBERS, media_type=TYPES)
def test_any_json_is_answered(
    fuzzed: OpenServer, place: tuple[str, str], value: Any, media_type: str
) -> None:
    send(fuzzed, place, json.dumps(value).encode(), media_type)


@QUICKLY
@given(place=PLACES, value=FEATURES, media_type=TYPES, data=st.data())
def test_any_bytes_are_answered(
    fuzzed: OpenServer, place: tuple[str, str], value: Any, media_type: str, data: st.DataObject
) -> None:
    body = bytearray(json.dumps(value).encode())
    for _ in range(3):
        begin = data.draw(st.integers(0, len(body)))
        body[begin : begin + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    send(fuzzed, place, bytes(body), media_type)


@pytest.fixture(scope="module")
def fuzzed_socket(fuzzed: OpenServer) -> Iterator[ClientConnection]:
    with connect(fuzzed.socket_url, open_timeout=30) as connection:
        yield connection


@QUICKLY
@given(frame=FRAMES | VALUES)
def test_any_frame_is_answered(fuzzed_socket: ClientConnection, frame: Any) -> None:
    fuzzed_socket.send(json.dumps(frame))
    fuzzed_socket.send(json.dumps({"type": "publish", "events": point(50, 50), "ref": "mine"}))
    while True:
        answer = json.loads(fuzzed_socket.recv(timeout=30))
        if answer["type"] == "error":
            assert answer["problem"]["status"] < 500, (frame, answer)
        if answer.get("ref") == "mine" and answer["type"] == "published":
            return
