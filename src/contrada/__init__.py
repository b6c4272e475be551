"""Contrada: spatial publish/subscribe for Python.

Subscribers register predicates over attributes and geometry; each event reaches every
subscription that it satisfies, exactly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contrada.client.awaiting import AsyncClient
    from contrada.client.blocking import Client
    from contrada.errors import ContradaError, InvalidInput, Unavailable
    from contrada.matcher import Matcher, explain, relate
    from contrada.matcher.tracker import Tracker
    from contrada.model.relation import Relation
    from contrada.model.subscription import Subscription
    from contrada.signatures import verify_webhook

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "Client",
    "ContradaError",
    "InvalidInput",
    "Matcher",
    "Relation",
    "Subscription",
    "Tracker",
    "Unavailable",
    "explain",
    "relate",
    "verify_webhook",
]

# Each is loaded when it is first used: a command must be there to hear Ctrl-C before that.
_HOMES = {
    "AsyncClient": "contrada.client.awaiting",
    "Client": "contrada.client.blocking",
    "ContradaError": "contrada.errors",
    "InvalidInput": "contrada.errors",
    "Unavailable": "contrada.errors",
    "Matcher": "contrada.matcher",
    "Tracker": "contrada.matcher.tracker",
    "explain": "contrada.matcher",
    "relate": "contrada.matcher",
    "Relation": "contrada.model.relation",
    "Subscription": "contrada.model.subscription",
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
    """List what is public, and no rooms."""
    return [*__all__, "__version__"]
