"""Dead letters over HTTP."""

from dataclasses import replace
from typing import Any

import pytest

from contrada.broker.webhook_store import WebhookResult
from server.open_server import SQUARE, OpenServer, collection, point

PATH = "/v1/subscribers/ops/dead-letters"


def refuse(server: OpenServer, position: str) -> None:
    """Let a delivery be what a receiver has refused."""
    webhook = server.broker.webhooks.find("ops", 0.0)
    assert webhook is not None
    state = replace(webhook.state, last_error="answered 422")
    assert server.broker.webhooks.settle(webhook, WebhookResult(state, dead=position)).result()


@pytest.fixture
def positions(server: OpenServer) -> list[str]:
    """Three deliveries that were refused."""
    body = {"webhook": {"url": "http://192.0.2.1/"}}
    made = server.client.put("/v1/subscribers/ops", json=body)
    assert made.json()["secret"].startswith("whsec_")
    server.client.put("/v1/subscriptions/bay", json={"geometry": SQUARE, "subscriber": "ops"})
    server.client.post("/v1/events", json=collection(*(point(1, 1, n=n) for n in range(3))))
    page = server.client.get("/v1/subscribers/ops/deliveries").json()
    found = [delivery["position"] for delivery in page["deliveries"]]
    for position in found:
        refuse(server, position)
    return found


def test_letters_come_in_pages_with_what_was_refused_and_why(
    server: OpenServer, positions: list[str]
) -> None:
    first = server.client.get(PATH, params={"limit": 2}).json()
    assert [letter["delivery"]["position"] for letter in first["dead_letters"]] == positions[:2]
    assert {letter["error"] for letter in first["dead_letters"]} == {"answered 422"}
    assert first["next"] == positions[1]
    rest = server.client.get(PATH, params={"after": first["next"]}).json()
    (letter,) = rest["dead_letters"]
    assert letter["delivery"]["data"]["event"] == point(1, 1, n=2)
    assert letter["due"] is False
    assert rest["next"] is None


def test_letters_are_sent_again_all_or_some(server: OpenServer, positions: list[str]) -> None:
    def due() -> list[bool]:
        return [letter["due"] for letter in server.client.get(PATH).json()["dead_letters"]]

    some = server.client.post(f"{PATH}/redrive", json={"positions": positions[1:2]})
    assert some.json() == {"redriven": 1}
    assert due() == [False, True, False]
    assert server.client.post(f"{PATH}/redrive", json={}).json()["redriven"] == 3
    assert server.client.post(f"{PATH}/redrive").json()["redriven"] == 3
    assert due() == [True, True, True]


@pytest.mark.parametrize(
    "body", [{"positions": "all"}, {"positions": [1]}, {"positions": ["?"]}, {"which": []}, []]
)
def test_a_redrive_of_what_is_none_is_refused(
    server: OpenServer, positions: list[str], body: Any
) -> None:
    assert server.client.post(f"{PATH}/redrive", json=body).status_code == 400


def test_who_has_no_webhook_has_no_letters(server: OpenServer) -> None:
    assert server.client.get(PATH).status_code == 404
    server.client.put("/v1/subscribers/ops", json={})
    assert server.client.get(PATH).json() == {"dead_letters": [], "next": None}
    assert server.client.post(f"{PATH}/redrive", json={}).status_code == 409
