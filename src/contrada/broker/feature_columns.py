"""Features as the columns that the matcher reads: a geometry, an id, and each property by name.

What a column means is what the same Features mean one by one: ordinary columns have a type of
Arrow's, and any other has each value as it came (`matching.mixed_columns`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.limits import COLUMNS_MAX, REQUEST_CELLS_MAX
from contrada.matching.arrow_values import as_values
from contrada.matching.mixed_columns import (
    widen_numbers,
    write_mixed,
    write_mixed_numbers,
)
from contrada.model.event import GEOMETRY

_ID = "id"
_NOTHING = type(None)
_TYPES = {str: pa.string(), bool: pa.bool_(), float: pa.float64(), int: pa.int64()}
_NUMBERS = frozenset({int, float})
_ARROW_ERRORS = (pa.ArrowInvalid, OverflowError)
_TEXT_BYTES_MAX = 2**30  # of one column: its offsets have 32 bits
_JOINED_CELLS_MIN = 1_000_000  # fewer may be null, whatever there is in the others
_JOINED_COLUMNS_MAX = 20_000  # of batches that are not alike: each takes microseconds
_JOINED_BATCHES_MIN = 20  # a name takes as long as in so many batches, however few have it


def make_rows(
    geometries: pa.Array, ids: Sequence[Any], properties: Sequence[Mapping[str, Any]]
) -> pa.RecordBatch:
    """Make the columns of Features of their WKB, their own ids and their properties.

    A property `id` counts where a Feature has none of its own.
    """
    columns = {GEOMETRY: geometries}
    columns |= ((name, made) for name, made in _make_columns(properties) if name != GEOMETRY)
    if any(id_ is not None for id_ in ids):
        own = [
            row.get(_ID) if id_ is None else id_ for id_, row in zip(ids, properties, strict=True)
        ]
        columns[_ID] = make_column(own)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _make_columns(properties: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, pa.Array]]:
    if not properties:
        return
    names = properties[0].keys()
    if all(row.keys() == names for row in properties):
        for name in names:
            yield name, make_column([row[name] for row in properties])
        return
    yield from _make_sparse(properties)


def _make_sparse(properties: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, pa.Array]]:
    """Make columns of which each has a value in some rows: the time follows the values."""
    length = len(properties)
    found: dict[str, tuple[list[int], list[Any]]] = {}
    for row, each in enumerate(properties):
        for name, value in each.items():
            rows, values = found.setdefault(name, ([], []))
            rows.append(row)
            values.append(value)
    _check_width(len(found), length)
    for name, (rows, values) in found.items():
        column = make_column(values)
        yield name, column if len(rows) == length else _spread(column, rows, length)


def _check_width(names: int, length: int) -> None:
    if names > COLUMNS_MAX:
        limit = f"{COLUMNS_MAX:,} (COLUMNS_MAX)"
    elif names * length > REQUEST_CELLS_MAX:
        limit = f"{REQUEST_CELLS_MAX:,} cells of a table allow (REQUEST_CELLS_MAX)"
    else:
        return
    raise InvalidInput(
        f"{length:,} events have {names:,} properties of different names, more than {limit}: send "
        "fewer events in one request",
        place="the body",
    )


def _spread(column: pa.Array, rows: Sequence[int], length: int) -> pa.Array:
    """Put the values of a column into some of more rows; the others are null."""
    places = np.zeros(length, np.int64)
    places[rows] = np.arange(len(rows))
    is_missing = np.ones(length, bool)
    is_missing[rows] = False
    return column.take(pa.array(places, mask=is_missing))


def make_column(values: Sequence[Any]) -> pa.Array:
    """Make a column of JSON's values."""
    kinds = set(map(type, values))
    kinds.discard(_NOTHING)
    if not kinds:
        return pa.nulls(len(values))
    made = None
    if len(kinds) == 1:
        made = _make_plain(values, kinds.pop())
    elif kinds == _NUMBERS:
        made = write_mixed_numbers(values)
    return write_mixed(values) if made is None else made


