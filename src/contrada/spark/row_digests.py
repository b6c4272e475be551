"""Digests of subscription rows, by which a new version knows the rows of the one before."""

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.arrays import Mask, Positions

ROW_DIGESTS = "spark.digests"  # the column beside the subscriptions of a published part
_FORMAT = b"1"  # of what is digested: another one makes all rows new

RowDigests = NDArray[np.uint64]  # two numbers for each row


def digest_rows(batch: pa.RecordBatch, repair: bool) -> RowDigests:
    """Digest rows by all that they state; a null states nothing, nor does a column's place."""
    names = sorted(batch.schema.names)
    columns = [batch.column(name).to_pylist() for name in names]
    start = blake2b(_FORMAT + bytes([repair]), digest_size=16)
    found = bytearray()
    for row in zip(*columns, strict=True):
        digest = start.copy()
        for name, value in zip(names, row, strict=True):
            if value is not None:
                digest.update(_spell(name, value))
        found += digest.digest()
    return np.frombuffer(bytes(found), np.uint64).reshape(-1, 2)


def _spell(name: str, value: Any) -> bytes:
    """Write a value so that no other value of this or another column is written alike."""
    content = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    return f"{name} {type(value).__name__} {len(content)} ".encode() + content


class KnownRows:
    """Rows found by their digests."""

    def __init__(self, digests: RowDigests, is_alive: Mask | None = None) -> None:
        """Sort the digests of rows, or of those that are left."""
        self.length = len(digests)
        positions = np.arange(len(digests)) if is_alive is None else np.flatnonzero(is_alive)
        order = np.argsort(digests[positions, 0], kind="stable")
        self._positions = positions[order]
        self._digests = digests[self._positions]

    def find(self, digests: RowDigests) -> Positions:
        """Return the position of the row with each digest; -1 where no row has it."""
        places = np.searchsorted(self._digests[:, 0], digests[:, 0])
        found = np.full(len(digests), -1, np.int64)
        pending = np.arange(len(digests))
        while len(pending):  # rows may share their first number, by a rare accident
            at = places[pending]
            pending = pending[at < len(self._digests)]
            at = places[pending]
            is_near = self._digests[at, 0] == digests[pending, 0]
            is_same = is_near & (self._digests[at, 1] == digests[pending, 1])
            found[pending[is_same]] = self._positions[at[is_same]]
            pending = pending[is_near & ~is_same]
            places[pending] += 1
        return found
