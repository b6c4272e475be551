"""The WebSocket: publishing and receiving on one connection."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from contrada.broker.broker_options import BrokerOptions
from contrada.server.problems import HttpRefusal
from contrada.server.server_limits import ServerLimits
from server.open_server import SQUARE, OpenServer, collection, point, serving


class Talk:
    """A socket that says and hears JSON."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def say(self, kind: str, **members: Any) -> None:
        self.connection.send(json.dumps({"type": kind, **members}))

    def hear(self, kind: str | None = None) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(self.connection.recv(timeout=30))
        assert kind is None or frame["type"] == kind, frame
        return frame

    def ask(self, kind: str, **members: Any) -> dict[str, Any]:
        self.say(kind, **members)
        return self.hear()


@contextmanager
def talking(server: OpenServer) -> Iterator[Talk]:
    with connect(server.socket_url, compression=None, open_timeout=30) as connection:
        yield Talk(connection)


@pytest.fixture
def talk(server: OpenServer) -> Iterator[Talk]:
    want(server)
    with talking(server) as opened:
        yield opened


def want(server: OpenServer) -> None:
    server.client.put("/v1/subscriptions/bay", json={"geometry": SQUARE, "subscriber": "ops"})


def numbers_of(page: Any) -> list[int]:
    return [each["data"]["event"]["properties"]["n"] for each in page["deliveries"]]


def test_events_are_published_and_answered_when_they_are_on_disk(talk: Talk) -> None:
    answer = talk.ask("publish", events=point(1, 1, n=1), ref="a")
    position = answer.pop("position")
    published = {"accepted": 1, "matches": 1, "errors": []}
    assert answer == {"type": "published", "ref": "a", **published}
    page = talk.ask("read", subscriber="ops", credit=5)
    assert page["type"] == "reading"
    assert talk.hear("deliveries")["next"] == position


def test_events_of_one_socket_keep_their_order(talk: Talk) -> None:
    talk.ask("read", subscriber="ops", credit=1_000)
    for n in range(300):
        talk.say("publish", events=point(1, 1, n=n), ref=n)
    refs: list[int] = []
    heard: list[int] = []
    while len(heard) < 300 or len(refs) < 300:
        frame = talk.hear()
        if frame["type"] == "published":
            refs.append(frame["ref"])
        else:
            heard += numbers_of(frame)
    assert refs == heard == list(range(300))


def test_no_more_is_sent_than_there_is_credit_for(talk: Talk) -> None:
    talk.ask("publish", events=collection(*(point(1, 1, n=n) for n in range(10))))
    talk.ask("read", subscriber="ops", credit=3)
    assert numbers_of(talk.hear("deliveries")) == [0, 1, 2]
    assert talk.ask("ack", subscriber="ops", position="nonsense")["type"] == "error"
    talk.say("credit", subscriber="ops", credit=4)
    assert numbers_of(talk.hear("deliveries")) == [3, 4, 5, 6]
    assert talk.ask("stop", subscriber="ops") == {"type": "stopped", "subscriber": "ops"}
    error = talk.ask("credit", subscriber="ops", credit=4)
    assert error["problem"]["status"] == 400
    assert error["subscriber"] == "ops"


def test_an_ack_moves_the_cursor_and_a_read_begins_there(talk: Talk, server: OpenServer) -> None:
    first = talk.ask("publish", events=point(1, 1, n=1))["position"]
    talk.ask("publish", events=point(1, 1, n=2))
    acked = talk.ask("ack", subscriber="ops", position=first, ref=9)
    assert acked == {"type": "acked", "ref": 9, "subscriber": "ops", "position": first}
    assert server.client.get("/v1/subscribers/ops").json()["cursor"] == first
    talk.ask("read", subscriber="ops", credit=10)
    page = talk.hear("deliveries")
    assert numbers_of(page) == [2]
    talk.ask("read", subscriber="ops", credit=10, after=first)
    assert talk.hear("deliveries") == page


