"""Rows of collections go out as files, and webhooks come in signed."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import geopandas
import pyarrow as pa
import pytest
import shapely

from contrada.client import AsyncClient, Client, read_delivery, verify_webhook
from contrada.client.collection_rows import packed_rows
from contrada.client.received import read_letter
from contrada.errors import InvalidInput, Unavailable
from contrada.files import read_rows
from contrada.limits import MATCHES_AT_ONCE_MAX
from contrada.signatures import make_secret
from served_broker import ServedBroker

SQUARE = shapely.box(0, 0, 9, 9)
Post = tuple[bytes, dict[str, str]]


@pytest.fixture
def frame() -> geopandas.GeoDataFrame:
    columns = {"id": ["a", "b"], "more": [1, 2]}
    return geopandas.GeoDataFrame(columns, geometry=[SQUARE, shapely.box(20, 0, 29, 9)], crs=4326)


@pytest.mark.parametrize("suffix", [".parquet", ".geojson", ".ndjson"])
def test_a_file_that_a_broker_reads_is_sent_as_it_is(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"zones{suffix}"
    path.write_bytes(b"whatever")
    with packed_rows(str(path)) as (packed, media_type):
        assert packed == path
    assert media_type.startswith("application/")


def test_anything_else_becomes_geoparquet_of_what_a_row_has(
    tmp_path: Path, frame: geopandas.GeoDataFrame
) -> None:
    frame.to_file(tmp_path / "zones.gpkg")
    for source in (frame, tmp_path / "zones.gpkg"):
        with packed_rows(source) as (packed, media_type):
            rows = read_rows(packed)
            assert rows.schema.names == ["id", "geometry"]
            assert [row["id"] for batch in rows.batches() for row in batch.to_pylist()] == [
                "a",
                "b",
            ]
            assert media_type == "application/vnd.apache.parquet"
        assert not packed.exists()


def test_rows_without_a_geometry_are_refused(tmp_path: Path) -> None:
    refused = pytest.raises(InvalidInput, match="need a column 'geometry'")
    with refused, packed_rows(pa.table({"id": ["a"]})):
        pass


class _Receiver(BaseHTTPRequestHandler):
    """Takes whatever comes."""

    posts: Queue[Post]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.posts.put((body, dict(self.headers)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[tuple[str, Queue[Post]]]:
    class Receiver(_Receiver):
        posts: Queue[Post] = Queue()

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", Receiver.posts
        server.shutdown()
        thread.join()


def test_a_webhook_is_verified_and_read_as_a_delivery(
    client: Client, receiver: tuple[str, "Queue[Post]"]
) -> None:
    url, posts = receiver
    secret = make_secret()
    client.put_webhook("ops", url, secret=secret)
    client.put_subscription("gale", "wind > 17", subscriber="ops")
    ping, headers = posts.get(timeout=30)
    verify_webhook(ping, headers, secret)
    client.publish({"wind": 20})
    body, headers = posts.get(timeout=30)
    verify_webhook(body, headers, [make_secret(), secret])
    delivery = read_delivery(json.loads(body))
    assert delivery.matches[0].subscription == "gale"
    with pytest.raises(InvalidInput):
        verify_webhook(body + b" ", headers, secret)


def test_a_secret_that_the_broker_makes_is_in_the_receipt_and_in_no_repr(
    client: Client, receiver: tuple[str, "Queue[Post]"]
) -> None:
    url, posts = receiver
    receipt = client.put_webhook("ops", url, batch=10)
    assert receipt.secret is not None
    assert receipt.secret not in repr(receipt)
    verify_webhook(*posts.get(timeout=30), receipt.secret)
    assert client.put_webhook("ops", url, batch=10).secret is None
    assert client.put_webhook("ops", url, rotate=True).secret not in {None, receipt.secret}


def test_a_dead_letter_says_what_was_refused_and_why() -> None:
    delivery = {"position": "p-7", "data": {"matches": [{"subscription": "gale"}]}}
    letter = {"error": "answered 422", "time": "2026-03-02T08:00:00Z", "due": True}
    read = read_letter(letter | {"delivery": delivery})
    assert (read.delivery.position, read.error, read.is_due) == ("p-7", "answered 422", True)
    with pytest.raises(Unavailable):
        read_letter(letter)


def test_rows_are_matched_and_named(client: Client, frame: geopandas.GeoDataFrame) -> None:
    client.put_subscription("zones", relation="contains", where="wind > 17", subscriber="ops")
    receipt = client.put_rows(
        "zones", frame.assign(geometry=shapely.centroid(frame.geometry.to_numpy()))
    )
    assert (receipt.count, receipt.is_new) == (2, False)
    assert client.publish({"geometry": SQUARE, "wind": 20}).matches == 1
    (delivery,) = client.deliveries("ops").deliveries
    assert [(match.subscription, match.row) for match in delivery.matches] == [("zones", "a")]
    assert client.put_rows("new", frame).is_new
    assert [match.row for match in client.match(shapely.Point(25, 5))] == ["b"]


def test_a_collection_loses_all_its_rows_only_if_that_is_said(
    client: Client, served: ServedBroker, frame: geopandas.GeoDataFrame, tmp_path: Path
) -> None:
    client.put_rows("zones", frame)
    none = tmp_path / "none.ndjson"
    none.write_bytes(b"")
    for rows in (frame[:0], none):
        with pytest.raises(InvalidInput, match="empty"):
            client.put_rows("zones", rows)
    assert client.get_subscription("zones")["rows"] == 2
    assert client.put_rows("zones", frame[:0], empty=True).count == 0
    assert client.match(shapely.Point(25, 5)) == []

    async def empty() -> int | None:
        async with AsyncClient(served.url, timeout_s=10) as other:
            assert (await other.put_rows("zones", frame, empty=True)).count == 2
            return (await other.put_rows("zones", none, empty=True)).count

    assert asyncio.run(empty()) == 0


def test_very_many_matches_are_all_asked_for(client: Client) -> None:
    count = MATCHES_AT_ONCE_MAX + 5
    client.put_rows("zones", pa.table({"geometry": ["POINT(1 1)"] * count}))
    assert [match.row for match in client.match(shapely.Point(1, 1))] == list(range(count))


def test_a_bad_row_is_refused_and_nothing_changes(
    client: Client, frame: geopandas.GeoDataFrame
) -> None:
    client.put_rows("zones", frame)
    bow = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])
    with pytest.raises(InvalidInput, match="row 1"):
        client.put_rows("zones", frame.assign(geometry=[SQUARE, bow]))
    assert [match.row for match in client.match(shapely.Point(25, 5))] == ["b"]
