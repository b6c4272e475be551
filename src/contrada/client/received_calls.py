"""What a webhook is called with: deliveries, one or a list of them, a gap, or a ping."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contrada.client.received import MissedDeliveries, ReceivedDelivery, read_delivery
from contrada.errors import InvalidInput, Unavailable
from contrada.showing import brief

_PING, _GAP = "contrada.ping", "contrada.gap"
_PLACE = "the body of the webhook"


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """What one call of a webhook brings; a ping, which comes first, brings nothing.

    `gap` is what is no longer kept, and then there are no deliveries.
    """

    deliveries: tuple[ReceivedDelivery, ...] = ()
    gap: MissedDeliveries | None = None


def read_webhook(body: bytes) -> ReceivedCall:
    """Read the body of a call that `contrada.verify_webhook` has found to be signed.

    It has a delivery, or several where the webhook was put with a `batch`; or it tells of a gap,
    deliveries that are no longer kept; or it is the ping that comes before all others, which has
    neither and only wants to be answered by 2xx. Raises `InvalidInput` for anything else.

    >>> from contrada.client import read_webhook
    >>> ping = b'{"specversion": "1.0", "type": "contrada.ping", "data": {}}'
    >>> read_webhook(ping).deliveries
    ()
    >>> one = b'{"position": "p-7", "data": {"matches": [{"subscription": "bay"}]}}'
    >>> [delivery.position for delivery in read_webhook(b"[" + one + b"]").deliveries]
    ['p-7']
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"it is not JSON: {fault}", place=_PLACE) from None
    if isinstance(value, list):
        return ReceivedCall(tuple(map(_read_one, value)))
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind == _PING:
        return ReceivedCall()
    if kind == _GAP:
        return ReceivedCall(gap=_read_gap(value))
    return ReceivedCall((_read_one(value),))


def _read_one(value: Any) -> ReceivedDelivery:
    try:
        return read_delivery(value)
    except Unavailable:
        raise _foreign(value) from None


def _read_gap(value: Mapping[str, Any]) -> MissedDeliveries:
    try:
        return MissedDeliveries(value["data"]["until"], value["data"].get("deliveries"))
    except (KeyError, TypeError, AttributeError):
        raise _foreign(value) from None


def _foreign(value: Any) -> InvalidInput:
    return InvalidInput(f"a broker does not call with this: {brief(value)}", place=_PLACE)
