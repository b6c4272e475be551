"""An event as the text that a broker takes, or why it has none."""

from dataclasses import dataclass
from typing import Self

from contrada.errors import InvalidInput

_NO_EVENT = "null"


@dataclass(frozen=True, slots=True)
class OutgoingEvent:
    """The JSON of one event; `is_envelope` where it is a CloudEvent with an id of its own.

    One with a `fault` is no event: its text, which a broker refuses, keeps the places of others.
    """

    text: str
    is_envelope: bool = False
    fault: InvalidInput | None = None

    @classmethod
    def bad(cls, fault: InvalidInput) -> Self:
        """Stand for an event that cannot be written."""
        return cls(_NO_EVENT, fault=fault)
