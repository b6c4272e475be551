"""Headers of a batch of messages, by name and not by message: what Arrow does in one go."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.arrays import Positions


class HeaderTable:
    """The headers of messages; where one of them has a name twice, the last counts."""

    def __init__(self, headers: pa.ListArray) -> None:
        """Take a list of `key` and `value` for each message, or null."""
        self._length = len(headers)
        self._rows: Positions = np.zeros(0, np.int64)
        if headers.null_count < len(headers):
            self._rows = pc.list_parent_indices(headers).to_numpy().astype(np.int64)
            self._keys, self._values = headers.flatten().flatten()

    def find(self, name: str) -> list[bytes | None]:
        """Return the value of a header in each message; None where a message has none."""
        found: list[bytes | None] = [None] * self._length
        if len(self._rows):
            at = np.flatnonzero(_is_true(pc.equal(self._keys, name)))
            values = self._values.take(pa.array(at)).to_pylist()
            for row, value in zip(self._rows[at].tolist(), values, strict=True):
                found[row] = value
        return found

    def find_prefixed(self, prefix: str) -> dict[int, dict[str, bytes]]:
        """Return, by message, the headers whose names begin so, without that beginning."""
        found: dict[int, dict[str, bytes]] = {}
        if len(self._rows):
            at = np.flatnonzero(_is_true(pc.starts_with(self._keys, prefix)))
            taken = pa.array(at)
            keys, values = self._keys.take(taken).to_pylist(), self._values.take(taken).to_pylist()
            for row, key, value in zip(self._rows[at].tolist(), keys, values, strict=True):
                if value is not None:
                    found.setdefault(row, {})[key.removeprefix(prefix)] = value
        return found


def _is_true(mask: pa.BooleanArray) -> Any:
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
