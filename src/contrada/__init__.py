"""Contrada: spatial publish/subscribe for Python.

Subscribers register predicates over attributes and geometry; each event reaches every
subscription that it satisfies, exactly.
"""

from contrada.errors import ContradaError, InvalidInput, Unavailable
from contrada.matcher import Matcher, explain, relate
from contrada.model.relation import Relation
from contrada.model.subscription import Subscription

__version__ = "0.1.0"
__all__ = [
    "ContradaError",
    "InvalidInput",
    "Matcher",
    "Relation",
    "Subscription",
    "Unavailable",
    "explain",
    "relate",
]


def __dir__() -> list[str]:
    """List what is public, and no rooms."""
    return [*__all__, "__version__"]
