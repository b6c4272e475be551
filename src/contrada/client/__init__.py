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
from contrada.signatures import verify_webhook

__all__ = [
    "AsyncClient",
    "ChangeReceipt",
    "Client",
    "EventFault",
    "MissedDeliveries",
    "PublishReceipt",
    "ReceivedDelivery",
    "ReceivedLetter",
    "ReceivedMatch",
    "ReceivedPage",
    "RefusedEvents",
    "RowsReceipt",
    "WebhookReceipt",
    "read_delivery",
    "verify_webhook",
]