def test_one_socket_reads_several_subscribers(talk: Talk, server: OpenServer) -> None:
    other = {"filter": "n = 2", "subscriber": "other"}
    server.client.put("/v1/subscriptions/other", json=other)
    for name in ("ops", "other"):
        assert talk.ask("read", subscriber=name, credit=10)["subscriber"] == name
    talk.say("publish", events=point(1, 1, n=1))
    talk.say("publish", events=point(50, 50, n=2))
    heard: dict[str, list[int]] = {}
    while len(heard) < 2:
        frame = talk.hear()
        if frame["type"] == "deliveries":
            heard[frame["subscriber"]] = numbers_of(frame)
    assert heard == {"ops": [1], "other": [2]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("nonsense", "not JSON"),
        ("[" * 10_000, "nested"),
        ("5", "JSON object"),
        ('{"type": 5}', "type: 5 is not one of publish"),
        ('{"type": "shout"}', "'shout'"),
        ('{"type": "publish"}', "events: it is missing"),
        ('{"type": "publish", "events": 5}', "event 0: "),
        ('{"type": "publish", "events": {}, "colour": 1}', "colour"),
        ('{"type": "publish", "events": {}, "all": 1}', "all"),
        ('{"type": "publish", "events": {}, "key": ""}', "key"),
        ('{"type": "publish", "events": {}, "ref": {}}', "ref"),
        ('{"type": "publish", "events": {}, "ref": 1e400}', "ref"),
        ('{"type": "read", "subscriber": "ops"}', "credit: it is missing"),
        ('{"type": "read", "subscriber": "ops", "credit": 0}', "credit"),
        ('{"type": "read", "subscriber": "ops", "credit": true}', "credit"),
        ('{"type": "read", "subscriber": 7, "credit": 1}', "subscriber"),
        ('{"type": "read", "subscriber": "nobody", "credit": 1}', "nobody"),
        ('{"type": "read", "subscriber": "ops", "credit": 1, "after": "?"}', "not a position"),
        ('{"type": "ack", "subscriber": "ops"}', "position"),
        ('{"type": "stop"}', "subscriber"),
    ],
)
def test_a_bad_frame_is_answered_and_the_socket_stays_open(
    talk: Talk, text: str, words: str
) -> None:
    talk.connection.send(text)
    error = talk.hear("error")
    assert words in error["problem"]["detail"]
    assert 400 <= error["problem"]["status"] < 500
    assert talk.ask("publish", events=point(1, 1, n=1))["accepted"] == 1


def test_an_answer_to_a_bad_frame_has_its_ref(talk: Talk) -> None:
    talk.connection.send(json.dumps({"type": "publish", "ref": "r 1", "event": point(1, 1)}))
    error = talk.hear("error")
    assert error["ref"] == "r 1"
    assert "'event': unknown" in error["problem"]["detail"]


def test_bytes_are_read_as_text(talk: Talk) -> None:
    talk.connection.send(json.dumps({"type": "publish", "events": point(1, 1)}).encode())
    assert talk.hear()["accepted"] == 1
    talk.connection.send(b"\xff\xfe")
    assert "not UTF-8" in talk.hear("error")["problem"]["detail"]


def test_bad_events_are_told_by_index(talk: Talk) -> None:
    answer = talk.ask("publish", events=collection(point(1, 1), 5), ref=1)
    assert answer["accepted"] == 1
    assert [bad["index"] for bad in answer["errors"]] == [1]
    error = talk.ask("publish", events=collection(point(1, 1), 5), ref=2, all=True)
    assert error["ref"] == 2
    assert [bad["index"] for bad in error["problem"]["errors"]] == [1]
    assert (
        "not finite"
        in talk.ask("publish", events=point(1, 1, n=float("nan")))["problem"]["errors"][0]["detail"]
    )


def test_a_key_makes_a_frame_known_when_it_comes_again(talk: Talk) -> None:
    first = talk.ask("publish", events=point(1, 1, n=1), key="k")
    again = talk.ask("publish", events=point(1, 1, n=1), key="k")
    assert again["repeated"] == 1
    assert again["position"] == first["position"]


