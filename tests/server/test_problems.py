"""Errors as answers, and limits on bodies that only a real connection can meet."""

import asyncio
import json
import logging
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from contrada.broker.broker import Broker
from contrada.broker.broker_options import BrokerOptions
from contrada.errors import (
    BadRows,
    Conflict,
    Gone,
    InvalidInput,
    NotFound,
    OutOfSpace,
    Overloaded,
    PeerError,
    Unavailable,
)
from contrada.server.application import make_app
from contrada.server.json_answers import write_json
from contrada.server.metrics import THINGS, write_metrics
from contrada.server.problems import (
    HttpRefusal,
    ProblemAnswers,
    answer_problem,
    describe_problem,
)
from contrada.server.server_limits import ServerLimits
from server.open_server import SQUARE, OpenServer, point, serving


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (InvalidInput("wrong"), 400),
        (BadRows("wrong", ["row 1: wrong"], 1), 400),
        (NotFound("none"), 404),
        (Conflict("other"), 409),
        (Gone("gone"), 410),
        (Overloaded("full"), 503),
        (Unavailable("closed"), 503),
        (OutOfSpace("full"), 507),
        (HttpRefusal(401, "key"), 401),
    ],
)
def test_an_error_of_ours_has_a_status_by_who_must_act(fault: Exception, status: int) -> None:
    problem = describe_problem(fault)
    assert problem["status"] == status
    assert problem["type"] == "about:blank"
    assert problem["title"]
    assert problem["detail"]


def test_a_problem_names_the_place_and_the_code() -> None:
    problem = describe_problem(InvalidInput("crosses itself", place="geometry", code="invalid"))
    assert (problem["place"], problem["code"]) == ("geometry", "invalid")
    assert problem["detail"] == "geometry: crosses itself"
    rows = describe_problem(BadRows("2 rows are bad", ["row 1: a", "row 2: b"], 2))
    assert rows["errors"] == [{"detail": "row 1: a"}, {"detail": "row 2: b"}]


def test_who_comes_too_early_is_told_when_to_come_again() -> None:
    answer = answer_problem(Overloaded("full", 2.5))
    assert answer.headers["retry-after"] == "3"


def test_what_nobody_foresaw_says_an_id_under_which_it_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR, "contrada.server"):
        problems = [describe_problem(fault) for fault in (PeerError("odd"), ZeroDivisionError())]
    for problem, record in zip(problems, caplog.records, strict=True):
        assert problem["status"] == 500
        assert problem["id"] in problem["detail"]
        assert problem["id"] in record.getMessage()
        assert record.exc_info


def test_a_failure_inside_a_request_has_no_stack_in_its_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def lose(_: HTTPConnection) -> Broker:
        raise KeyError("/secret/path")

    app = make_app(lose)
    transport = httpx.ASGITransport(app)

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.get("/v1/subscriptions")

    answer = asyncio.run(ask())
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.json()["id"] in caplog.text


def test_a_request_that_a_server_that_stops_cuts_off_is_told_to_come_again() -> None:
    sent: list[Message] = []

    async def hang(_: Scope, receive: Receive, __: Send) -> None:
        await receive()

    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def take(message: Message) -> None:
        sent.append(message)

    async def stop() -> None:
        scope = {"type": "http", "method": "POST", "path": "/v1/events", "headers": []}
        request = asyncio.create_task(ProblemAnswers(hang)(scope, never, take))
        await asyncio.sleep(0)
        request.cancel()
        await request

    asyncio.run(stop())
    head, body = sent
    assert head["status"] == 503
    assert {(b"retry-after", b"1"), (b"content-type", b"application/problem+json")} <= {
        *head["headers"]
    }
    assert json.loads(body["body"])["retry_after_s"] == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("\ud800", b'"\\ud800"'),
        ("ä", '"ä"'.encode()),
        ([1.5, float("nan"), {"a": float("inf")}], b'[1.5,null,{"a":null}]'),
    ],
)
def test_whatever_was_read_can_be_written(value: Any, text: bytes) -> None:
    assert write_json(value) == text


