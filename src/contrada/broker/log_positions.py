"""Positions of the log as texts: the epoch of a history, and a number in it.

A log that is started from a backup lives on in another history than the one that the backup was
taken of: both may have an entry of the same number. So a text carries the *epoch* of its history,
and an epoch ends where the next one begins. Texts of what both histories share stay what they were.
"""

import re
import secrets
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from contrada.errors import Gone, InvalidInput
from contrada.showing import brief

_TEXT = re.compile(r"([a-z2-7]{8})-(0|[1-9][0-9]{0,17})")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def make_epoch() -> str:
    """Make the name of a new epoch, which no other log has."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


@dataclass(frozen=True, slots=True)
class Epochs:
    """The epochs of a log in their order, and the number of the first entry of each."""

    names: Sequence[str]
    firsts: Sequence[int]

    def write(self, number: int) -> str:
        """Return the text of a number; 0 is the position before the first entry."""
        return f"{self.names[max(bisect_right(self.firsts, number) - 1, 0)]}-{number}"

    def read(self, text: str, place: str, head: int) -> int:
        """Return the number of a position; one of another history, or not there yet, is refused."""
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise InvalidInput(f"{brief(text)} is not a position", place=place)
        name, number = found[1], int(found[2])
        if name not in self.names:
            raise Gone(
                f"position {text} belongs to another log, or to a history that this one, started "
                "from a backup, does not have",
                place=place,
            )
        own = self.names.index(name)
        if own + 1 < len(self.names) and number >= self.firsts[own + 1]:
            raise Gone(
                f"position {text} came after the backup from which this log was started; the "
                f"last one that both have is {self.write(self.firsts[own + 1] - 1)}",
                place=place,
            )
        if number > head:
            raise InvalidInput(
                f"position {text} is not there yet; the last one is {self.write(head)}", place=place
            )
        return number
