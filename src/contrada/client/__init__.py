"""What talks to a broker: clients, and the verification of webhooks; needs no server package."""

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
