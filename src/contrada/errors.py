"""One tree of errors, by who must act.

Only what a caller can act on is an error here; a broken invariant of our own is an assert.
"""

from typing import Any

_LENGTH_MAX, _TAIL = 4_000, 1_000  # characters of a message, and those after the gap
_GAP = " … "


class ContradaError(Exception):
    """The root of all errors that Contrada raises on purpose.

    A message that a stranger's values have made very long loses its middle, and one with half a
    surrogate pair, which no terminal or log could take, has it escaped.
    """

    def __init__(self, *args: Any) -> None:
        """Take the message first."""
        super().__init__(*(_tame(arg) if isinstance(arg, str) else arg for arg in args))


class InvalidInput(ContradaError, ValueError):
    """The input must change. The message names the place and shows the value."""


class UnknownSubscription(InvalidInput, KeyError):
    """An id that the matcher does not have."""

    def __str__(self) -> str:
        """Give the message itself; KeyError would quote it."""
        return str(self.args[0])


class NotBuilt(InvalidInput):
    """A value that names something which this version does not have yet."""


class MissingPackage(ContradaError, ImportError):
    """An optional package must be installed; the message says which extra brings it."""


class RowsLost(ContradaError):
    """A job did not account for every row that came in: its answer must not be used."""


class PeerError(ContradaError):
    """What a peer has sent, or would have to send, is no message: drop it, or the link."""


def _tame(message: str) -> str:
    message = message.encode("utf-8", "backslashreplace").decode()
    if len(message) <= _LENGTH_MAX:
        return message
    head = _LENGTH_MAX - _TAIL - len(_GAP)
    return f"{message[:head]}{_GAP}{message[-_TAIL:]}"
