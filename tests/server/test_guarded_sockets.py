"""The guard of a WebSocket: whoever floods one waits, and nobody else does."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from contrada.broker.broker import Broker
from contrada.server.hosting import Host
from contrada.server.settings import read_settings
from contrada.server.tenants import Tenants
from guarded_app import read_all
from hosted import FEATURE, PATIENCE_S, Hosted, hosted

MASK = b"\0\0\0\0"
EMPTY_OBJECT = b"\x81\x82" + MASK + b"{}"
PING, PONG = b"\x89\x80" + MASK, b"\x8a\x80" + MASK
EMPTY_BEGIN, EMPTY_PART = b"\x01\x80" + MASK, b"\x00\x80" + MASK
BEGIN, PART = b"\x01\x81" + MASK + b"[", b"\x00\x81" + MASK + b"["


@contextmanager
def opened(server: Hosted) -> Iterator[ClientConnection]:
    url = f"ws{server.address.removeprefix('http')}/v1/socket"
    with connect(url, compression=None, open_timeout=PATIENCE_S) as connection:
        yield connection


def publish(number: int) -> str:
    return json.dumps({"type": "publish", "events": FEATURE, "ref": number})


def hear(connection: ClientConnection) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(connection.recv(timeout=PATIENCE_S))
    return frame


@contextmanager
def raw_socket(server: Hosted) -> Iterator[Any]:
    """A socket whose client reads nothing by itself."""
    host, _, port = server.address.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
        connection.sendall(
            b"GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert connection.recv(65_536).startswith(b"HTTP/1.1 101 ")
        yield connection


def test_who_sends_frames_too_fast_waits_and_others_are_served(tmp_path: Path) -> None:
    with hosted(tmp_path, "frames_per_s_max=1") as server, raw_socket(server) as flooding:
        flooding.sendall(EMPTY_OBJECT * 20_000)
        heard = flooding.recv(65_536)
        with server.client() as client:
            assert client.post("/v1/events", json=FEATURE).status_code == 200
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        heard += read_all(flooding)
        stopping.join(PATIENCE_S)
    assert 0 < heard.count(b'"error"') < 1_000


def test_sockets_of_one_caller_share_a_rate(tmp_path: Path) -> None:
    with hosted(tmp_path, "frames_per_s_max=1") as server, raw_socket(server) as first:
        first.sendall(EMPTY_OBJECT * 500)
        heard = first.recv(65_536)
        with raw_socket(server) as second:
            second.sendall(EMPTY_OBJECT * 500)
            stopping = threading.Thread(target=server.stop)
            stopping.start()
            heard = read_all(second)
            stopping.join(PATIENCE_S)
    assert b'"error"' not in heard


def test_a_socket_that_waits_for_its_turn_keeps_its_frames_and_their_order(tmp_path: Path) -> None:
    with hosted(tmp_path, "frames_per_s_max=200") as server, opened(server) as connection:
        for number in range(500):
            connection.send(publish(number))
        assert [hear(connection)["ref"] for _ in range(500)] == list(range(500))
        connection.close()
        assert connection.protocol.close_code == 1000


def test_a_long_frame_comes_whole(tmp_path: Path) -> None:
    with hosted(tmp_path) as server, opened(server) as connection:
        connection.send(publish(1)[:-1] + " " * 500_000 + "}")
        assert hear(connection)["accepted"] == 1
        connection.send([publish(2)[:9], "", publish(2)[9:]])
        assert hear(connection)["ref"] == 2


@pytest.mark.parametrize(
    "frames",
    [PING * 200, PONG * 200, EMPTY_BEGIN + EMPTY_PART * 200, BEGIN + PART * 5_000],
    ids=["pings", "pongs", "empty parts", "tiny parts"],
)
def test_frames_that_nobody_needs_close_the_socket(frames: bytes, tmp_path: Path) -> None:
    with hosted(tmp_path) as server:
        with opened(server) as connection:
            with suppress(ConnectionError):
                connection.socket.sendall(frames)
            with pytest.raises(ConnectionClosed) as closed:
                hear(connection)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
        with opened(server) as connection:
            connection.send(publish(1))
            assert hear(connection)["accepted"] == 1


def test_a_few_pings_are_answered(tmp_path: Path) -> None:
    with hosted(tmp_path) as server, opened(server) as connection:
        for _ in range(20):
            assert connection.ping().wait(PATIENCE_S)


def test_a_socket_takes_no_frame_before_its_tenant_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_asked_for = threading.Event()
    wait_for, open_folder = Tenants.opened, Tenants._open_folder

    async def opened(self: Tenants, tenant: str) -> None:
        is_asked_for.set()
        await wait_for(self, tenant)

    def open_late(self: Tenants, folder: Path) -> Broker:
        assert is_asked_for.wait(PATIENCE_S)
        return open_folder(self, folder)

    async def talk() -> list[str]:
        settings = read_settings({"data": tmp_path, "port": "0"}, None, (), {})
        host = Host(settings, lambda: settings)
        url = f"ws{host.address.removeprefix('http')}/v1/socket"
        running = asyncio.create_task(host.run(lambda _: None))
        try:
            async with connect_async(url, open_timeout=PATIENCE_S) as connection:
                for number in range(20):
                    await connection.send(publish(number))
                return [json.loads(await connection.recv())["type"] for _ in range(20)]
        finally:
            is_asked_for.set()
            host.stop()
            await running

    monkeypatch.setattr(Tenants, "opened", opened)
    monkeypatch.setattr(Tenants, "_open_folder", open_late)
    assert asyncio.run(talk()) == ["published"] * 20
