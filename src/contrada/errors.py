"""One tree of errors, by who must act.

Only what a caller can act on is an error here; a broken invariant of our own is an assert.
"""


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
