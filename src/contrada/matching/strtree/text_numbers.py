"""Numbers by text: a dictionary in pieces, since one that grows or goes keeps others waiting."""

import pyarrow as pa

from contrada.arrays import Positions

_PIECE = 32_768  # texts
_AT_ONCE = 10_000


class TextNumbers:
    """Distinct texts, each with a number that is not negative."""

    def __init__(self, texts: pa.Array, numbers: Positions) -> None:
        """Put each text into the piece that its hash chooses."""
        self._count = 1 + len(texts) // _PIECE
        self._pieces: list[dict[str, int]] = [{} for _ in range(self._count)]
        for first in range(0, len(texts), _AT_ONCE):
            some = texts.slice(first, _AT_ONCE).to_pylist()
            for text, number in zip(some, numbers[first : first + _AT_ONCE].tolist(), strict=True):
                self._pieces[hash(text) % self._count][text] = number

    def __del__(self) -> None:
        while self._pieces:
            self._pieces.pop()

    def get(self, text: str) -> int:
        """Return the number of a text; -1 where there is none."""
        return self._pieces[hash(text) % self._count].get(text, -1)
