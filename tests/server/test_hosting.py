"""A whole server: bodies in time, sockets and waiting reads at its end, webhooks at its start."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from contrada.errors import InvalidInput
from guarded_app import drip, read_all
from hosted import FEATURE, HERE, PATIENCE_S, Hosted, hosted


def connect_to(server: Hosted) -> socket.socket:
    port = int(server.address.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), PATIENCE_S)


def post_part(length: int, part: bytes) -> bytes:
    """A request whose body has only begun."""
    head = f"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
    return head.encode() + part


def test_a_data_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    with hosted(tmp_path / "a" / "data"):
        assert (tmp_path / "a" / "data").stat().st_mode & 0o077 == 0
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="file: is a file, not a folder"):
        Hosted(tmp_path / "file", {}, [])


def test_a_connection_that_nobody_uses_is_closed(tmp_path: Path) -> None:
    with hosted(tmp_path, "idle_s_max=0.1") as server, connect_to(server) as connection:
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 200 OK")


def test_a_body_that_stops_coming_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    with hosted(tmp_path, "body_idle_s_max=0.1") as server, connect_to(server) as connection:
        connection.sendall(post_part(999, b'{"type": "Feature"'))
        answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"application/problem+json" in answer
        with server.client() as client:
            assert 'contrada_events_total{tenant="default"} 0' in client.get("/metrics").text


def test_a_body_that_comes_a_byte_now_and_then_is_cut_off(tmp_path: Path) -> None:
    with hosted(tmp_path, "body_time_s_max=0.2") as server, connect_to(server) as connection:
        drip(connection, post_part(10**6, b"{"), b" ")


def test_a_server_that_stops_answers_waiting_reads_and_closes_sockets(tmp_path: Path) -> None:
    with hosted(tmp_path) as server, server.client() as client:
        client.put("/v1/subscribers/s", json={})
        answers: Queue[int] = Queue()

        def wait() -> None:
            path = "/v1/subscribers/s/deliveries"
            answers.put(client.get(path, params={"wait": 60}).status_code)

        waiting = threading.Thread(target=wait)
        url = f"{server.address.replace('http', 'ws')}/v1/socket"
        with connect(url, proxy=None) as opened, server.client() as other:
            waiting.start()
            while "contrada_streams 2" not in other.get("/metrics").text:
                pass
            server.call("stop")
            with pytest.raises(ConnectionClosed):
                opened.recv(PATIENCE_S)
        waiting.join()
        assert answers.get() in (200, 503)


def test_limits_of_all_parts_are_read_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    few = ["subscriptions_max=1", "frame_bytes_max=200", "queue_events_max=1"]
    with hosted(tmp_path, *few) as server, server.client() as client:
        url = f"{server.address.replace('http', 'ws')}/v1/socket"
        long = json.dumps({"type": "publish", "events": FEATURE, "key": "k" * 200})

        def put(name: str) -> int:
            return client.put(f"/v1/subscriptions/{name}", json={"filter": "a > 1"}).status_code

        def publish() -> str:
            with connect(url, proxy=None) as opened, suppress(ConnectionClosed):
                opened.send(long)
                return str(json.loads(opened.recv(PATIENCE_S))["type"])
            return "closed"

        assert (put("a"), put("b"), publish()) == (201, 409, "closed")
        server.limits[:] = ["subscriptions_max=2", "repeats_age_s=7"]
        with caplog.at_level("INFO", "contrada.server"):
            server.call("reload")
        assert (put("b"), put("c"), publish()) == (201, 409, "published")
        (line,) = [each for each in caplog.records if each.message == "settings were read again"]
        assert line.__dict__["fields"] == {"after_a_start": ["repeats_age_s"]}


@contextmanager
def receiver(heard: "Queue[bytes]") -> Iterator[str]:
    """Accept whatever is sent."""

    class Accepting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.put(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Accepting) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def test_webhooks_of_every_tenant_are_called_from_the_start_on(tmp_path: Path) -> None:
    heard: Queue[bytes] = Queue()
    with receiver(heard) as url:
        with hosted(tmp_path) as server:
            key = server.add_key("north", "admin", "north")
            with server.client(key) as client:
                client.put("/v1/subscribers/s", json={})
                body = {"geometry": HERE, "subscriber": "s"}
                client.put("/v1/subscriptions/a", json=body)
                refused = client.put("/v1/subscribers/s", json={"webhook": {"url": url}})
                assert refused.status_code == 400
        with (
            hosted(tmp_path, allow_webhook=["127.0.0.0/8"]) as server,
            server.client(key) as client,
        ):
            put = client.put("/v1/subscribers/s", json={"webhook": {"url": url}})
            assert put.status_code < 300
            assert b"contrada.ping" in heard.get(timeout=PATIENCE_S)
        with hosted(tmp_path) as server, server.client(key) as client:
            client.post("/v1/events", json=FEATURE)  # whose address is not allowed any more
        with hosted(tmp_path, allow_webhook=["127.0.0.0/8"]):
            assert b"contrada.delivery" in heard.get(timeout=PATIENCE_S)
