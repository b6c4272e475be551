"""A disk that is full or read-only, and clients that go in mid-body: nothing is lost or made up."""

import gzip
import json
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from contrada.cli import main
from hosted import Hosted, hosted, wait_until
from server.open_server import SQUARE, collection, point
from small_disk import read_only, small_disk

OPS = "/v1/subscribers/ops"
LEAST = 4 * 2**20


@contextmanager
def on_small_disk(tmp_path: Path, *limits: str, megabytes: int = 24) -> Iterator[Any]:
    """A server whose folder is on a small disk, with a subscription of all."""
    with small_disk(tmp_path / "disk", megabytes) as disk:
        with hosted(disk.folder / "data", *limits) as server, server.client() as client:
            want(client)
            yield disk, server, client
        with hosted(disk.folder / "data") as again, again.client() as client:
            assert client.get("/readyz").status_code == 200


def want(client: httpx.Client, name: str = "bay", **more: Any) -> httpx.Response:
    body = {"geometry": SQUARE, "subscriber": "ops", **more}
    return client.put(f"/v1/subscriptions/{name}", json=body)


def publish(client: httpx.Client, *numbers: int, size: int = 0) -> httpx.Response:
    events = [point(1, 1, n=n, text="x" * size) for n in numbers]
    return client.post("/v1/events", json=collection(*events))


def numbers_kept(client: httpx.Client) -> list[int]:
    """The events that wait, page by page."""
    numbers: list[int] = []
    after: dict[str, str] = {}
    while True:
        page = client.get(f"{OPS}/deliveries", params=after).json()
        if not page["deliveries"]:
            return numbers
        numbers += [each["data"]["event"]["properties"]["n"] for each in page["deliveries"]]
        after = {"after": page["next"]}


def is_problem(answer: httpx.Response, status: int) -> bool:
    return bool(answer.status_code == status == answer.json()["status"])


def test_while_a_disk_is_nearly_full_only_cursors_and_deletions_are_stored(tmp_path: Path) -> None:
    with on_small_disk(tmp_path, f"space_bytes_min={LEAST}") as (disk, _, client):
        want(client, "other")
        first = publish(client, 1).json()["position"]
        publish(client, 2)
        disk.fill(LEAST // 2)
        wait_until(lambda: publish(client, 0).status_code == 507)
        before = numbers_kept(client)
        refused = publish(client, 3)
        assert is_problem(refused, 507)
        assert "only cursors and deletions are stored" in refused.json()["detail"]
        assert is_problem(want(client, "more"), 507)
        assert is_problem(client.put("/v1/subscribers/more", json={}), 507)
        rows = client.put("/v1/subscriptions/bay/rows", content=b"{}")
        assert rows.status_code in (400, 507)
        assert client.post(f"{OPS}/ack", json={"position": first}).status_code == 200
        assert client.put(f"{OPS}/cursor", json={"position": first}).status_code == 200
        assert client.delete("/v1/subscriptions/other").status_code == 200
        assert numbers_kept(client) == before[1:]
        disk.empty()
        wait_until(lambda: publish(client, 4).status_code == 200)
        assert want(client, "more").status_code == 201
        assert numbers_kept(client) == [*before[1:], 4]


@pytest.mark.parametrize("is_new", [True, False])
def test_a_folder_that_cannot_be_written_is_refused_in_one_line(
    tmp_path: Path, is_new: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    if is_new:
        data.mkdir()
    else:
        with hosted(data):
            pass
    with read_only(data):
        assert main(["serve", "--data", str(data), "--port", "0"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    *logged, line = err.splitlines()
    assert all(json.loads(each) for each in logged)
    assert line.startswith("contrada: ")
    assert "tenants/default: cannot be used: " in line


def feature_body(count: int) -> bytes:
    return json.dumps(collection(*(point(1, 1, n=n) for n in range(count)))).encode()


def begin_body(body: bytes, is_chunked: bool, is_packed: bool) -> bytes:
    """A request whose body breaks off in its middle."""
    sent = gzip.compress(body) if is_packed else body
    coding = "Content-Encoding: gzip\r\n" if is_packed else ""
    length = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(sent)}"
    head = f"POST /v1/events HTTP/1.1\r\nHost: localhost\r\n{coding}{length}\r\n\r\n".encode()
    if is_chunked:  # all of it but the end
        return head + f"{len(sent):x}\r\n".encode() + sent + b"\r\n"
    return head + sent[:-1]


def test_a_client_that_goes_in_mid_body_stores_nothing(tmp_path: Path) -> None:
    with hosted(tmp_path) as server, server.client() as client:
        want(client)
        for is_chunked, is_packed, is_reset in product([False, True], repeat=3):
            with socket.create_connection(("127.0.0.1", port_of(server)), 30) as connection:
                connection.sendall(begin_body(feature_body(2_000), is_chunked, is_packed))
                wait_until(lambda: "contrada_bodies_bytes 0\n" not in metrics(client))
                if is_reset:
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            wait_until(lambda: "contrada_bodies_bytes 0\n" in metrics(client))
        assert 'contrada_events_total{tenant="default"} 0\n' in metrics(client)
        assert publish(client, 1).json()["accepted"] == 1
        assert numbers_kept(client) == [1]


def metrics(client: httpx.Client) -> str:
    return client.get("/metrics").text


def port_of(server: Hosted) -> int:
    return int(server.address.rpartition(":")[2])
