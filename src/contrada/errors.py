"""One tree of errors, by who must act.

Only what a caller can act on is an error here; a broken invariant of our own is an assert.
"""

import reprlib
from typing import Any

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 1_000
_REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxdict = 20
_DIGITS_BITS_MAX = 4_096  # Python refuses to write an integer of many more


def brief(value: Any, length: int = 80) -> str:
    """Show a value in a message: cut to a length, however large, deep or hostile it is."""
    if isinstance(value, int) and value.bit_length() > _DIGITS_BITS_MAX:
        return f"an integer of {value.bit_length():,} bits"
    try:
        return _REPR.repr(value)[:length]
    except Exception:
        return f"a value of type {type(value).__name__}"


class ContradaError(Exception):
    """The root of all errors that Contrada raises on purpose."""


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