def _make_plain(values: Sequence[Any], kind: type) -> pa.Array | None:
    """Make a column of values of one kind; None where that needs a look at each."""
    if kind is dict:
        return _make_struct(values)
    if kind not in _TYPES:
        return None
    try:
        return pa.array(values, _TYPES[kind])
    except _ARROW_ERRORS:
        return None


def _make_struct(values: Sequence[Any]) -> pa.Array | None:
    """Make a column of objects; None if they have not all the same names."""
    objects = [value for value in values if value is not None]
    names = objects[0].keys()
    if not names or any(each.keys() != names for each in objects):
        return None
    none = dict.fromkeys(names)
    filled = [none if value is None else value for value in values]
    columns = [make_column([each[name] for each in filled]) for name in names]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(columns, names=list(names), mask=mask)


def join_rows(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Put the rows of several batches one after another; what a batch lacks is null."""
    some = [batch for batch in batches if batch.num_rows] or list(batches[:1])
    schema = some[0].schema
    if all(batch.schema.equals(schema) for batch in some):
        return some[0] if len(some) == 1 else pa.concat_batches(some)
    columns = [dict(zip(batch.schema.names, batch.columns, strict=True)) for batch in some]
    names = dict.fromkeys(chain.from_iterable(columns))
    lengths = [batch.num_rows for batch in some]
    return pa.RecordBatch.from_pydict(
        {name: _join([each.get(name) for each in columns], lengths) for name in names}
    )


def group_joinable(batches: Sequence[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Split batches into runs that can be joined: to join each takes less than it saves."""
    run: list[pa.RecordBatch] = []
    names: set[str] = set()
    rows = cells = 0
    are_alike = True
    for batch in batches:
        own = batch.num_rows * batch.num_columns
        joined = names.union(batch.schema.names)
        size = (rows + batch.num_rows) * len(joined)
        is_alike = are_alike and (not run or batch.schema.equals(run[0].schema))
        is_wide = size > max(_JOINED_CELLS_MIN, 4 * (cells + own))
        is_slow = len(joined) * (len(run) + 1 + _JOINED_BATCHES_MIN) > _JOINED_COLUMNS_MAX
        if run and (is_wide or (is_slow and not is_alike)):
            yield run
            run, rows, cells, is_alike, joined = [], 0, 0, True, set(batch.schema.names)
        run.append(batch)
        names, rows, cells, are_alike = joined, rows + batch.num_rows, cells + own, is_alike
    if run:
        yield run


def _join(parts: Sequence[pa.Array | None], lengths: Sequence[int]) -> pa.Array:
    kinds = _list_types(parts)
    kind = kinds[0] if kinds else pa.null()
    filled = [
        pa.nulls(length, kind) if part is None or pa.types.is_null(part.type) else part
        for part, length in zip(parts, lengths, strict=True)
    ]
    return pa.concat_arrays(filled) if len(kinds) <= 1 else _join_kinds(filled, kinds)


def _list_types(parts: Iterable[pa.Array | None]) -> list[pa.DataType]:
    """List the types of columns, each once; null is none."""
    found: list[pa.DataType] = []
    for part in parts:
        if part is not None and part.type not in found and not pa.types.is_null(part.type):
            found.append(part.type)
    return found


def _join_kinds(parts: Sequence[pa.Array], kinds: Sequence[pa.DataType]) -> pa.Array:
    """Join columns of several types: those of each type at once, then all rows in order."""
    lengths = np.array([len(part) for part in parts])
    rows = np.split(np.arange(lengths.sum()), np.cumsum(lengths)[:-1])
    columns, origins = [], []
    for kind in kinds:
        own = [i for i, part in enumerate(parts) if part.type == kind]
        columns.append(pa.concat_arrays([parts[i] for i in own]))
        origins += [rows[i] for i in own]
    widened = [widen_numbers(column) for column in columns]
    if any(column is None for column in widened):
        widened = [write_mixed(as_values(column)) for column in columns]
    return pa.concat_arrays(widened).take(pa.array(np.argsort(np.concatenate(origins))))
