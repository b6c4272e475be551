"""Rows of another number of cells than the header: nulls stand for them, so that rows keep numbers.

The reader of Arrow never sees such a row: it would decode it even to skip it, whatever its bytes.
"""

import io
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.deferred import compute as pc

RAGGED_AT_ONCE = 65_536  # rows of one batch
_RAGGED_CELLS_AT_ONCE = 2**24  # of those rows, which have a null in each column
_BUFFER_BYTES = 2**20


def open_pieces(pieces: Iterator[bytes]) -> IO[bytes]:
    """Open bytes that come in pieces as a file."""
    return io.BufferedReader(_Pieces(pieces), _BUFFER_BYTES)


class _Pieces(io.RawIOBase):
    """Bytes that come in pieces, as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces, self._left = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


def insert_ragged(
    batches: Iterator[pa.RecordBatch], header: Sequence[str], ragged: Iterator[tuple[int, int]]
) -> Iterator[tuple[pa.RecordBatch, dict[int, int]]]:
    """Put a row of nulls where each ragged row was.

    `ragged` has their numbers, and those of their cells. Beside each batch come the numbers of
    cells of its ragged rows, by position.
    """
    empty = pa.RecordBatch.from_arrays([pa.nulls(0, pa.string())] * len(header), list(header))
    at_once = max(1, min(RAGGED_AT_ONCE, _RAGGED_CELLS_AT_ONCE // len(header)))
    row, waiting = 0, next(ragged, None)
    for batch in chain(batches, [empty]):
        left = batch
        while left.num_rows or (waiting is not None and waiting[0] == row):
            widths: dict[int, int] = {}
            while (
                waiting is not None
                and waiting[0] - row - len(widths) <= left.num_rows
                and len(widths) < at_once
            ):
                widths[waiting[0] - row] = waiting[1]
                waiting = next(ragged, None)
            is_full = len(widths) == at_once
            whole = max(widths) + 1 - len(widths) if is_full else left.num_rows
            order = pa.array(np.insert(np.arange(whole), _before(widths), -1))
            yield left.take(pc.if_else(pc.less(order, 0), None, order)), widths
            row += whole + len(widths)
            left = left.slice(whole)


def _before(widths: dict[int, int]) -> NDArray[np.int64]:
    """Count the whole rows before each ragged one."""
    return np.array(list(widths), np.int64) - np.arange(len(widths))
