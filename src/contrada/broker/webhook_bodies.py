"""The body of a subscriber as it is put: nothing, where it reads, or the webhook that is called.

`{"webhook": {"url": …, "secret"?: …, "batch"?: n, "rotate"?: true}}`. Without `secret` the one that
is there stays, and one is made where there is none; `rotate` makes another. `batch` is how many
deliveries a request may have; only with more than one are its bodies lists. Knows no network: which
addresses may be called is for whoever calls them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from contrada.errors import InvalidInput
from contrada.limits import WEBHOOK_BATCH_MAX, WEBHOOK_URL_LENGTH_MAX
from contrada.showing import brief, listed
from contrada.signatures import read_secret

_MEMBERS = ("url", "secret", "batch", "rotate")
_URL_CHARACTERS = re.compile(r"[!-~]+")
_LABEL_LENGTH_MAX = 63  # characters of a host's name between two dots, as DNS has it
_NOT_IN_URLS = re.compile(r'[\\"<>^`{|}#]')


@dataclass(frozen=True, slots=True)
class WebhookBody:
    """A webhook that is wanted: its target, its own secret or None, and the size of batches."""

    url: str
    secret: str | None = None
    batch: int = 1
    rotates: bool = False


def read_subscriber_body(body: Any) -> WebhookBody | None:
    """Read the body of a subscriber; None where it reads and no webhook is called."""
    members = _read_object(body, ("webhook",), "")
    if "webhook" not in members:
        return None
    webhook = _read_object(members["webhook"], _MEMBERS, "webhook")
    if "url" not in webhook:
        raise InvalidInput("a webhook has a url", place="webhook.url")
    secret = webhook.get("secret")
    if secret is not None:
        try:
            read_secret(secret)
        except InvalidInput as fault:
            raise fault.within("webhook.secret") from None
    rotates = webhook.get("rotate", False)
    if not isinstance(rotates, bool) or (rotates and secret is not None):
        wrong = "is true to have a secret made; it does not go with a secret that is given"
        raise InvalidInput(wrong, place="webhook.rotate")
    return WebhookBody(read_url(webhook["url"]), secret, _read_batch(webhook), rotates)


def read_url(url: Any) -> str:
    """Read the target of a webhook: http or https, a host, no name of a user and no fragment."""
    try:
        if not isinstance(url, str) or len(url) > WEBHOOK_URL_LENGTH_MAX:
            longest = f"{WEBHOOK_URL_LENGTH_MAX:,} characters (WEBHOOK_URL_LENGTH_MAX)"
            raise ValueError(f"is not a text of at most {longest}")
        if not _URL_CHARACTERS.fullmatch(url) or _NOT_IN_URLS.search(url):
            raise ValueError("has a character that a URL may not have here")
        parts = _split(url)
        if parts.scheme not in {"http", "https"}:
            raise ValueError("begins neither with http:// nor with https://")
        if not parts.hostname or parts.username is not None or parts.password is not None:
            raise ValueError("has no host, or names a user")
        if parts.port == 0:
            raise ValueError("has the port 0")
    except ValueError as fault:
        raise InvalidInput(f"{brief(url)} {fault}", place="webhook.url") from None
    return url


def _split(url: str) -> SplitResult:
    """Split a URL; what Python says of one that is wrong is not for who has sent it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("has a host in brackets that is not an address of IPv6") from None
    try:
        parts.port  # noqa: B018
    except ValueError:
        raise ValueError("has a port that is not a number up to 65535") from None
    labels = (parts.hostname or "").removesuffix(".").split(".")
    if ":" not in labels[0] and not all(0 < len(label) <= _LABEL_LENGTH_MAX for label in labels):
        raise ValueError(f"has a host with a part that is empty or beyond {_LABEL_LENGTH_MAX}")
    return parts


def _read_batch(webhook: Mapping[str, Any]) -> int:
    batch = webhook.get("batch", 1)
    is_count = isinstance(batch, int) and not isinstance(batch, bool)
    if not is_count or not 1 <= batch <= WEBHOOK_BATCH_MAX:
        span = f"1 to {WEBHOOK_BATCH_MAX:,} (WEBHOOK_BATCH_MAX)"
        raise InvalidInput(
            f"a batch has {span} deliveries, not {brief(batch)}", place="webhook.batch"
        )
    return int(batch)


def _read_object(body: Any, known: tuple[str, ...], place: str) -> Mapping[str, Any]:
    """Return the members of an object that are not null; one that is not known is refused."""
    if not isinstance(body, Mapping):
        what = "a webhook" if place else "a subscriber"
        raise InvalidInput(f"{what} is a JSON object, not {brief(body)}", place=place)
    for name in body:
        if name not in known:
            wrong = f"there is no such member; there is {listed(known)}"
            raise InvalidInput(wrong, place=f"{place}.{brief(name)}".lstrip("."))
    return {name: value for name, value in body.items() if value is not None}
