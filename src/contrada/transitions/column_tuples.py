"""Rows of several columns at once: columns are arrays of Arrow or NumPy, in a named tuple."""

from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from contrada.arrays import Mask, Positions
from contrada.transitions.id_order import join_ids

ColumnTuple = TypeVar("ColumnTuple", bound=NamedTuple)


def filter_rows(columns: ColumnTuple, is_taken: Mask) -> ColumnTuple:
    """Return some rows, chosen by place."""
    return columns if is_taken.all() else take_rows(columns, np.flatnonzero(is_taken))


def take_rows(columns: ColumnTuple, rows: Positions) -> ColumnTuple:
    """Return some rows in their order."""
    places = pa.array(rows)
    taken = [c.take(places) if isinstance(c, pa.Array) else c[rows] for c in columns]
    return _made_like(columns, taken)


def place_rows(columns: ColumnTuple, places: Positions) -> ColumnTuple:
    """Return all rows, each at a place of its own."""
    order = np.empty(len(places), np.int64)
    order[places] = np.arange(len(places))
    return take_rows(columns, order)


def join_rows(first: ColumnTuple, second: ColumnTuple) -> ColumnTuple:
    """Return the rows of both, one after the other."""
    joined = [
        join_ids(a, b) if isinstance(a, pa.Array) else np.concatenate([a, b])
        for a, b in zip(first, second, strict=True)
    ]
    return _made_like(first, joined)


def _made_like(columns: ColumnTuple, values: list[Any]) -> ColumnTuple:
    return type(columns)._make(values)
