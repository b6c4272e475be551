"""Events over HTTP, in all the forms in which they may come."""

import gzip
import json
import socket
import zlib
from typing import Any

import httpx
import pytest

from server.open_server import SQUARE, OpenServer, collection, point

BAD = {"type": "Feature", "geometry": {"type": "Point", "coordinates": ["a"]}, "properties": {}}


@pytest.fixture(autouse=True)
def _bay(client: httpx.Client) -> None:
    client.put("/v1/subscriptions/bay", json={"geometry": SQUARE, "subscriber": "ops"})


def deliveries(client: httpx.Client) -> list[Any]:
    page = client.get("/v1/subscribers/ops/deliveries").json()
    return [each["data"]["event"]["properties"] for each in page["deliveries"]]


def cloud(id_: str, feature: Any) -> dict[str, Any]:
    names = {"specversion": "1.0", "id": id_, "source": "/tests", "type": "test"}
    return names | {"data": feature}


def test_a_feature_and_a_collection_are_taken(client: httpx.Client) -> None:
    one = client.post("/v1/events", json=point(1, 1, n=1))
    assert one.status_code == 200
    assert one.json()["accepted"] == one.json()["matches"] == 1
    assert one.json()["errors"] == []
    many = client.post("/v1/events", json=collection(point(2, 2, n=2), point(50, 50, n=3)))
    assert (many.json()["accepted"], many.json()["matches"]) == (2, 1)
    assert deliveries(client) == [{"n": 1}, {"n": 2}]
    assert client.post("/v1/events", json=collection()).json()["accepted"] == 0


def test_lines_are_taken(client: httpx.Client) -> None:
    lines = "\n".join(json.dumps(point(1, 1, n=n)) for n in range(3)) + "\n"
    headers = {"content-type": "application/x-ndjson"}
    answer = client.post("/v1/events", content=lines, headers=headers)
    assert answer.json()["accepted"] == 3
    assert [each["n"] for each in deliveries(client)] == [0, 1, 2]


def test_cloudevents_are_taken_in_all_modes(client: httpx.Client) -> None:
    structured = {"content-type": "application/cloudevents+json"}
    body = json.dumps(cloud("1", point(1, 1, n=1)))
    first = client.post("/v1/events", content=body, headers=structured).json()
    batch = {"content-type": "application/cloudevents-batch+json"}
    body = json.dumps([cloud("1", point(1, 1, n=1)), cloud("2", point(1, 1, n=2))])
    second = client.post("/v1/events", content=body, headers=batch).json()
    assert second["accepted"] == 2
    assert second["repeated"] == 1
    binary = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/tests", "ce-type": "test"}
    third = client.post("/v1/events", json=point(1, 1, n=1), headers=binary).json()
    assert (third["repeated"], third["position"]) == (1, first["position"])
    assert [each["n"] for each in deliveries(client)] == [1, 2]


def test_a_key_makes_a_request_known_when_it_comes_again(client: httpx.Client) -> None:
    body = collection(point(1, 1, n=1), point(1, 1, n=2))
    first = client.post("/v1/events", json=body, headers={"idempotency-key": "k"})
    again = client.post("/v1/events", json=body, headers={"idempotency-key": "k"})
    other = client.post("/v1/events", json=body, headers={"idempotency-key": "l"})
    assert again.status_code == 200
    assert again.json()["position"] == first.json()["position"]
    assert again.json()["repeated"] == 2
    assert "repeated" not in other.json()
    assert len(deliveries(client)) == 4
    long = client.post("/v1/events", json=body, headers={"idempotency-key": "k" * 300})
    assert long.status_code == 400


def test_some_bad_events_are_told_by_index_and_the_others_stored(client: httpx.Client) -> None:
    answer = client.post("/v1/events", json=collection(point(1, 1), BAD, point(2, 2), 5))
    assert answer.status_code == 207
    assert answer.json()["accepted"] == 2
    assert [bad["index"] for bad in answer.json()["errors"]] == [1, 3]
    assert all(bad["detail"] for bad in answer.json()["errors"])


