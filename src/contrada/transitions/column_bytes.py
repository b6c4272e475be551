"""Columns as bytes: numbers in as few bytes each as hold them all, texts one after another.

A column is a line of facts, which JSON can carry, and its bytes. Nothing here knows what a column
means.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.arrays import Floats, Integers
from contrada.deferred import compute as pc

Facts = Mapping[str, Any]

_TEXTS = {"string": pa.string(), "large_string": pa.large_string()}
_ID_TYPES = {"int64": pa.int64(), **_TEXTS}
_WIDTHS = ("<i1", "<i2", "<i4", "<i8")


class ByteReader:
    """Hands out bytes from the first to the last; whoever asks for more gets a `ValueError`."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> memoryview:
        """Return the next bytes."""
        if not 0 <= count <= len(self._data) - self._at:
            raise ValueError(f"{count} bytes are asked for at {self._at} of {len(self._data)}")
        self._at += count
        return self._data[self._at - count : self._at]

    @property
    def is_done(self) -> bool:
        """Whether all bytes were taken."""
        return self._at == len(self._data)


def write_integers(values: Integers) -> tuple[Facts, list[bytes]]:
    """Write integers; of equal ones only the value."""
    if not len(values):
        return {"count": 0, "all": 0}, []
    low, high = int(values.min()), int(values.max())
    if low == high:
        return {"count": len(values), "all": low}, []
    kind = next(w for w in _WIDTHS if np.iinfo(w).min <= low and high <= np.iinfo(w).max)
    return {"count": len(values), "kind": kind}, [values.astype(kind).tobytes()]


def read_integers(facts: Facts, data: ByteReader) -> Integers:
    """Read integers that `write_integers` has written."""
    count = _read_count(facts)
    if "all" in facts:
        return np.full(count, facts["all"], np.int64)
    if facts["kind"] not in _WIDTHS:
        raise ValueError(f"integers of kind {facts['kind']!r}")
    kind = np.dtype(facts["kind"])
    return np.frombuffer(data.take(count * kind.itemsize), kind).astype(np.int64)


def write_floats(values: Floats) -> tuple[Facts, list[bytes]]:
    """Write doubles, NaN among them, bit by bit."""
    return {"count": len(values)}, [values.astype("<f8").tobytes()]


def read_floats(facts: Facts, data: ByteReader) -> Floats:
    """Read doubles that `write_floats` has written."""
    return np.frombuffer(data.take(8 * _read_count(facts)), "<f8").astype(np.float64)


def write_ids(ids: pa.Array) -> tuple[Facts, list[bytes]]:
    """Write ids: int64 or texts, nulls among them."""
    name = str(ids.type)
    assert name in _ID_TYPES, name
    if name == "int64":
        is_null = ids.is_null().to_numpy(zero_copy_only=False).astype(np.int64)
        values, parts = write_integers(ids.fill_null(0).to_numpy())
        nulls, more = write_integers(is_null)
        return {"type": name, "values": values, "nulls": nulls}, [*parts, *more]
    lengths = pc.fill_null(pc.binary_length(ids), -1).to_numpy().astype(np.int64)
    facts, parts = write_integers(lengths)
    texts = ids.cast(pa.large_string()).fill_null("")
    ends = np.frombuffer(texts.buffers()[1] or b"", np.int64)[texts.offset :][: len(texts) + 1]
    first, end = (int(ends[0]), int(ends[-1])) if len(texts) else (0, 0)
    spelt = texts.buffers()[2]
    written = b"" if spelt is None else spelt[first:end].to_pybytes()
    return {"type": name, "lengths": facts}, [*parts, written]


def read_ids(facts: Facts, data: ByteReader) -> pa.Array:
    """Read ids that `write_ids` has written."""
    kind = _ID_TYPES[facts["type"]]
    if facts["type"] == "int64":
        values = read_integers(facts["values"], data)
        nulls = read_integers(facts["nulls"], data) != 0
        return pa.array(values, kind, mask=nulls if nulls.any() else None)
    lengths = read_integers(facts["lengths"], data)
    is_there = lengths >= 0
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=ends[1:])
    validity = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    buffers = [validity, pa.py_buffer(ends), pa.py_buffer(bytes(data.take(int(ends[-1]))))]
    texts = pa.Array.from_buffers(pa.large_string(), len(lengths), buffers)
    texts.validate(full=True)
    return texts.cast(kind)


def write_table(table: pa.Table) -> tuple[Facts, list[bytes]]:
    """Write rows of any columns, in Arrow's own stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    written = sink.getvalue().to_pybytes()
    return {"bytes": len(written), "rows": table.num_rows}, [written]


def read_table(facts: Facts, data: ByteReader) -> pa.Table:
    """Read rows that `write_table` has written."""
    table = pa.ipc.open_stream(bytes(data.take(facts["bytes"]))).read_all()
    if table.num_rows != facts["rows"]:
        raise ValueError(f"{table.num_rows} rows instead of {facts['rows']}")
    return table


def _read_count(facts: Facts) -> int:
    count = facts["count"]
    if not isinstance(count, int) or count < 0:
        raise ValueError(f"a count of {count!r}")
    return count
