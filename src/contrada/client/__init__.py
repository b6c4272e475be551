"""What talks to a broker: clients, and the verification of webhooks; needs no server package."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contrada.client.awaiting import AsyncClient
    from contrada.client.blocking import Client
    from contrada.client.received import (
        ChangeReceipt,
        EventFault,
        MissedDeliveries,
        PublishReceipt,
        ReceivedDelivery,
        ReceivedLetter,
        ReceivedMatch,
        ReceivedPage,
        RefusedEvents,
        RowsReceipt,
        WebhookReceipt,
        read_delivery,
    )
    from contrada.client.received_calls import ReceivedCall, read_webhook
    from contrada.signatures import make_secret, verify_webhook

__all__ = [
    "AsyncClient",
    "ChangeReceipt",
    "Client",
    "EventFault",
    "MissedDeliveries",
    "PublishReceipt",
    "ReceivedCall",
    "ReceivedDelivery",
    "ReceivedLetter",
    "ReceivedMatch",
    "ReceivedPage",
    "RefusedEvents",
    "RowsReceipt",
    "WebhookReceipt",
    "make_secret",
    "read_delivery",
    "read_webhook",
    "verify_webhook",
]

# Each is loaded when it is first used: a webhook can be verified without a client, which is slow
# to load.
_HOMES = {
    "AsyncClient": "contrada.client.awaiting",
    "ChangeReceipt": "contrada.client.received",
    "Client": "contrada.client.blocking",
    "EventFault": "contrada.client.received",
    "MissedDeliveries": "contrada.client.received",
    "PublishReceipt": "contrada.client.received",
    "ReceivedCall": "contrada.client.received_calls",
    "ReceivedDelivery": "contrada.client.received",
    "ReceivedLetter": "contrada.client.received",
    "ReceivedMatch": "contrada.client.received",
    "ReceivedPage": "contrada.client.received",
    "RefusedEvents": "contrada.client.received",
    "RowsReceipt": "contrada.client.received",
    "WebhookReceipt": "contrada.client.received",
    "make_secret": "contrada.signatures",
    "read_delivery": "contrada.client.received",
    "read_webhook": "contrada.client.received_calls",
    "verify_webhook": "contrada.signatures",
}


def __getattr__(name: str) -> Any:
    """Load what is public when somebody first asks for it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # the next time nobody asks here
    return value


def __dir__() -> list[str]:
    """List what is public."""
    return __all__