def test_if_all_are_wanted_or_none_one_bad_event_keeps_the_others_out(
    client: httpx.Client,
) -> None:
    body = collection(point(1, 1), BAD)
    answer = client.post("/v1/events", params={"all": "true"}, json=body)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert [bad["index"] for bad in answer.json()["errors"]] == [1]
    assert deliveries(client) == []
    assert client.post("/v1/events?all=perhaps", json=body).status_code == 400


def test_if_all_are_bad_none_is_stored(client: httpx.Client) -> None:
    answer = client.post("/v1/events", json=collection(BAD, BAD))
    assert answer.status_code == 400
    assert [bad["index"] for bad in answer.json()["errors"]] == [0, 1]
    assert answer.json()["accepted"] == 0


@pytest.mark.parametrize(
    "body",
    [b"", b"nothing", b"5", b"null", b'"text"', b'{"type": "FeatureCollection", "features": 5}'],
)
def test_what_holds_no_events_is_refused(client: httpx.Client, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    assert client.post("/v1/events", content=body, headers=headers).status_code == 400


def test_types_and_encodings_that_are_not_read_are_refused(client: httpx.Client) -> None:
    plain = {"content-type": "text/plain"}
    answer = client.post("/v1/events", content=b"{}", headers=plain)
    assert answer.status_code == 415
    assert "application/geo+json" in answer.headers["accept"]
    odd = {"content-encoding": "br"}
    assert client.post("/v1/events", content=b"{}", headers=odd).status_code == 415


@pytest.mark.parametrize("coding", ["gzip", "deflate", "bare"])
def test_compressed_bodies_are_read(client: httpx.Client, coding: str) -> None:
    body = json.dumps(point(1, 1, n=1)).encode()
    if coding == "bare":
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        packed = packer.compress(body) + packer.flush()
    elif coding == "gzip":
        packed = gzip.compress(body[:20]) + gzip.compress(body[20:])
    else:
        packed = zlib.compress(body)
    headers = {
        "content-encoding": coding.replace("bare", "deflate"),
        "content-type": "application/json",
    }
    answer = client.post("/v1/events", content=packed, headers=headers)
    assert answer.json()["accepted"] == 1
    cut = client.post("/v1/events", content=packed[:-9], headers=headers)
    assert cut.status_code == 400


def test_a_bomb_is_refused_before_it_is_large(server: OpenServer) -> None:
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(2**20)) for _ in range(64)) + packer.flush()
    answer = server.client.post("/v1/events", content=bomb, headers=headers)
    assert answer.status_code == 413
    assert server.app.state.service.bodies.bytes_held == 0
    noise = {"content-encoding": "gzip", "content-type": "application/json"}
    answer = server.client.post("/v1/events", content=b"\x1f\x8bnoise" * 50, headers=noise)
    assert answer.status_code == 400


def test_a_body_that_is_too_large_is_refused(server: OpenServer) -> None:
    large = b" " * (server.app.state.service.limits.body_bytes_max + 1)
    stated = server.client.post("/v1/events", content=large)
    assert stated.status_code == 413
    pieces = (large[i : i + 2**16] for i in range(0, len(large), 2**16))
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(
            b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for piece in pieces:
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\n\r\n")
        assert connection.recv(2**16).startswith(b"HTTP/1.1 413 ")
    assert server.client.get("/readyz").status_code == 200


def test_a_client_gone_in_mid_body_has_stored_nothing(server: OpenServer) -> None:
    body = json.dumps(point(1, 1)).encode()
    head = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    for cut in (0, 1, len(body) - 1):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(head % len(body) + body[:cut])
    assert server.client.post("/v1/events", json=point(2, 2)).json()["accepted"] == 1
    counts = server.broker.counts()
    assert counts["events"] == 1
    assert server.app.state.service.bodies.bytes_held == 0
