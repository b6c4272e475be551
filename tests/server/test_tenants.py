"""Tenants: nothing of one is seen, changed or even found by another."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from contrada.broker.broker import Broker
from contrada.broker.tenant_folders import list_tenants, tenant_folder
from contrada.errors import InvalidInput, Unavailable
from hosted import FEATURE, HERE, hosted


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, httpx.Client]]:
    """A client of each of two tenants, with everything by the same names."""
    with hosted(tmp_path_factory.mktemp("tenants")) as server:
        keys = {name: server.add_key(name, "admin", name) for name in ("north", "south")}
        with server.client(keys["north"]) as north, server.client(keys["south"]) as south:
            yield {"north": north, "south": south}


def test_what_one_tenant_has_the_other_does_not(clients: dict[str, httpx.Client]) -> None:
    north, south = clients["north"], clients["south"]
    body = {"geometry": HERE, "subscriber": "s"}
    assert north.put("/v1/subscriptions/only-north", json=body).status_code == 201
    assert south.get("/v1/subscriptions/only-north").status_code == 404
    assert south.delete("/v1/subscriptions/only-north").status_code == 404
    assert south.get("/v1/subscriptions").json()["subscriptions"] == []
    assert south.get("/v1/subscribers/s").status_code == 404
    assert south.get("/v1/subscribers/s/deliveries").status_code == 404
    assert south.post("/v1/events", json=FEATURE).json()["matches"] == 0
    assert north.get("/v1/subscribers/s/deliveries").json()["deliveries"] == []
    assert north.get("/v1/subscriptions/only-north").status_code == 200


def test_metrics_show_the_tenant_of_the_key_and_all_to_the_default_one(tmp_path: Path) -> None:
    def metrics(headers: dict[str, str]) -> list[str]:
        with server.client(headers) as client:
            answer = client.get("/metrics")
        assert answer.status_code == 200
        return [line for line in answer.text.splitlines() if not line.startswith("#")]

    with hosted(tmp_path) as server:
        north, whole = server.add_key("n", "admin", "north"), server.add_key("all", "admin")
        with server.client(north) as client:
            client.post("/v1/events", json=FEATURE)
        own, seen = metrics(north), metrics(whole)
        assert 'contrada_events_total{tenant="north"} 1' in own
        assert 'contrada_webhook_requests_failed_total{tenant="north"} 0' in own
        assert all('{tenant="north"}' in line for line in own)
        assert {line.split(" ")[0] for line in own} < {line.split(" ")[0] for line in seen}
        assert 'contrada_events_total{tenant="north"} 1' in seen
        assert 'contrada_events_total{tenant="default"} 0' in seen
        assert "contrada_connections 1" in seen
        assert "contrada_connections_refused_total 0" in seen
        with server.client(server.add_key("reader", "subscribe")) as client:
            assert client.get("/metrics").status_code == 403


def test_a_position_of_one_tenant_means_nothing_to_the_other(
    clients: dict[str, httpx.Client],
) -> None:
    north, south = clients["north"], clients["south"]
    position = north.put("/v1/subscribers/reader", json={}).json()["position"]
    assert south.put("/v1/subscribers/reader", json={}).status_code == 201
    for client, expected in ((north, {200}), (south, {400, 410})):
        answer = client.get("/v1/subscribers/reader/deliveries", params={"after": position})
        assert answer.status_code in expected
        answer = client.post("/v1/subscribers/reader/ack", json={"position": position})
        assert answer.status_code in expected


def test_a_repeat_is_known_in_its_own_tenant_alone(clients: dict[str, httpx.Client]) -> None:
    headers = {"Idempotency-Key": "one"}
    answers = [
        clients[name].post("/v1/events", json=FEATURE, headers=headers).json()["position"]
        for name in ("north", "north", "south")
    ]
    assert answers[0] == answers[1] != answers[2]


@pytest.mark.parametrize(
    "name", ["../south", "..%2Fsouth", "south/../../x", "%2e%2e", "tenants/south"]
)
def test_no_name_leads_out_of_a_tenant(name: str, clients: dict[str, httpx.Client]) -> None:
    north, south = clients["north"], clients["south"]
    before = south.get("/v1/subscriptions").json()
    assert north.put("/v1/subscriptions/own", json={"geometry": HERE}).status_code < 300
    for path in (f"/v1/subscriptions/{name}", f"/v1/subscribers/{name}"):
        assert north.put(path, json={"geometry": HERE}).status_code < 500
    headers = {"X-Tenant": "south", "Tenant": "south"}
    found = north.get("/v1/subscriptions", headers=headers).json()
    assert found == north.get("/v1/subscriptions").json() != before
    assert south.get("/v1/subscriptions").json() == before


def test_a_tenant_whose_folder_cannot_be_opened_troubles_no_other(tmp_path: Path) -> None:
    with hosted(tmp_path) as server:
        bad, good = (server.add_key(name, "admin", name) for name in ("bad", "good"))
        folder = tenant_folder(tmp_path, "bad")
        blocking = Broker.open(folder)
        try:
            with server.client(good) as client:
                answer = client.get("/v1/subscriptions", headers=bad)
                assert answer.status_code == 503
                assert str(tmp_path) not in answer.text
                assert client.get("/v1/subscriptions").status_code == 200
        finally:
            blocking.close()
        with server.client(bad) as client:
            assert client.get("/v1/subscriptions").status_code == 200
        assert list(list_tenants(tmp_path)) == ["bad", "default", "good"]


def test_a_folder_that_somebody_else_serves_is_refused(tmp_path: Path) -> None:
    with hosted(tmp_path), pytest.raises(Unavailable, match="another broker"), hosted(tmp_path):
        pass


def test_a_folder_that_is_no_tenant_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tenants" / "Lost + found").mkdir(parents=True)
    (tmp_path / "tenants" / "north").mkdir()
    assert list(list_tenants(tmp_path)) == ["north"]
    assert list(list_tenants(tmp_path / "none")) == []
    with pytest.raises(InvalidInput):
        tenant_folder(tmp_path, "..")
