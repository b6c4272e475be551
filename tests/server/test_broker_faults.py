"""A disk that is full or read-only: nothing acknowledged is lost, and all goes on with room."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from hosted import hosted, wait_until
from server.open_server import SQUARE, collection, point
from small_disk import small_disk

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
