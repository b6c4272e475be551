"""Headers of a batch of messages, by name and not by message: what Arrow does in one go.

Where they travel to Python and are mostly null, they are packed into bytes: for every row of a
batch, Spark 4.3 goes again through all rows of a list that are null, so that a batch would take
the square of its rows.
"""

import base64
import json
from collections.abc import Iterable, Mapping
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


def pack_headers(headers: Iterable[Mapping[str, Any]] | None) -> bytes | None:
    """Pack the headers of one message, each a `key` and a `value`; None where there are none."""
    pairs = [(header["key"], _to_base64(header["value"])) for header in headers or ()]
    return json.dumps(pairs).encode() if pairs else None


def unpack_headers(packed: bytes | None) -> list[dict[str, Any]]:
    """Return what was packed."""
    pairs = json.loads(packed) if packed else []
    return [{"key": key, "value": _from_base64(text)} for key, text in pairs]


def _to_base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _from_base64(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _is_true(mask: pa.BooleanArray) -> Any:
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
