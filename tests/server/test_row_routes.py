"""The rows of collections over HTTP: sent as files, replaced as a whole, named in matches."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pyarrow as pa
import pytest
import shapely
from pyarrow import parquet

from contrada.broker.packing_process import DRAFTS_FOLDER, RowPackers
from contrada.errors import InvalidInput
from contrada.limits import MATCHES_AT_ONCE_MAX
from contrada.server.row_routes import UploadLimits, guess_format, row_routes
from server.open_server import OpenServer, point, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = "/v1/subscriptions/zones/rows"
LINES = {"content-type": "application/x-ndjson"}


def square(west: float, id_: Any, **properties: Any) -> dict[str, Any]:
    """A Feature that is a square of side 1 on the equator."""
    geometry = shapely.geometry.mapping(shapely.box(west, 0, west + 1, 1))
    return {"type": "Feature", "id": id_, "properties": properties, "geometry": geometry}


def lines(*features: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(feature).encode() for feature in features)


def geoparquet(*wests: float) -> bytes:
    geometries = [shapely.box(west, 0, west + 1, 1).wkb for west in wests]
    stated = {"encoding": "WKB", "geometry_types": []}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": stated}}
    table = pa.table({"id": [f"at {west}" for west in wests], "geometry": geometries})
    written = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), written)
    return written.getvalue()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OpenServer]:
    with serving(tmp_path, more_routes=row_routes()) as opened:
        yield opened


@pytest.fixture
def client(server: OpenServer) -> httpx.Client:
    return server.client


def rows_met(client: httpx.Client, *features: dict[str, Any]) -> list[list[Any]]:
    """Publish events, and return the rows that each of those delivered has met."""
    after = client.get("/v1/subscribers/zones").json().get("cursor")
    answer = client.post("/v1/events", json={"type": "FeatureCollection", "features": features})
    assert answer.status_code == 200
    page = client.get("/v1/subscribers/zones/deliveries", params={"after": after}).json()
    client.post("/v1/subscribers/zones/ack", json={"position": page["next"]})
    met = []
    for delivery in page["deliveries"]:
        assert {match["subscription"] for match in delivery["data"]["matches"]} == {"zones"}
        met.append([match["row"] for match in delivery["data"]["matches"]])
    return met


def left_in(folder: Path) -> list[Path]:
    drafts = folder / DRAFTS_FOLDER
    return list(drafts.iterdir()) if drafts.exists() else []


def test_rows_are_put_matched_and_replaced_as_a_whole(client: httpx.Client, tmp_path: Path) -> None:
    first = client.put(ROWS, content=lines(square(0, "a"), square(0.5, "b")), headers=LINES)
    assert (first.status_code, first.json()["count"]) == (201, 2)
    assert rows_met(client, point(0.7, 0.5), point(1.2, 0.5)) == [["a", "b"], ["b"]]
    second = client.put(ROWS, content=geoparquet(0, 3))
    assert (second.status_code, second.json()["count"]) == (200, 2)
    assert rows_met(client, point(0.7, 0.5), point(1.2, 0.5), point(3.5, 0.5)) == [
        ["at 0"],
        ["at 3"],
    ]
    assert left_in(tmp_path) == []


def test_all_but_geometry_and_id_is_the_subscriptions(client: httpx.Client) -> None:
    body = {"where": "speed > 3", "relation": "within"}
    assert client.put("/v1/subscriptions/zones", json=body).status_code == 201
    row = square(0, 7, where="FALSE", relation="no such")
    assert client.put(ROWS, content=lines(row), headers=LINES).status_code == 200
    assert rows_met(client, point(0.5, 0.5, speed=4), point(0.5, 0.5, speed=3)) == [[7]]


@pytest.mark.parametrize("transitions", [False, True])
def test_why_a_collection_matches_is_told_of_its_rows(
    client: httpx.Client, transitions: bool
) -> None:
    body = {"where": "speed > 3", "transitions": transitions}
    client.put("/v1/subscriptions/zones", json=body)

    def why(event: dict[str, Any]) -> Any:
        question = {"event": event, "why": ["zones"]}
        return client.post("/v1/match", json=question).json()["why"]["zones"]

    assert why(point(0.7, 0.5)) == {"matches": False, "count": 0, "of": 0, "rows": []}
    rows = [square(0.5 + west / 100, west) for west in range(20)]
    assert client.put(ROWS, content=lines(*rows), headers=LINES).status_code == 200
    found = why(point(0.7, 0.5, speed=4))
    assert (found["matches"], found["count"], found["of"]) == (True, 20, 20)
    assert [row["row"] for row in found["rows"]] == list(range(10))
    row = found["rows"][3]
    assert row["text"].startswith("3 matches")
    assert [constraint["value"] for constraint in row["filters"][0]] == [True, True]
    assert why(point(0.7, 0.5, speed=3)) == {"matches": False, "count": 0, "of": 20, "rows": []}


def test_very_many_matches_are_counted_and_told_in_parts(client: httpx.Client) -> None:
    client.put("/v1/subscriptions/first", json={"filter": "TRUE"})
    count = MATCHES_AT_ONCE_MAX + 5
    rows = lines(*(square(0, row) for row in range(count)))
    assert client.put(ROWS, content=rows, headers=LINES).json()["count"] == count
    event = point(0.5, 0.5)
    answer = client.post("/v1/match", json=event).json()
    assert answer["count"] == count + 1
    assert len(answer["matches"]) == MATCHES_AT_ONCE_MAX
    rest = client.post("/v1/match", json={"event": event, "after": answer["next"]}).json()
    assert "next" not in rest
    told = answer["matches"] + rest["matches"]
    assert told[0] == {"subscription": "first"}
    assert [match["row"] for match in told[1:]] == list(range(count))


@pytest.mark.parametrize("after", [1, "p-1", "", "9" * 30])
def test_matches_go_on_only_from_what_an_answer_has_said(client: httpx.Client, after: Any) -> None:
    refused = client.post("/v1/match", json={"event": point(0, 0), "after": after})
    assert (refused.status_code, refused.json()["place"]) == (400, "after")


def test_why_is_told_of_a_subscription_with_transitions(client: httpx.Client) -> None:
    client.put("/v1/subscriptions/fast", json={"filter": "speed > 3", "transitions": True})
    question = {"event": point(0, 0, speed=4), "why": ["fast"]}
    answer = client.post("/v1/match", json=question).json()
    assert answer["matches"] == []
    assert answer["why"]["fast"]["matches"]


def test_bad_rows_are_all_told_and_nothing_changes(client: httpx.Client, tmp_path: Path) -> None:
    assert client.put(ROWS, content=lines(square(0, "a")), headers=LINES).status_code == 201
    bad = [square(0, "b"), square(1, "b"), square(2, "c") | {"geometry": None}]
    answer = client.put(ROWS, content=lines(*bad), headers=LINES)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"] == "rows.geojsonl: 2 of 3 subscriptions cannot be used"
    repeated, missing = [error["detail"] for error in answer.json()["errors"]]
    assert repeated == "line 2 (row 1), id 'b': an earlier row has the id 'b', too"
    assert missing.startswith("line 3 (row 2), id 'c', column 'geometry': ")
    assert rows_met(client, point(0.5, 0.5)) == [["a"]]
    assert left_in(tmp_path) == []
    assert len(list((tmp_path / "rows").iterdir())) == 1


@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (b"", {}),
        (b"", LINES),
        (b"", {"content-type": "application/geo+json"}),
        (b'{"type": "FeatureCollection", "features": []}', {}),
    ],
)
def test_nothing_empties_a_collection_but_who_says_so(
    client: httpx.Client, content: bytes, headers: dict[str, str]
) -> None:
    assert client.put(ROWS, content=lines(square(0, "a")), headers=LINES).status_code == 201
    refused = client.put(ROWS, content=content, headers=headers)
    assert refused.status_code == 400
    assert "?empty=true" in refused.json()["detail"]
    assert rows_met(client, point(0.5, 0.5)) == [["a"]]
    emptied = client.put(ROWS, content=content, headers=headers, params={"empty": "true"})
    assert (emptied.status_code, emptied.json().get("count")) == (200, 0)
    assert rows_met(client, point(0.5, 0.5)) == []


def test_beside_rows_a_subscriber_and_an_end_can_be_changed(client: httpx.Client) -> None:
    zones = "/v1/subscriptions/zones"
    body = {"where": "speed > 3", "relation": "within"}
    assert client.put(zones, json=body).status_code == 201
    assert client.get(zones).json()["rows"] == 0
    assert client.put(ROWS, content=lines(square(0, "a")), headers=LINES).status_code == 200
    end = "2120-01-01T00:00:00Z"
    put = client.put(zones, json={**body, "subscriber": "ops", "expires": end})
    assert put.status_code == 200
    shown = client.get(zones).json()
    assert (shown["subscriber"], shown["expires"], shown["rows"]) == ("ops", end, 1)
    assert shown["position"] == put.json()["position"]
    assert shown["rows_time"].startswith("20")
    client.post("/v1/events", json=point(0.5, 0.5, speed=4))
    (delivery,) = client.get("/v1/subscribers/ops/deliveries").json()["deliveries"]
    assert [match["row"] for match in delivery["data"]["matches"]] == ["a"]
    assert client.get("/v1/subscribers/zones/deliveries").json()["deliveries"] == []
    assert client.put(ROWS, content=lines(square(3, "b")), headers=LINES).status_code == 200
    assert client.delete(zones).status_code == 200


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"where": "speed > 5"}, "where"),
        ({"where": None}, "where"),
        ({"relation": "intersects"}, "relation"),
        ({"attribute": "other"}, "attribute"),
        ({"transitions": True}, "transitions"),
        ({"geometry": {"type": "Point", "coordinates": [1, 2]}}, "geometry"),
    ],
)
def test_what_rows_were_packed_with_cannot_be_changed_beside_them(
    client: httpx.Client, changed: dict[str, Any], place: str
) -> None:
    body = {"where": "speed > 3", "relation": "within"}
    client.put("/v1/subscriptions/zones", json=body)
    client.put(ROWS, content=lines(square(0, "a")), headers=LINES)
    refused = client.put("/v1/subscriptions/zones", json=body | changed)
    assert (refused.status_code, refused.json()["place"]) == (409, place)
    assert "delete it and put it and its rows again" in refused.json()["detail"]
    assert client.put("/v1/subscriptions/zones", json=body).json()["changed"] is False


def test_rows_are_numbered_where_none_has_an_id(client: httpx.Client) -> None:
    plain = [{k: v for k, v in square(w, None).items() if k != "id"} for w in (0, 3)]
    assert client.put(ROWS, content=lines(*plain), headers=LINES).json()["count"] == 2
    assert rows_met(client, point(0.5, 0.5), point(3.5, 0.5)) == [[0], [1]]
    some = client.put(ROWS, content=lines(square(0, "a"), plain[1]), headers=LINES)
    assert some.status_code == 400
    table = parquet.read_table(io.BytesIO(geoparquet(0, 3)))
    written = io.BytesIO()
    parquet.write_table(table.drop_columns("id"), written)
    assert client.put(ROWS, content=written.getvalue()).json()["count"] == 2
    assert rows_met(client, point(0.5, 0.5), point(3.5, 0.5)) == [[0], [1]]


def test_a_file_that_is_damaged_ends_nothing(client: httpx.Client) -> None:
    body = bytearray(geoparquet(0, 1, 2))
    body[4:80] = bytes(76)
    answer = client.put(ROWS, content=bytes(body))
    assert answer.status_code == 400
    assert "rows.parquet" in answer.json()["detail"]
    assert client.get("/readyz").status_code == 200


def test_a_subscription_with_a_filter_takes_no_rows(client: httpx.Client) -> None:
    client.put("/v1/subscriptions/zones", json={"filter": "speed > 3"})
    answer = client.put(ROWS, content=b"not even read", headers=LINES)
    assert answer.status_code == 409
    assert "has a filter" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("headers", "status", "words"),
    [
        ({"content-type": "text/csv"}, 415, "rows are not read from 'text/csv', only from"),
        ({"content-encoding": "gzip"}, 415, "content encoding 'gzip'"),
        ({"content-type": "application/octet-stream"}, 400, "neither GeoParquet nor GeoJSON"),
    ],
)
def test_what_is_not_rows_is_refused(
    client: httpx.Client, headers: dict[str, str], status: int, words: str
) -> None:
    answer = client.put(ROWS, content=b"id,geometry", headers=headers)
    assert answer.status_code == status
    assert words in answer.json()["detail"]


@pytest.mark.parametrize("is_stated", [True, False])
def test_a_file_that_is_too_long_is_refused(tmp_path: Path, is_stated: bool) -> None:
    routes = row_routes(limits=UploadLimits(bytes_max=1_000))
    with serving(tmp_path, more_routes=routes) as server:
        body = bytes(2_000)
        content = body if is_stated else iter([body[:900], body[900:]])
        answer = server.client.put(ROWS, content=content, headers=LINES)
    assert answer.status_code == 413
    assert answer.json()["detail"] == "a file of rows has at most 1,000 bytes"


@contextmanager
def sending(server: OpenServer, path: str) -> Iterator[socket.socket]:
    """Begin to send rows, of which the rest does not come yet."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
        connection.sendall(head.encode() + b"Content-Type: application/x-ndjson\r\n\r\n{")
        yield connection


