"""Signatures of webhooks: what verifies, and all that must not."""

import base64

import pytest

from contrada.errors import InvalidInput
from contrada.signatures import make_secret, read_secret, sign_webhook, verify_webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = make_secret()
BODY = b'{"test": 2432232314}'
AT = 1614265330
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"


def test_a_signature_is_the_one_that_other_libraries_make() -> None:
    headers = sign_webhook(BODY, ID, AT, [SECRET])
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_what_is_signed_verifies_with_names_of_headers_in_any_case() -> None:
    headers = sign_webhook(BODY, ID, AT, [SECRET])
    verify_webhook(BODY, headers, SECRET, now=AT + 299)
    verify_webhook(BODY, {name.title(): text for name, text in headers.items()}, [SECRET], now=AT)


def test_while_a_secret_is_replaced_old_and_new_verify() -> None:
    headers = sign_webhook(BODY, ID, AT, [OTHER, SECRET])
    for secrets in (OTHER, SECRET, [make_secret(), SECRET]):
        verify_webhook(BODY, headers, secrets, now=AT)


def test_signatures_of_another_version_are_passed_over() -> None:
    headers = sign_webhook(BODY, ID, AT, [SECRET])
    foreign = "v1a,AAAA nonsense " + headers["webhook-signature"]
    verify_webhook(BODY, headers | {"webhook-signature": foreign}, SECRET, now=AT)
    only_foreign = headers["webhook-signature"].replace("v1,", "v1a,")
    with pytest.raises(InvalidInput):
        verify_webhook(BODY, headers | {"webhook-signature": only_foreign}, SECRET, now=AT)


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "another"},
        {"webhook-timestamp": str(AT + 1)},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "-5"},
        {"webhook-timestamp": "9" * 5_000},
        {"webhook-timestamp": "١٦١٤٢٦٥٣٣٠"},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,ü"},
        {"webhook-signature": ""},
        {"webhook-id": ""},
    ],
)
def test_what_was_changed_on_the_way_is_refused(change: dict[str, str]) -> None:
    headers = sign_webhook(BODY, ID, AT, [SECRET]) | change
    with pytest.raises(InvalidInput):
        verify_webhook(BODY, headers, SECRET, now=AT)


def test_another_body_or_secret_is_refused() -> None:
    headers = sign_webhook(BODY, ID, AT, [SECRET])
    for body, secret in ((BODY + b" ", SECRET), (BODY, OTHER)):
        with pytest.raises(InvalidInput, match="no signature"):
            verify_webhook(body, headers, secret, now=AT)


def test_a_header_that_is_missing_is_named() -> None:
    headers = sign_webhook(BODY, ID, AT, [SECRET])
    for name in headers:
        with pytest.raises(InvalidInput, match=name):
            verify_webhook(BODY, {k: v for k, v in headers.items() if k != name}, SECRET, now=AT)


def test_a_webhook_of_long_ago_or_ahead_is_refused() -> None:
    headers = sign_webhook(BODY, ID, AT, [SECRET])
    with pytest.raises(InvalidInput, match="signed 301 s ago"):
        verify_webhook(BODY, headers, SECRET, now=AT + 301)
    with pytest.raises(InvalidInput, match="signed 301 s ahead"):
        verify_webhook(BODY, headers, SECRET, now=AT - 301)
    verify_webhook(BODY, headers, SECRET, now=AT + 3_000, tolerance_s=3_600)
    with pytest.raises(InvalidInput, match="ago"):
        verify_webhook(BODY, headers, SECRET)


@pytest.mark.parametrize(
    "secret", ["", "sec_AAAA", "whsec_", "whsec_ü", "whsec_AAAA", "whsec_AAA", None, 5]
)
def test_a_secret_that_is_none_is_refused_and_never_shown(secret: object) -> None:
    with pytest.raises(InvalidInput, match="a secret of a webhook") as refused:
        read_secret(secret)
    assert "AAA" not in str(refused.value)


def test_secrets_differ_and_have_bytes_enough() -> None:
    assert len({make_secret() for _ in range(100)}) == 100
    assert len(read_secret(make_secret())) == 32
    with pytest.raises(InvalidInput, match="24 to 64"):
        read_secret("whsec_" + base64.b64encode(bytes(65)).decode())


def test_without_any_secret_nothing_verifies() -> None:
    with pytest.raises(InvalidInput, match="without a secret"):
        verify_webhook(BODY, sign_webhook(BODY, ID, AT, [SECRET]), [], now=AT)
