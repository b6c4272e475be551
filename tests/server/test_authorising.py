"""Keys: what each scope allows, where one is read, and what a change of them does at once."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from contrada.broker.keys import KeyFile
from contrada.errors import InvalidInput
from contrada.server.authorising import KeysAtWork
from hosted import FEATURE, HERE, Hosted, hosted, wait_until

ROUTES = [
    ("POST", "/v1/events", "publish"),
    ("PUT", "/v1/subscriptions/a", "subscribe"),
    ("GET", "/v1/subscriptions", "subscribe"),
    ("GET", "/v1/subscriptions/a", "subscribe"),
    ("DELETE", "/v1/subscriptions/a", "subscribe"),
    ("PUT", "/v1/subscriptions/a/rows", "subscribe"),
    ("GET", "/v1/subscribers", "subscribe"),
    ("PUT", "/v1/subscribers/s", "subscribe"),
    ("GET", "/v1/subscribers/s", "subscribe"),
    ("DELETE", "/v1/subscribers/s", "subscribe"),
    ("GET", "/v1/subscribers/s/deliveries", "subscribe"),
    ("POST", "/v1/subscribers/s/ack", "subscribe"),
    ("PUT", "/v1/subscribers/s/cursor", "subscribe"),
    ("GET", "/v1/subscribers/s/dead-letters", "subscribe"),
    ("POST", "/v1/subscribers/s/dead-letters/redrive", "subscribe"),
    ("POST", "/v1/match", "subscribe"),
    ("POST", "/v1/explain", "subscribe"),
    ("GET", "/v1/settings", "subscribe"),
    ("PUT", "/v1/settings", "admin"),
    ("GET", "/metrics", "admin"),
]
OPEN = ("/", "/docs", "/openapi.json", "/healthz", "/readyz")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with hosted(tmp_path_factory.mktemp("keys")) as server:
        yield server


@pytest.fixture(scope="module")
def keys(server: Hosted) -> dict[str, dict[str, str]]:
    keys = {scope: server.add_key(scope, scope) for scope in ("publish", "subscribe", "admin")}
    with server.client() as client:
        for key in keys.values():  # which count at once, and from then on are needed
            assert client.get("/readyz", headers=key).status_code == 200
    return keys


def test_every_route_that_needs_a_key_is_tested_here(server: Hosted) -> None:
    routes = [route for route in server.host.routes if isinstance(route, Route)]
    assert len(routes) > 15
    for route in routes:
        for method in (route.methods or set()) - {"HEAD"}:
            tested = any(
                method == asked and route.path_regex.match(path) for asked, path, _ in ROUTES
            )
            assert tested or route.path in OPEN, (method, route.path)


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES)
def test_a_route_is_open_to_its_scope_and_to_admin_alone(
    method: str, path: str, scope: str, server: Hosted, keys: dict[str, dict[str, str]]
) -> None:
    with server.client() as client:
        answers = {
            name: client.request(method, path, headers=keys[name], content=b"no JSON")
            for name in keys
        }
    refused = {name for name, answer in answers.items() if answer.status_code == 403}
    assert refused == keys.keys() - {scope, "admin"}
    assert all(answer.status_code < 500 for answer in answers.values())


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES)
def test_without_a_key_that_counts_nothing_is_open(
    method: str, path: str, scope: str, server: Hosted, keys: dict[str, dict[str, str]]
) -> None:
    token = keys["admin"]["Authorization"].removeprefix("Bearer ")
    wrong: list[dict[str, str]] = [
        {},
        {"Authorization": token},
        {"Authorization": f"Basic {token}"},
        {"Authorization": f"Bearer {token[:-1]}"},
        {"Authorization": f"Bearer {token}{token}"},
        {"X-Api-Key": token},
        {"Cookie": f"key={token}"},
    ]
    with server.client() as client:
        for headers in wrong:
            answer = client.request(method, path, headers=headers, content=b"{}")
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert token not in answer.text
        for name in ("key", "token", "access_token", "authorization"):
            assert client.request(method, path, params={name: token}).status_code == 401
        twice = [("Authorization", f"Bearer {token}")] * 2
        assert client.request(method, path, headers=twice).status_code == 401


def test_how_it_is_and_how_to_use_it_are_open_to_everybody(
    server: Hosted, keys: dict[str, dict[str, str]]
) -> None:
    with server.client() as client:
        for path in OPEN:
            assert client.get(path).status_code == 200


def test_a_socket_needs_a_key_too(server: Hosted, keys: dict[str, dict[str, str]]) -> None:
    with server.client() as client:
        asked = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        }
        assert client.get("/v1/socket", headers=asked).status_code == 401


def test_a_key_is_asked_for_as_soon_as_there_is_one_and_even_after_the_last(tmp_path: Path) -> None:
    with hosted(tmp_path) as server, server.client() as client:
        assert client.get("/v1/subscriptions").status_code == 200
        key = server.add_key("first", "subscribe")
        wait_until(lambda: client.get("/v1/subscriptions").status_code == 401)
        assert client.get("/v1/subscriptions", headers=key).status_code == 200
        server.keys.revoke("first")
        wait_until(lambda: client.get("/v1/subscriptions", headers=key).status_code == 401)
        assert client.get("/v1/subscriptions").status_code == 401


def read_on(socket: ClientConnection) -> None:
    while True:
        socket.recv()


def test_a_revoked_key_ends_what_is_open_with_it_and_nothing_else(tmp_path: Path) -> None:
    with hosted(tmp_path) as server:
        lost, kept = server.add_key("lost", "admin"), server.add_key("kept", "admin")
        with server.client(lost) as client, server.client(kept) as other:
            assert client.put("/v1/subscribers/s", json={}).status_code == 201
            path, sse = "/v1/subscribers/s/deliveries", {"Accept": "text/event-stream"}
            url = f"{server.address.replace('http', 'ws')}/v1/socket"
            with (
                client.stream("GET", path, headers=sse) as stream,
                other.stream("GET", path, headers=sse) as other_stream,
                connect(url, additional_headers=lost, proxy=None) as socket,
            ):
                assert stream.status_code == other_stream.status_code == 200
                server.keys.revoke("lost")
                for _ in stream.iter_raw():  # it ends
                    pass
                with pytest.raises(ConnectionClosed):
                    read_on(socket)
                subscription = {"geometry": HERE, "subscriber": "s"}
                assert other.put("/v1/subscriptions/a", json=subscription).status_code == 201
                assert other.post("/v1/events", json=FEATURE).json()["matches"] == 1
                assert any("contrada.delivery" in text for text in other_stream.iter_text())


def test_a_damaged_file_of_keys_changes_nothing_until_it_is_mended(tmp_path: Path) -> None:
    with hosted(tmp_path) as server, server.client() as client:
        key = server.add_key("first", "subscribe")
        wait_until(lambda: client.get("/v1/subscriptions").status_code == 401)
        content = server.keys.path.read_text()
        server.keys.path.write_text("{")
        server.call("reload")
        assert client.get("/v1/subscriptions", headers=key).status_code == 200
        server.keys.path.write_text(content.replace('"subscribe"', '"publish"'))
        wait_until(lambda: client.get("/v1/subscriptions", headers=key).status_code == 403)


def test_a_key_may_only_ask_so_often_and_others_do_not_suffer(tmp_path: Path) -> None:
    with hosted(tmp_path, "requests_per_s_max=1") as server:
        first, second = server.add_key("first", "admin"), server.add_key("second", "admin")
        with server.client() as client:

            def ask(key: dict[str, str]) -> httpx.Response:
                return client.get("/v1/subscriptions", headers=key)

            wait_until(lambda: ask(first).status_code == 429)
            answer = ask(first)
            assert answer.headers["retry-after"] == "1"
            assert answer.json()["status"] == 429
            assert ask(second).status_code == 200
            assert client.get("/readyz").status_code == 200


def test_other_machines_may_connect_only_if_there_is_a_key(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="contrada key add NAME --scope admin --data"):
        Hosted(tmp_path, {"host": "0.0.0.0"}, [])


def test_beyond_loopback_a_key_is_needed_even_if_somebody_takes_the_file_away(
    tmp_path: Path,
) -> None:
    file = KeyFile(tmp_path)
    file.add("a", ["admin"], "default", datetime.now(UTC))
    beyond = KeysAtWork(file, is_loopback=False)
    here = KeysAtWork(file, is_loopback=True)
    file.path.unlink()
    for keys in (beyond, here):
        keys.look()
        assert len(keys.keyring) == 0
    assert (beyond.are_required, here.are_required) == (True, False)