def wait_for_files(folder: Path, count: int) -> None:
    """Return once so many files are on their way."""
    end_s = time.monotonic() + 30
    while len(left_in(folder)) != count:
        assert time.monotonic() < end_s
        time.sleep(0.005)


def test_a_second_file_for_the_same_collection_is_refused_meanwhile(
    server: OpenServer, tmp_path: Path
) -> None:
    with sending(server, ROWS):
        wait_for_files(tmp_path, 1)
        answer = server.client.put(ROWS, content=lines(square(0, "a")), headers=LINES)
        assert answer.status_code == 409
        assert "other rows of 'zones' are on their way" in answer.json()["detail"]
    wait_for_files(tmp_path, 0)  # the client has gone: nothing is stored
    assert server.client.get("/v1/subscriptions/zones").status_code == 404
    assert server.client.put(f"{ROWS}?empty=true", content=b"").status_code == 201


def test_too_many_files_at_one_time_are_refused(tmp_path: Path) -> None:
    routes = row_routes(limits=UploadLimits(uploads_max=1))
    with serving(tmp_path, more_routes=routes) as server, sending(server, ROWS):
        wait_for_files(tmp_path, 1)
        other = "/v1/subscriptions/others/rows"
        answer = server.client.put(other, content=lines(), headers=LINES)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "10"


