"""What a peer wants done."""

from dataclasses import dataclass

from contrada.overlay.messages import Event, Message, PeerId


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to a peer."""

    to: PeerId
    message: Message


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand an event to the subscriber."""

    event: Event


@dataclass(frozen=True, slots=True)
class Wake:
    """Call `tick` at a time."""

    at: float


Effect = Send | Deliver | Wake


class Effects:
    """The effects of one call, in their order."""

    def __init__(self, id_: PeerId) -> None:
        """Start with nothing; a peer sends nothing to itself."""
        self._id = id_
        self.list: list[Effect] = []

    def send(self, to: PeerId, message: Message) -> None:
        """Send a message to another peer."""
        if to != self._id:
            self.list.append(Send(to, message))

    def append(self, effect: Effect) -> None:
        """Add an effect."""
        self.list.append(effect)