def test_a_full_broker_makes_the_socket_wait_and_loses_no_order(tmp_path: Path) -> None:
    options = BrokerOptions(is_durable=False, queue_events_max=1)
    with serving(tmp_path, options=options) as server:
        want(server)
        with talking(server) as talk:
            for n in range(20):
                talk.say("publish", events=point(1, 1, n=n), ref=n)
            assert [talk.hear("published")["ref"] for _ in range(20)] == list(range(20))
            talk.ask("read", subscriber="ops", credit=100)
            assert numbers_of(talk.hear("deliveries")) == list(range(20))


def test_a_frame_that_is_too_long_ends_the_socket(tmp_path: Path) -> None:
    with serving(tmp_path, ServerLimits(frame_bytes_max=1_000)) as server:
        with talking(server) as talk:
            talk.say("publish", events=point(1, 1, text="x" * 2_000))
            with pytest.raises(ConnectionClosed) as closed:
                talk.hear()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
        assert server.client.get("/readyz").status_code == 200


def test_a_socket_is_told_when_the_server_stops(server: OpenServer) -> None:
    want(server)
    with talking(server) as talk:
        talk.ask("read", subscriber="ops", credit=10)
        server.tell_streams_to_end()
        with pytest.raises(ConnectionClosed) as closed:
            talk.hear()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
    with pytest.raises(InvalidStatus) as refused:
        connect(server.socket_url)
    assert refused.value.response.status_code == 503


def test_a_socket_may_do_what_its_key_may(tmp_path: Path) -> None:
    allowed = {"subscribe"}

    def check_scope(_: object, scope: str) -> None:
        if not allowed:
            raise HttpRefusal(401, "the key is gone")
        if scope not in allowed:
            raise HttpRefusal(403, f"no scope {scope}")

    limits = ServerLimits(recheck_s=0.02)
    with serving(tmp_path, limits, check_scope=check_scope) as server:
        want(server)
        with talking(server) as talk:
            assert talk.ask("publish", events=point(1, 1))["problem"]["status"] == 403
            assert talk.ask("read", subscriber="ops", credit=1)["type"] == "reading"
            allowed.clear()
            with pytest.raises(ConnectionClosed) as closed:
                talk.hear()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
        with pytest.raises(InvalidStatus) as refused:
            connect(server.socket_url)
        assert refused.value.response.status_code == 401
        assert json.loads(refused.value.response.body or b"")["detail"] == "the key is gone"


def test_a_read_ends_with_its_subscriber(tmp_path: Path) -> None:
    with serving(tmp_path, ServerLimits(heartbeat_s=0.02)) as server:
        want(server)
        with talking(server) as talk:
            talk.ask("read", subscriber="ops", credit=1)
            server.client.delete("/v1/subscribers/ops")
            error = talk.hear("error")
            assert (error["subscriber"], error["problem"]["status"]) == ("ops", 404)
            assert talk.ask("credit", subscriber="ops", credit=1)["problem"]["status"] == 400


def test_a_client_that_takes_nothing_holds_up_nobody(server: OpenServer) -> None:
    want(server)
    with talking(server) as stalled, talking(server) as talk:
        stalled.say("read", subscriber="ops", credit=1_000)
        text = "x" * 50_000
        for n in range(100):
            assert talk.ask("publish", events=point(1, 1, n=n, text=text))["accepted"] == 1
        heard: list[int] = []
        while len(heard) < 100:
            frame = stalled.hear()
            if frame["type"] == "deliveries":
                heard += numbers_of(frame)
        assert heard == list(range(100))


def test_sockets_that_break_off_are_forgotten(server: OpenServer) -> None:
    want(server)
    is_gone = threading.Event()
    for _ in range(3):
        with talking(server) as talk:
            talk.ask("read", subscriber="ops", credit=10)
            talk.connection.socket.close()
    with talking(server) as talk:
        while len(server.app.state.service.streams) > 1 and not is_gone.wait(0.01):
            talk.ask("publish", events=point(1, 1, n=1))
    assert server.client.get("/readyz").status_code == 200


def test_unknown_query_parameters_of_a_socket_are_refused(server: OpenServer) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(f"{server.socket_url}?key=secret")
    assert refused.value.response.status_code == 400
