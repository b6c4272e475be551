"""Bodies of requests: each caller has a share of the memory, and so much time."""

import json
import socket
from pathlib import Path

import httpx
from starlette.requests import HTTPConnection

from contrada.server.server_limits import ServerLimits
from guarded_app import guarded, read_all
from hosted import Hosted, hosted
from server.open_server import point, serving

BODY = json.dumps(point(1, 1, text="x" * 800)).encode()
SLOW = ("body_start_s_max=0.1", "body_bytes_per_s_min=1000000")


def name_of(connection: HTTPConnection) -> str:
    return connection.headers.get("who", "")


def head(length: int, path: str = "POST /v1/events", who: str = "") -> bytes:
    lines = [f"{path} HTTP/1.1", "Host: localhost", f"Who: {who}", f"Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_caller_has_its_share_of_the_memory_for_bodies_and_others_theirs(tmp_path: Path) -> None:
    limits = ServerLimits(bodies_of_caller_bytes_max=1_000)
    with serving(tmp_path, limits, account_of=name_of) as server:

        def post(who: str) -> httpx.Response:
            return server.client.post("/v1/events", content=BODY, headers={"who": who})

        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            slow.sendall(head(len(BODY), who="greedy") + BODY[:-1])
            while server.app.state.service.bodies.bytes_held < len(BODY) - 1:
                assert server.client.get("/healthz").status_code == 200
            refused = post("greedy")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert "one caller" in refused.json()["detail"]
            assert post("other").status_code == 200
            slow.sendall(BODY[-1:])
            assert slow.recv(2**16).startswith(b"HTTP/1.1 200 ")
        assert post("greedy").status_code == 200
        assert server.app.state.service.bodies.bytes_held == 0


def send_slowly(server: Hosted, path: str) -> bytes:
    """Begin to send a body, and return what is answered."""
    address = ("127.0.0.1", int(server.address.rpartition(":")[2]))
    with socket.create_connection(address) as connection:
        connection.sendall(head(10**6, path) + b"{")
        return read_all(connection)


def test_a_body_that_comes_slowly_is_refused_after_its_first_seconds(tmp_path: Path) -> None:
    with hosted(tmp_path, *SLOW) as server, server.client() as client:
        for path in ("POST /v1/events", "PUT /v1/subscriptions/lots"):
            assert send_slowly(server, path).startswith(b"HTTP/1.1 408 ")
        rows = send_slowly(server, "PUT /v1/subscriptions/lots/rows")
        assert rows.startswith(b"HTTP/1.1 408 "), rows
        assert client.post("/v1/events", content=BODY).status_code == 200


def test_a_body_in_parts_of_a_few_bytes_ends_its_connection() -> None:
    begin = b"POST /body HTTP/1.1\r\nHost: here\r\nConnection: close\r\n"
    begin += b"Transfer-Encoding: chunked\r\n\r\n"
    with guarded() as server:
        for part, is_taken in ((b"1\r\nx\r\n", False), (b"14\r\n" + b"x" * 20 + b"\r\n", True)):
            with server.connect() as connection:
                connection.sendall(begin + part * 5_000 + b"0\r\n\r\n")
                assert read_all(connection).endswith(b"read") is is_taken
