"""A burst of events to a thousand streams, and readers who reset, stall and dawdle among others."""

import asyncio
import json
import os
import socket
import struct
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from contrada.broker import Broker, BrokerOptions
from contrada.broker.keys import DEFAULT_TENANT
from contrada.broker.tenant_folders import tenant_folder
from hosted import PATIENCE_S, Hosted, hosted
from process_memory import measure_tree
from server.open_server import SQUARE, collection, point
from server.stream_listeners import ask_for, deliveries_of, listening

STREAMS, BURSTS, EVENTS = 1_000, 2, 8
ALL = list(range(BURSTS * EVENTS))
EACH = 20  # kind of reader who does not read as one should


def port_of(server: Hosted) -> int:
    return int(server.address.rpartition(":")[2])


def want(folder: Path, names: list[str]) -> None:
    """Let each of many subscribers want the same, before there is a server."""
    broker = Broker.open(tenant_folder(folder, DEFAULT_TENANT), BrokerOptions(is_durable=False))
    puts = [broker.put_subscription(name, {"geometry": SQUARE}) for name in names]
    for put in puts:
        put.result()
    broker.close()


async def publish(client: httpx.AsyncClient, numbers: list[int], **more: Any) -> None:
    events = [point(1, 1, n=n, **more) for n in numbers]
    assert (await client.post("/v1/events", json=collection(*events))).status_code == 200


def run(
    folder: Path,
    names: list[str],
    work: Callable[[int, httpx.AsyncClient], Coroutine[Any, Any, None]],
) -> None:
    """Run something beside a server of some subscribers; it must end in time."""
    want(folder, names)

    async def bounded(server: Hosted) -> None:
        client = httpx.AsyncClient(base_url=server.address, trust_env=False, timeout=PATIENCE_S)
        async with asyncio.timeout(2 * PATIENCE_S), client:
            await work(port_of(server), client)

    with hosted(folder) as server:
        asyncio.run(bounded(server))


@pytest.mark.parametrize("subscribers", [1, STREAMS])
def test_each_of_a_thousand_streams_gets_every_delivery_of_a_burst_once_and_in_order(
    tmp_path: Path, subscribers: int
) -> None:
    names = [f"s{number}" for number in range(subscribers)]

    async def work(port: int, client: httpx.AsyncClient) -> None:
        paths = [deliveries_of(names[number % subscribers]) for number in range(STREAMS)]
        async with listening(port, paths) as listeners:
            for burst in range(BURSTS):
                await publish(client, ALL[burst * EVENTS : (burst + 1) * EVENTS])
            await asyncio.gather(*(listener.hear(len(ALL)) for listener in listeners))
            assert all(listener.numbers == ALL for listener in listeners)

    run(tmp_path, names, work)


Reader = Callable[[socket.socket], Coroutine[Any, Any, None]]


async def reset(connection: socket.socket) -> None:
    """End the connection without a word, after a little of it."""
    await asyncio.get_running_loop().sock_recv(connection, 100)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


async def stall(_: socket.socket) -> None:
    """Take nothing."""
    await asyncio.Event().wait()


async def dawdle(connection: socket.socket) -> None:
    """Take a byte now and then."""
    while await asyncio.get_running_loop().sock_recv(connection, 1):
        await asyncio.sleep(0.05)


def socket_requests(subscriber: str) -> list[bytes]:
    """A handshake, and a frame that asks for as many deliveries as may be."""
    handshake = (
        "GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    ask = json.dumps({"type": "read", "subscriber": subscriber, "credit": 100_000}).encode()
    return [handshake.encode(), bytes([0x81, 0x80 | len(ask), 0, 0, 0, 0]) + ask]


async def misbehave(port: int, requests: Sequence[bytes], read: Reader) -> None:
    """Ask for a stream, and then do not read on as one should."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(connection, ("127.0.0.1", port))
        for request in requests:
            await loop.sock_sendall(connection, request)
            await loop.sock_recv(connection, 200)
        await read(connection)


def test_readers_who_reset_stall_and_dawdle_delay_nobody(tmp_path: Path) -> None:
    async def work(port: int, client: httpx.AsyncClient) -> None:
        half = len(ALL) // 2
        for n in ALL[:half]:
            await publish(client, [n], text="x" * 400_000)
        before_mb = measure_tree(os.getpid())
        requests = [[ask_for(deliveries_of("s"))], socket_requests("s")]
        kinds = [(request, read) for request in requests for read in (reset, stall, dawdle)]
        liars = [asyncio.create_task(misbehave(port, *kind)) for kind in EACH * kinds]
        async with listening(port, [deliveries_of("s")] * 5) as listeners:
            await asyncio.gather(*(listener.hear(half) for listener in listeners))
            for n in ALL[half:]:
                await publish(client, [n], text="x" * 400_000)
                await asyncio.gather(*(listener.hear(n + 1) for listener in listeners))
            assert all(listener.numbers == ALL for listener in listeners)
            page = await client.get(deliveries_of("s"), params={"limit": 1})
            assert len(page.json()["deliveries"]) == 1
            assert sum(not liar.done() for liar in liars) == EACH * 4
            grown_mb = sum(measure_tree(os.getpid()).values()) - sum(before_mb.values())
            assert grown_mb < 5 * EACH * 4  # what waits for them is on disk
        for liar in liars:
            liar.cancel()
        faults = await asyncio.gather(*liars, return_exceptions=True)
        assert {type(fault) for fault in faults} <= {type(None), asyncio.CancelledError}
        metrics = (await client.get("/metrics")).text
        assert 'contrada_events_waiting{tenant="default"} 0' in metrics

    run(tmp_path, ["s"], work)