def test_metrics_have_types_and_names_that_prometheus_reads(server: OpenServer) -> None:
    server.client.put("/v1/subscriptions/bay", json={"geometry": SQUARE})
    server.client.post("/v1/events", json=point(1, 1))
    lines = server.client.get("/metrics").text.splitlines()
    assert 'contrada_events_total{tenant="default"} 1' in lines
    assert "# TYPE contrada_events_total counter" in lines
    assert "# HELP contrada_events_total Events that were stored, since the start." in lines
    assert 'contrada_subscriptions{tenant="default"} 1' in lines
    assert "# TYPE contrada_subscriptions gauge" in lines
    assert 'contrada_positions_without_time_total{tenant="default"} 0' in lines
    odd = write_metrics({'a "b"\n': {"a b": 1}, "c": {"a b": 2}}, {"streams": 2.5})
    assert odd.splitlines() == [
        "# HELP contrada_a_b A b.",
        "# TYPE contrada_a_b gauge",
        'contrada_a_b{tenant="a \\"b\\"\\n"} 1',
        'contrada_a_b{tenant="c"} 2',
        "# HELP contrada_streams Streams, sockets and waiting reads that are open.",
        "# TYPE contrada_streams gauge",
        "contrada_streams 2.5",
    ]


def test_all_that_a_broker_counts_has_words(server: OpenServer) -> None:
    assert server.broker.counts().keys() <= THINGS.keys()
    names = [thing.name for thing in THINGS.values()]
    assert len(set(names)) == len(names)


def test_readiness_follows_the_server(tmp_path: Path) -> None:
    is_ready = threading.Event()
    is_ready.set()
    with serving(tmp_path, is_ready=is_ready.is_set) as server:
        assert server.client.get("/readyz").json() == {"status": "ready"}
        is_ready.clear()
        starting = server.client.get("/readyz")
        assert (starting.status_code, starting.json()) == (503, {"status": "starting"})
        assert server.client.get("/healthz").json() == {"status": "alive"}
        server.tell_streams_to_end()
        while server.client.get("/readyz").json() != {"status": "stopping"}:
            pass


def test_a_body_that_does_not_come_is_not_waited_for_long(tmp_path: Path) -> None:
    with serving(tmp_path, ServerLimits(body_idle_s_max=0.05)) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
            answer = b"".join(iter(lambda: connection.recv(2**16), b""))
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == 408
        assert server.app.state.service.bodies.bytes_held == 0


def test_all_bodies_together_take_so_much_memory_and_no_more(tmp_path: Path) -> None:
    with serving(tmp_path, ServerLimits(bodies_bytes_max=1_000)) as server:
        body = json.dumps(point(1, 1, text="x" * 800)).encode()
        head = b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            slow.sendall(head + body[:-1])
            while server.app.state.service.bodies.bytes_held < len(body) - 1:
                assert server.client.get("/healthz").status_code == 200
            refused = server.client.post("/v1/events", content=body)
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            slow.sendall(body[-1:])
            assert slow.recv(2**16).startswith(b"HTTP/1.1 200 ")
        assert server.client.post("/v1/events", content=body).status_code == 200


def test_a_full_disk_is_told_and_deletions_still_go(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.client.put("/v1/subscriptions/bay", json={"geometry": SQUARE})
    options = BrokerOptions(is_durable=False, space_bytes_min=2**60)
    with serving(tmp_path, options=options) as server:
        assert server.client.post("/v1/events", json=point(1, 1)).status_code == 507
        assert server.client.put("/v1/subscriptions/b", json={"filter": "a=1"}).status_code == 507
        assert server.client.put("/v1/settings", json={"object": "ship"}).status_code == 507
        assert server.client.delete("/v1/subscriptions/bay").status_code == 200
