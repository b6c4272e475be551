"""The signatures of webhooks, after Standard Webhooks: made by the server, checked by clients.

Three headers come with a body. `webhook-id` names what is sent and stays the same when it is sent
again; `webhook-timestamp` is when it was sent, in seconds since 1970; `webhook-signature` is a
list, separated by spaces, of `v1,` and the HMAC-SHA256 in base64 of `id.timestamp.body`: one for
each secret, so that while a secret is replaced both the old and the new one verify it. A secret is
`whsec_` and 24 to 64 bytes in base64.

This module is shared by a server and its clients and knows neither; it reads no clock unless it is
asked to verify without one.
"""

import base64
import binascii
import hashlib
import hmac
import secrets as randomness
import time
from collections.abc import Iterable, Mapping

from contrada.errors import InvalidInput
from contrada.showing import brief

ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"

_PREFIX, _VERSION = "whsec_", "v1"
_SECRET_BYTES = 32
_SECRET_BYTES_MIN, _SECRET_BYTES_MAX = 24, 64  # as Standard Webhooks has it
_SIGNATURES_MAX = 20  # of one header: each is compared with each secret


def make_secret() -> str:
    """Make a new secret from random bytes."""
    return _PREFIX + base64.b64encode(randomness.token_bytes(_SECRET_BYTES)).decode()


def read_secret(secret: object) -> bytes:
    """Return the key that a secret stands for; no error shows any of it."""
    if not isinstance(secret, str) or not secret.startswith(_PREFIX):
        raise InvalidInput(f"a secret of a webhook is a text that begins with {_PREFIX}")
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX).encode(), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(f"a secret of a webhook is {_PREFIX} and base64") from None
    if not _SECRET_BYTES_MIN <= len(key) <= _SECRET_BYTES_MAX:
        span = f"{_SECRET_BYTES_MIN} to {_SECRET_BYTES_MAX}"
        raise InvalidInput(f"a secret of a webhook has {span} bytes, not {len(key)}")
    return key


def sign_webhook(body: bytes, id: str, timestamp: int, secrets: Iterable[str]) -> dict[str, str]:
    """Return the headers that sign a body with every one of the secrets."""
    assert "." not in id, "a full stop parts id, timestamp and body"
    signatures = [_sign(read_secret(secret), id, str(timestamp), body) for secret in secrets]
    return {
        ID_HEADER: id,
        TIMESTAMP_HEADER: str(timestamp),
        SIGNATURE_HEADER: " ".join(f"{_VERSION},{signature}" for signature in signatures),
    }


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secrets: str | Iterable[str],
    *,
    tolerance_s: float = 300,
    now: float | None = None,
) -> None:
    """Check that a webhook was signed with one of the secrets, and not long ago.

    `body` is the body as it came, byte for byte; names of `headers` may be in any case. A timestamp
    more than `tolerance_s` seconds before or after `now`, the time since 1970 (by default that of
    this machine), is refused, so that what somebody has overheard cannot be sent again later.
    Raises `InvalidInput`: what came must then not be used. Within the tolerance the same
    `webhook-id` may come again, since delivery is at least once.

    >>> from contrada.signatures import make_secret, sign_webhook
    >>> secret, body = make_secret(), b'{"position": "p-7"}'
    >>> headers = sign_webhook(body, "p-7", 1_800_000_000, [secret])
    >>> contrada.verify_webhook(body, headers, secret, now=1_800_000_001)
    >>> contrada.verify_webhook(b"{}", headers, secret, now=1_800_000_001)
    Traceback (most recent call last):
    contrada.errors.InvalidInput: webhook-signature: no signature of the webhook was made ...
    """
    given = {name.lower(): value for name, value in headers.items()}
    sent_as, timestamp, signatures = (
        _require(given, name) for name in (ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
    )
    _check_time(timestamp, tolerance_s, time.time() if now is None else now)
    keys = [read_secret(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise InvalidInput("a webhook cannot be verified without a secret")
    expected = [_sign(key, sent_as, timestamp, body).encode() for key in keys]
    found = [signature.encode() for signature in _read_signatures(signatures)]
    if not any(hmac.compare_digest(one, other) for one in expected for other in found):
        raise InvalidInput(
            "no signature of the webhook was made from this body with a secret that is known here",
            place=SIGNATURE_HEADER,
        )


def _require(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if not value:
        raise InvalidInput(f"a webhook has a header {name}", place=name)
    return value


def _check_time(timestamp: str, tolerance_s: float, now: float) -> None:
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        wrong = f"the time of a webhook is in seconds since 1970, not {brief(timestamp)}"
        raise InvalidInput(wrong, place=TIMESTAMP_HEADER)
    age_s = now - int(timestamp)
    if abs(age_s) > tolerance_s:
        side = "ago" if age_s > 0 else "ahead"
        wrong = f"the webhook was signed {abs(age_s):,.0f} s {side}, not within {tolerance_s:g} s"
        raise InvalidInput(wrong, place=TIMESTAMP_HEADER)


def _read_signatures(text: str) -> list[str]:
    """Return the signatures of the version that is known; those of others are passed over."""
    parts = [part.partition(",") for part in text.split(" ")[:_SIGNATURES_MAX]]
    return [signature for version, _, signature in parts if version == _VERSION]


def _sign(key: bytes, id: str, timestamp: str, body: bytes) -> str:
    mac = hmac.new(key, f"{id}.{timestamp}.".encode(), hashlib.sha256)
    mac.update(body)
    return base64.b64encode(mac.digest()).decode()
