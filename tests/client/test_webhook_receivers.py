"""What a webhook is called with: the receiver of the page, and every kind of body."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

import pytest

import contrada
from contrada.broker.deliveries import Delivery, DeliveryGap
from contrada.broker.webhook_rules import WebhookPhase, WebhookState
from contrada.broker.webhook_store import Webhook
from contrada.client import Client, read_webhook
from contrada.client.received import MissedDeliveries
from contrada.errors import InvalidInput
from contrada.server.webhook_posts import make_deliveries, make_gap, make_ping
from documents import blocks

PAGE_URL = "https://receiver.example/hook"
PATIENCE_S = 30


@contextmanager
def receiving(program: dict[str, Any]) -> Iterator[str]:
    """Serve the function `receive` of a program, which may be defined later."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(program["receive"](body, self.headers))
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook"
        server.shutdown()
        thread.join()


def page_receiver() -> str:
    (code,) = [b.code for b in blocks("docs/client.md", "python") if "def receive(" in b.code]
    assert PAGE_URL in code
    return code


@pytest.mark.parametrize("batch", [1, 10])
def test_the_receiver_of_the_page_becomes_active_and_takes_deliveries(
    client: Client, batch: int
) -> None:
    printed: Queue[Any] = Queue()
    program: dict[str, Any] = {"contrada": contrada, "client": client, "print": printed.put}
    with receiving(program) as url:
        code = page_receiver().replace(PAGE_URL, url)
        exec(re.sub(r"secret=(\w+)", rf"secret=\1, batch={batch}", code), program)
        client.publish([{"hazard": 9, "n": n} for n in range(3)])
        heard = [printed.get(timeout=PATIENCE_S) for _ in range(3)]
    assert heard == [["alarm"]] * 3
    assert client.get_subscriber("alarms")["webhook"]["state"] == WebhookPhase.ACTIVE


def test_the_receiver_of_the_page_refuses_what_is_not_signed() -> None:
    program: dict[str, Any] = {"contrada": contrada, "client": Any, "print": lambda *_: None}
    exec(page_receiver().partition("client.put_sub")[0], program)
    assert program["receive"](b"{}", {}) == 400


WEBHOOK = Webhook("ops", 1, 1, PAGE_URL, 1, (), WebhookState(), "p-1")
DELIVERIES = [
    Delivery(f"p-{n}", json.dumps({"position": f"p-{n}", "data": {"matches": []}}).encode())
    for n in (7, 8)
]


def test_a_ping_brings_nothing() -> None:
    call = read_webhook(make_ping(WEBHOOK).body)
    assert (call.deliveries, call.gap) == ((), None)


@pytest.mark.parametrize("counted", [3, None])
def test_a_gap_is_told(counted: int | None) -> None:
    call = read_webhook(make_gap(WEBHOOK, DeliveryGap("p-6", counted)).body)
    assert (call.deliveries, call.gap) == ((), MissedDeliveries("p-6", counted))


@pytest.mark.parametrize(("batch", "count"), [(1, 1), (10, 1), (10, 2)])
def test_deliveries_are_read_whether_one_by_one_or_in_a_list(batch: int, count: int) -> None:
    post = make_deliveries(replace(WEBHOOK, batch=batch), DELIVERIES[:count])
    positions = [delivery.position for delivery in read_webhook(post.body).deliveries]
    assert positions == ["p-7", "p-8"][:count]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"{",
        b"7",
        b"null",
        b"[7]",
        b"[" * 100_000,
        b'{"type": "contrada.other"}',
        b'{"type": ["contrada.ping"]}',
        b'{"type": "contrada.gap", "data": 7}',
        b'{"type": "contrada.gap", "data": {}}',
        b'{"position": "p-7", "data": {"matches": [{}]}}',
    ],
)
def test_what_no_broker_calls_with_is_invalid(body: bytes) -> None:
    with pytest.raises(InvalidInput, match="the body of the webhook"):
        read_webhook(body)
