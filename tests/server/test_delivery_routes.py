"""Deliveries over HTTP: pages, waits, and streams of server-sent events."""

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from contrada.server.problems import HttpRefusal
from contrada.server.server_limits import ServerLimits
from server.open_server import SQUARE, OpenServer, collection, point, serving

PATH = "/v1/subscribers/ops/deliveries"
QUICK = ServerLimits(heartbeat_s=0.05, recheck_s=0.02)


@pytest.fixture(autouse=True)
def _bay(request: pytest.FixtureRequest) -> None:
    if "client" in request.fixturenames:
        want(request.getfixturevalue("client"))


def want(client: httpx.Client) -> None:
    client.put("/v1/subscriptions/bay", json={"geometry": SQUARE, "subscriber": "ops"})


def publish(client: httpx.Client, *numbers: int) -> str:
    body = collection(*(point(1, 1, n=n) for n in numbers))
    position: str = client.post("/v1/events", json=body).json()["position"]
    return position


def numbers_of(page: Any) -> list[int]:
    return [each["data"]["event"]["properties"]["n"] for each in page["deliveries"]]


@contextmanager
def streaming(server: OpenServer, **headers: str) -> Iterator[Iterator[dict[str, str]]]:
    """The events of a stream, each as its fields."""
    headers = {"accept": "text/event-stream", **headers}
    with server.client.stream("GET", PATH, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield events_of(answer.iter_lines())


def events_of(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": " if line[0] != ":" else " ")
            fields[name] = value
        elif fields:
            yield fields
            fields = {}


def only_data(events: Iterator[dict[str, str]]) -> Iterator[dict[str, str]]:
    return (event for event in events if "data" in event)


def test_reading_moves_no_cursor(client: httpx.Client) -> None:
    publish(client, 1, 2, 3)
    first = client.get(PATH, params={"limit": 2}).json()
    assert numbers_of(first) == [1, 2]
    assert first["next"] == first["deliveries"][-1]["position"]
    rest = client.get(PATH, params={"after": first["next"]}).json()
    assert numbers_of(rest) == [3]
    assert numbers_of(client.get(PATH).json()) == [1, 2, 3]
    assert client.get(PATH, params={"after": rest["next"]}).json()["deliveries"] == []


def test_a_delivery_is_a_cloudevent_with_the_event_and_its_matches(client: httpx.Client) -> None:
    position = publish(client, 1)
    (delivery,) = client.get(PATH).json()["deliveries"]
    assert delivery["id"] == delivery["position"] == position
    assert delivery["specversion"] == "1.0"
    assert delivery["source"] == "/v1/subscribers/ops"
    match = {"subscription": "bay", "relation": "intersects"}
    assert delivery["data"] == {"event": point(1, 1, n=1), "matches": [match]}


def test_a_wait_ends_with_a_delivery_or_in_time(client: httpx.Client) -> None:
    assert client.get(PATH, params={"wait": 0.01}).json()["deliveries"] == []
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(client.get, PATH, params={"wait": 30})
        publish(client, 7)
        assert numbers_of(waiting.result().json()) == [7]


def test_who_waits_for_one_subscriber_is_not_answered_with_anothers(client: httpx.Client) -> None:
    other = {"filter": "n = 1", "subscriber": "other"}
    client.put("/v1/subscriptions/other", json=other)
    page = client.get("/v1/subscribers/other/deliveries").json()
    with ThreadPoolExecutor(1) as threads:
        query = {"wait": 30, "after": page["next"]}
        waiting = threads.submit(client.get, "/v1/subscribers/other/deliveries", params=query)
        for n in (5, 4, 3, 2, 1):
            publish(client, n)
        assert numbers_of(waiting.result().json()) == [1]


@pytest.mark.parametrize(
    "query",
    "limit=0 limit=x limit=1_0 wait=-1 wait=nan wait=x wait=1_0 wait=inf wait=+1 wait= a=1".split(),
)
def test_wrong_queries_are_refused(client: httpx.Client, query: str) -> None:
    assert client.get(f"{PATH}?{query}").status_code == 400


def test_readers_of_what_is_not_there_are_refused(client: httpx.Client) -> None:
    stream = {"accept": "text/event-stream"}
    for headers in ({}, stream):
        nobody = client.get("/v1/subscribers/nobody/deliveries", headers=headers)
        assert nobody.status_code == 404
        assert nobody.headers["content-type"] == "application/problem+json"
        assert client.get(PATH, params={"after": "x"}, headers=headers).status_code == 400
        strange = {"after": "aaaaaaaa-1"}
        assert client.get(PATH, params=strange, headers=headers).status_code == 410


def test_a_stream_begins_with_what_is_there_and_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        want(server.client)
        publish(server.client, 1, 2)
        with streaming(server) as events, httpx.Client(base_url=server.url) as other:
            wanted = only_data(events)
            first, second = next(wanted), next(wanted)
            assert json.loads(first["data"])["position"] == first["id"]
            position = publish(other, 3)
            third = next(wanted)
            assert third["id"] == position
        with streaming(server, **{"last-event-id": second["id"]}) as events:
            assert next(only_data(events)) == third


def test_a_stream_has_signs_of_life_that_move_its_place(tmp_path: Path) -> None:
    with serving(tmp_path, QUICK) as server:
        want(server.client)
        with streaming(server) as events:
            assert next(events) == {"retry": "1000"}
            beat = next(events)
            assert beat[":"] == "heartbeat"
            position = server.client.post("/v1/events", json=point(50, 50)).json()["position"]
            while beat.get("id") != position:
                beat = next(events)
                assert "data" not in beat


def test_streams_end_when_the_server_stops(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        want(server.client)
        with ThreadPoolExecutor(1) as threads, streaming(server) as events:
            next(events)
            wait = {"wait": 60}
            page = server.client.get(PATH).json()
            waiting = threads.submit(
                server.client.get, PATH, params={**wait, "after": page["next"]}
            )
            server.tell_streams_to_end()
            assert list(only_data(events)) == []
            assert waiting.result().status_code in (200, 503)
            assert server.client.get("/readyz").status_code == 503


def test_a_reader_that_takes_nothing_holds_up_nobody_and_can_be_ended(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        want(server.client)
        large = point(1, 1, n=1, text="x" * 100_000)
        with socket.create_connection(("127.0.0.1", server.port)) as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            head = f"GET {PATH} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"
            stalled.sendall(head.encode())
            stalled.recv(100)
            for _ in range(20):
                body = collection(*[large] * 10)
                assert server.client.post("/v1/events", json=body).status_code == 200
            assert len(server.client.get(PATH, params={"limit": 500}).json()["deliveries"]) > 0
            server.tell_streams_to_end()


def test_streams_that_nobody_reads_any_more_are_forgotten(tmp_path: Path) -> None:
    with serving(tmp_path, QUICK) as server:
        want(server.client)
        for _ in range(3):
            with streaming(server) as events:
                next(events)
        with streaming(server) as events:
            streams = server.app.state.service.streams
            while len(streams) > 1:
                next(events)
            assert server.broker.counts()["readers_waiting"] == 1


def test_only_so_many_streams_are_open(tmp_path: Path) -> None:
    with serving(tmp_path, ServerLimits(streams_max=1)) as server:
        want(server.client)
        with streaming(server) as events:
            next(events)
            refused = server.client.get(PATH, headers={"accept": "text/event-stream"})
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert server.client.get(PATH).status_code == 200


def test_a_stream_ends_with_the_key_that_opened_it(tmp_path: Path) -> None:
    is_revoked = threading.Event()

    def check_scope(*_: object) -> None:
        if is_revoked.is_set():
            raise HttpRefusal(401, "the key is gone")

    with serving(tmp_path, QUICK, check_scope=check_scope) as server:
        want(server.client)
        with streaming(server) as events:
            next(events)
            is_revoked.set()
            (last,) = only_data(events)
        assert last["event"] == "problem"
        assert json.loads(last["data"])["status"] == 401
        assert server.client.get(PATH).status_code == 401


def test_a_stream_ends_with_its_subscriber(tmp_path: Path) -> None:
    with serving(tmp_path, QUICK) as server:
        want(server.client)
        with streaming(server) as events:
            next(events)
            server.client.delete("/v1/subscribers/ops")
            (last,) = only_data(events)
        assert last["event"] == "problem"
        assert json.loads(last["data"])["status"] == 404


def test_many_streams_hear_of_a_burst_in_order(tmp_path: Path) -> None:
    with serving(tmp_path) as server, ThreadPoolExecutor(20) as threads:
        want(server.client)

        def listen() -> list[int]:
            heard = []
            with httpx.Client(base_url=server.url, timeout=30) as client:
                stream = {"accept": "text/event-stream"}
                with client.stream("GET", PATH, headers=stream) as answer:
                    for event in only_data(events_of(answer.iter_lines())):
                        heard.append(json.loads(event["data"])["data"]["event"]["properties"]["n"])
                        if len(heard) == 300:
                            return heard
            return heard

        listening = [threads.submit(listen) for _ in range(20)]
        for begin in range(0, 300, 30):
            publish(server.client, *range(begin, begin + 30))
        assert all(each.result() == list(range(300)) for each in listening)