def test_a_client_that_goes_while_its_rows_are_packed_ends_the_packing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packers = RowPackers(wait_s=60)
    is_waiting = threading.Event()
    pack = packers.pack

    def tell(*arguments: Any) -> Any:
        is_waiting.set()
        return pack(*arguments)

    monkeypatch.setattr(packers, "pack", tell)
    body = lines(square(0, "a"))
    with serving(tmp_path, more_routes=row_routes(packers)) as server, packers._turns:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            head = f"PUT {ROWS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            connection.sendall(head.encode() + b"Content-Type: application/x-ndjson\r\n\r\n" + body)
            assert is_waiting.wait(30)
        wait_for_files(tmp_path, 0)
        assert server.client.get("/v1/subscriptions/zones").status_code == 404


def test_a_server_that_ends_does_not_wait_for_rows(tmp_path: Path) -> None:
    packers = RowPackers(wait_s=60)
    with serving(tmp_path, more_routes=row_routes(packers)) as server, packers._turns:
        answers: list[httpx.Response] = []

        def put() -> None:
            with httpx.Client(base_url=server.url, timeout=30) as client:
                answers.append(client.put(ROWS, content=lines(square(0, "a")), headers=LINES))

        thread = threading.Thread(target=put)
        thread.start()
        wait_for_files(tmp_path, 1)
        server.tell_streams_to_end()
        thread.join(30)
    assert answers[0].status_code == 503
    assert "about to end" in answers[0].json()["detail"]


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        (b"PAR1....", ".parquet"),
        (b'{"type": "FeatureCollection", "features": []}', ".geojson"),
        (b'\xef\xbb\xbf{\n "type": "FeatureCollection"', ".geojson"),
        (b'{"type": "Feature"}\n', ".geojson"),
        (b'{"type": "Feature"}\n{"type": "Feature"}', ".geojsonl"),
        (b'\n\x1e{"type": "Feature"}', ".geojsonl"),
        (b" \n", ".geojsonl"),
    ],
)
def test_the_format_of_a_body_is_seen_from_its_beginning(
    tmp_path: Path, content: bytes, suffix: str
) -> None:
    path = tmp_path / "rows"
    path.write_bytes(content)
    assert guess_format(path) == suffix


def test_a_body_of_no_known_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"geometry")
    with pytest.raises(InvalidInput, match="neither GeoParquet nor GeoJSON"):
        guess_format(path)
