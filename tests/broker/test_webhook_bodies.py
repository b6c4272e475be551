"""What may be put as the webhook of a subscriber."""

from typing import Any

import pytest

from contrada.broker.webhook_bodies import WebhookBody, read_subscriber_body
from contrada.errors import InvalidInput
from contrada.signatures import make_secret

URL = "https://receiver.example/hook?key=1"
SECRET = make_secret()


def test_without_a_webhook_a_subscriber_reads() -> None:
    assert read_subscriber_body({}) is None
    assert read_subscriber_body({"webhook": None}) is None


def test_a_webhook_has_a_url_and_perhaps_a_secret_and_batches() -> None:
    assert read_subscriber_body({"webhook": {"url": URL}}) == WebhookBody(URL)
    body = {"url": URL, "secret": SECRET, "batch": 1_000, "rotate": None}
    assert read_subscriber_body({"webhook": body}) == WebhookBody(URL, SECRET, 1_000)
    assert read_subscriber_body({"webhook": {"url": URL, "rotate": True}}) == WebhookBody(
        URL, rotates=True
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://a",
        "https://a.example:8443/x/y?z=%20",
        "http://127.0.0.1:8080/",
        "http://[::1]:80/",
        "https://xn--mnchen-3ya.example/",
    ],
)
def test_targets_are_taken_as_they_are(url: str) -> None:
    assert read_subscriber_body({"webhook": {"url": url}}) == WebhookBody(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "receiver.example",
        "ftp://receiver.example/",
        "file:///etc/passwd",
        "gopher://a/",
        "unix:///run/x",
        "https://",
        "https:///path",
        "https://user@receiver.example/",
        "https://user:word@receiver.example/",
        "https://receiver.example/#part",
        "https://receiver.example\\@127.0.0.1/",
        "https://receiver.example/a b",
        "https://receiver.example/\r\nHost: other",
        "https://münchen.example/",
        "https://receiver.example:0/",
        "https://receiver.example:99999/",
        "https://receiver.example:x/",
        "https://[::1/",
        "https://a.example/" + "a" * 2_000,
        "https://[a.example]/",
        "https://" + "a" * 64 + ".example/",
        "https://a..example/",
        "HTTPS",
        5,
        None,
        ["https://a.example/"],
    ],
)
def test_what_is_no_target_is_refused(url: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_subscriber_body({"webhook": {"url": url}})
    assert refused.value.place == "webhook.url"
    for word in ("integer value", "codec", "netloc", "IPv4", "Invalid"):
        assert word not in str(refused.value)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ([], ""),
        ({"webhooks": {}}, "'webhooks'"),
        ({"webhook": URL}, "webhook"),
        ({"webhook": {"url": URL, "method": "GET"}}, "webhook.'method'"),
        ({"webhook": {"url": URL, "batch": 0}}, "webhook.batch"),
        ({"webhook": {"url": URL, "batch": 1_001}}, "webhook.batch"),
        ({"webhook": {"url": URL, "batch": True}}, "webhook.batch"),
        ({"webhook": {"url": URL, "batch": 2.0}}, "webhook.batch"),
        ({"webhook": {"url": URL, "secret": "word"}}, "webhook.secret"),
        ({"webhook": {"url": URL, "secret": 5}}, "webhook.secret"),
        ({"webhook": {"url": URL, "rotate": 1}}, "webhook.rotate"),
        ({"webhook": {"url": URL, "secret": SECRET, "rotate": True}}, "webhook.rotate"),
    ],
)
def test_what_is_no_webhook_is_refused_with_its_place(body: Any, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_subscriber_body(body)
    assert refused.value.place == place
    assert SECRET not in str(refused.value)
