"""One request to a webhook: what is sent, to whom, and for how long an answer is waited for.

A delivery is sent as it is, a CloudEvent, as `application/cloudevents+json`; several as a list of
them, `application/cloudevents-batch+json`. A *ping* asks a new target whether it wants what will
come, a *gap* tells how many deliveries are no longer kept. All are signed (`contrada.signatures`);
`webhook-id` follows from what is sent, so that it is the same whenever that is sent again.

Whatever a receiver does ends within a time and a few kilobytes: it may refuse connections, stall,
drip bytes, answer with headers or a body without end. Redirects are answers like others and are not
followed; no proxy of the environment is used; nothing of a body is looked at.
"""

import asyncio
import ssl
import time
from base64 import b32encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlsplit

import httpcore

from contrada.broker.deliveries import Delivery, DeliveryGap
from contrada.broker.webhook_rules import (
    RetryTiming,
    WebhookReply,
    WebhookRequest,
    read_retry_after,
)
from contrada.broker.webhook_store import Webhook
from contrada.files.cloudevents import STRUCTURED
from contrada.server.json_answers import write_json
from contrada.server.public_addresses import AddressRules
from contrada.showing import brief_text
from contrada.signatures import sign_webhook

BATCH_CONTENT = "application/cloudevents-batch+json"
PING_TYPE, GAP_TYPE = "contrada.ping", "contrada.gap"


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Which addresses may be called, and how long and how much anything may be."""

    addresses: AddressRules = field(default_factory=AddressRules)
    timing: RetryTiming = field(default_factory=RetryTiming)
    connect_s_max: float = 5.0  # for a name, a connection, and TLS, each
    answer_s_max: float = 30.0  # from the beginning until there is a status
    rest_s_max: float = 1.0  # for the body of the answer
    rest_bytes_max: int = 16_384  # of that body: after more the connection is closed
    request_bytes_max: int = 2**20  # of a batch; one delivery may be more
    unused_s_max: float = 4.0  # of a connection, until it is closed
    fault_s: float = 5.0  # until what the broker itself could not do is tried again
    stop_s_max: float = 3.0  # in which requests under way may end when all ends


@dataclass(frozen=True, slots=True)
class WebhookPost:
    """What is to be sent: how the rules count it, and its body.

    `last` is the position up to which all is done once it is accepted, or that of a dead letter; a
    ping has none. `told` counts the deliveries of which it says that they are no longer kept.
    """

    request: WebhookRequest
    content_type: str
    body: bytes = field(repr=False)
    last: str | None = None
    told: int = 0


def make_ping(webhook: Webhook) -> WebhookPost:
    """Make what a new target must accept before anything else is sent to it."""
    own = _make_id("ping", webhook.subscriber, str(webhook.revision))
    body = _write_event(webhook.subscriber, own, PING_TYPE, {"data": {}})
    return WebhookPost(WebhookRequest(own, is_ping=True), STRUCTURED, body)


def make_gap(webhook: Webhook, gap: DeliveryGap) -> WebhookPost:
    """Make what tells of deliveries that are no longer kept."""
    own = _make_id("gap", webhook.subscriber, gap.until)
    data = {"until": gap.until, "deliveries": gap.deliveries}
    members = {"position": gap.until, "data": data}
    body = _write_event(webhook.subscriber, own, GAP_TYPE, members)
    return WebhookPost(WebhookRequest(own), STRUCTURED, body, gap.until, gap.deliveries or 0)


def make_letter(webhook: Webhook, delivery: Delivery) -> WebhookPost:
    """Make what sends a dead letter again."""
    own = _make_id("dlv", webhook.subscriber, delivery.position, delivery.position)
    request = WebhookRequest(own, is_letter=True)
    return WebhookPost(request, *_write_body(webhook, [delivery]), delivery.position)


def make_deliveries(webhook: Webhook, deliveries: Sequence[Delivery]) -> WebhookPost:
    """Make what sends deliveries in a row."""
    first, last = deliveries[0].position, deliveries[-1].position
    own = _make_id("dlv", webhook.subscriber, first, last)
    request = WebhookRequest(own, count=len(deliveries))
    return WebhookPost(request, *_write_body(webhook, deliveries), last)


def _write_body(webhook: Webhook, deliveries: Sequence[Delivery]) -> tuple[str, bytes]:
    """Write a list where the webhook has batches, however few there are, or else the one."""
    if webhook.batch == 1:
        return STRUCTURED, deliveries[0].json
    return BATCH_CONTENT, b"[" + b",".join(delivery.json for delivery in deliveries) + b"]"


def _make_id(kind: str, *parts: str) -> str:
    digest = sha256("\n".join(parts).encode()).digest()[:15]
    return f"{kind}_{b32encode(digest).decode().lower()}"


def _write_event(subscriber: str, id: str, type: str, members: dict[str, Any]) -> bytes:
    source = f"/v1/subscribers/{quote(subscriber, safe='')}"
    head = {"specversion": "1.0", "id": id, "source": source, "type": type}
    return write_json(head | {"datacontenttype": "application/json"} | members)


class WebhookLine:
    """The connection to one target, which is kept for a moment between two requests."""

    def __init__(
        self,
        url: str,
        options: WebhookOptions,
        backend: httpcore.AsyncNetworkBackend,
        tls: ssl.SSLContext,
    ) -> None:
        """Connect to nobody yet."""
        self.url, self._options = url, options
        self._backend, self._tls = backend, tls
        self._host = urlsplit(url).netloc
        self._connection: httpcore.AsyncHTTPConnection | None = None

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()

    async def _open(self) -> httpcore.AsyncHTTPConnection:
        """Return the connection that is there, or a new one if that cannot be used again."""
        found = self._connection
        if found is not None and not found.has_expired() and found.is_available():
            return found
        await self.close()
        self._connection = httpcore.AsyncHTTPConnection(
            origin=httpcore.URL(self.url).origin,
            ssl_context=self._tls,
            keepalive_expiry=self._options.unused_s_max,
            network_backend=self._backend,
        )
        return self._connection

    async def send(self, post: WebhookPost, secrets: Sequence[str]) -> WebhookReply:
        """Send what is to be sent, and return what came back."""
        signed = sign_webhook(post.body, post.request.id, int(time.time()), secrets)
        headers = {
            "host": self._host,
            "content-type": post.content_type,
            "user-agent": "contrada",
            "accept": "*/*",
            **signed,
        }
        is_sent = False

        async def trace(name: str, _: Any) -> None:
            nonlocal is_sent
            is_sent = is_sent or name == "http11.send_request_body.complete"

        try:
            return await self._exchange(post.body, headers, trace)
        except TimeoutError:
            limit = f"{self._options.answer_s_max:g} s"
            return WebhookReply(problem=f"no answer within {limit}", is_late=is_sent)
        except httpcore.TimeoutException as fault:
            what = "no connection within the time for it"
            return WebhookReply(problem=brief_text(str(fault) or what, 300))
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError, ssl.SSLError) as fault:
            what = brief_text(str(fault) or type(fault).__name__, 300)
            return WebhookReply(problem=f"no answer: {what}")

    async def _exchange(self, body: bytes, headers: dict[str, str], trace: Any) -> WebhookReply:
        """Send a request and wait for a status, then for a moment for the rest of the answer."""
        options = self._options
        times = {"connect": options.connect_s_max}
        extensions: dict[str, Any] = {"timeout": times, "trace": trace}
        request = httpcore.Request(
            "POST",
            self.url,
            headers=[*headers.items(), ("content-length", str(len(body)))],
            content=body,
            extensions=extensions,
        )
        async with asyncio.timeout(options.answer_s_max):
            response = await (await self._open()).handle_async_request(request)
        try:
            await self._read_rest(response)
        finally:
            await response.aclose()
        return _judge(response)

    async def _read_rest(self, response: httpcore.Response) -> None:
        """Read a body that is short and comes soon; what is left closes the connection."""
        nbytes = 0
        try:
            async with asyncio.timeout(self._options.rest_s_max):
                async for part in response.aiter_stream():
                    nbytes += len(part)
                    if nbytes > self._options.rest_bytes_max:
                        return
        except (TimeoutError, httpcore.NetworkError, httpcore.ProtocolError):
            return


def _judge(response: httpcore.Response) -> WebhookReply:
    status = response.status
    if 200 <= status < 300:
        return WebhookReply(status)
    found = {name.lower(): value.decode("latin-1") for name, value in response.headers}
    problem = f"answered {status}"
    if 300 <= status < 400:
        problem += ", a redirect, which is not followed"
    return WebhookReply(status, problem, read_retry_after(found.get(b"retry-after"), time.time()))
