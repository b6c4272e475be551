"""Columns of moments, such as the times of positions, as microseconds since 1970 in UTC.

What is finer than a microsecond is cut off. A moment without a zone is UTC, and a date is the
moment at which it begins, as everywhere (`model/instant.py`).
"""

from typing import Any

import numpy as np
import pyarrow as pa

from contrada.arrays import Integers
from contrada.deferred import compute as pc
from contrada.matching.arrow_values import as_values
from contrada.model.geometry import Fault
from contrada.model.instant import read_instant
from contrada.showing import brief

MOMENT_US_MIN, MOMENT_US_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999
BAD_TIME, NO_TIME = "bad_time", "the time is missing"
_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
_PLAIN = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?"


def read_moments(array: pa.Array, column: str) -> tuple[Integers, dict[int, Fault]]:
    """Read a column of times; a row whose time is missing or none has 0 and a fault."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("ms"))
    if pa.types.is_timestamp(array.type):
        moments, faults = _read_timestamps(array, column)
    else:
        moments, faults = _read_texts(array, column)
    for row in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
        faults[row] = _fault(NO_TIME, column)
    return moments, faults


def _read_timestamps(array: pa.Array, column: str) -> tuple[Integers, dict[int, Fault]]:
    unit = array.type.unit
    counts = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    if unit == "ns":
        return np.floor_divide(counts, 1_000), {}  # all that 64 bits hold is near enough
    factor = _US[unit]
    low, high = -(-MOMENT_US_MIN // factor), MOMENT_US_MAX // factor
    beyond = np.flatnonzero((counts < low) | (counts > high))
    what = "is not in the years 1 to 9999"
    faults = {
        row: _fault(f"the time {counts[row]} {unit} since 1970 {what}", column)
        for row in beyond.tolist()
    }
    moments = np.where((counts < low) | (counts > high), 0, counts) * factor
    return np.asarray(moments, np.int64), faults


def _read_texts(array: pa.Array, column: str) -> tuple[Integers, dict[int, Fault]]:
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        parsed = _parse_plain(array)
        if parsed is not None:
            return _read_timestamps(parsed, column)
    moments, faults = np.zeros(len(array), np.int64), {}
    for row, value in enumerate(as_values(array, f"column {column!r}")):
        if value is None:
            continue
        read = read_moment_us(value)
        if isinstance(read, int):
            moments[row] = read
        else:
            faults[row] = _fault(read, column)
    return moments, faults


def _parse_plain(texts: pa.Array) -> pa.Array | None:
    """Let Arrow parse texts of one common form; None where there are others."""
    for end, zone in (("Z$", "UTC"), ("$", None)):
        if pc.all(pc.match_substring_regex(texts, _PLAIN + end)).as_py() is True:
            try:
                return texts.cast(pa.timestamp("us", zone))
            except pa.ArrowInvalid:  # no such day, or a leap second
                return None
    return None


def read_moment_us(value: Any) -> int | str:
    """Read one time in microseconds since 1970; if it is none, say what it is instead."""
    instant = read_instant(value)
    if instant is None:
        return f"the time {brief(value)} is not a timestamp, a date or ISO 8601 text"
    moment = instant.ns // 1_000
    if not MOMENT_US_MIN <= moment <= MOMENT_US_MAX:
        return f"the time {brief(value)} is not in the years 1 to 9999"
    return moment


def _fault(message: str, column: str) -> Fault:
    return Fault(BAD_TIME, message, f"column {column!r}")
