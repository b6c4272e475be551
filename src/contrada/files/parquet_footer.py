"""The footer of a Parquet file, checked before anybody else reads it.

PyArrow throws an exception that nothing catches, and so ends the process, when it is asked about a
column whose codec there is not or whose histograms have another length than its levels. What a
footer says must therefore fit together before PyArrow sees it, and what it says of columns is read
here and not asked of PyArrow.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.errors import InvalidInput
from contrada.kernels import thrift
from contrada.kernels.compiling import Patience, is_numba_loaded
from contrada.limits import PARQUET_DEPTH_MAX

CODECS = ("uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4_raw", "zstd", "lz4_raw")
_MAGIC = b"PAR1"
_TAIL_BYTES = 8  # the length of the footer, and the magic number
_ROW_BYTES = 32  # of a footer for each of its structs, at a first guess
_TYPES, _REPETITIONS = 8, 3
_REQUIRED, _OPTIONAL, _REPEATED = range(_REPETITIONS)
_FOOTER, _ELEMENT, _GROUP, _CHUNK, _COLUMN, _SIZES = range(1, 7)  # kinds of structs
_WIDTH = 18

_Facts: TypeAlias = NDArray[np.int64]

# The fields that are looked at, by kind of struct: their type, and what is in them.
_RULES = {
    _FOOTER: {
        2: (thrift.LIST, _ELEMENT),
        3: (thrift.I64, 0),  # rows
        4: (thrift.LIST, _GROUP),
    },
    _ELEMENT: {
        1: (thrift.I32, 0),  # type
        3: (thrift.I32, 0),  # repetition
        5: (thrift.I32, 0),  # children
    },
    _GROUP: {
        1: (thrift.LIST, _CHUNK),
        3: (thrift.I64, 0),  # rows
    },
    _CHUNK: {3: (thrift.STRUCT, _COLUMN)},
    _COLUMN: {
        1: (thrift.I32, 0),  # type
        4: (thrift.I32, 0),  # codec
        5: (thrift.I64, 0),  # values
        7: (thrift.I64, 0),  # bytes in the file
        9: (thrift.I64, 0),  # where its data begin
        11: (thrift.I64, 0),  # and its dictionary
        16: (thrift.STRUCT, _SIZES),
    },
    _SIZES: {
        2: (thrift.LIST, 0),  # histogram of repetition levels
        3: (thrift.LIST, 0),  # and of definition levels
    },
}
_AT_ONCE = 500_000  # bytes: to load kernels takes about as long as so many without them
_patience = Patience(_AT_ONCE)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column of a row group: its values, nulls among them, and where its pages are."""

    codec: int
    values: int
    stored_bytes: int
    data_at: int
    dictionary_at: int  # -1 where it has none


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """What a footer says of row groups and columns; `columns` are rows, by group and column."""

    group_rows: list[int]
    columns: _Facts

    @property
    def rows(self) -> int:
        """The rows of all row groups."""
        return sum(self.group_rows)

    def chunk(self, group: int, column: int) -> Chunk:
        """Return what is said of one column of one row group."""
        return Chunk(*self.columns[group, column, [4, 5, 7, 9, 11]].tolist())

    def codecs(self, column: int) -> set[str]:
        """Return the names of the codecs that a column is compressed with."""
        return {CODECS[code] for code in set(self.columns[:, column, 4].tolist())}


class _Unfit(Exception):
    """What a footer says does not fit together."""


class _TooDeep(Exception):
    """The columns of a file are nested too deeply."""


def as_source(path: Path) -> "Path | pa.NativeFile":
    """Return what PyArrow can open: it takes no path whose name is not UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return pa.OSFile(os.fsencode(path))
    return path


def read_footer(path: Path, place: str) -> ParquetFooter:
    """Read the footer of a Parquet file; refuse one that PyArrow must not see."""
    with path.open("rb") as file:
        return read_open_footer(file, place)


def read_open_footer(file: IO[bytes], place: str) -> ParquetFooter:
    """Read the footer of a file that is open, as `read_footer` does; its place moves."""
    footer = _find_footer(file, place)
    try:
        found = _walk(footer)
        levels = _read_levels(found[found[:, 0] == _ELEMENT])
        return _take_groups(found, levels)
    except _Unfit as fault:
        raise InvalidInput(f"{place}: not a Parquet file: its footer is damaged: {fault}") from None
    except _TooDeep:
        raise InvalidInput(
            f"{place}: the columns of the Parquet file are nested too deeply; the limit is "
            f"{PARQUET_DEPTH_MAX} levels (PARQUET_DEPTH_MAX)"
        ) from None


def _find_footer(file: IO[bytes], place: str) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _TAIL_BYTES, 0))
    tail = file.read(_TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > size - _TAIL_BYTES:
        what = "its footer is encrypted" if tail[4:] == b"PARE" else "it does not end in a footer"
        raise InvalidInput(f"{place}: not a Parquet file: {what}")
    file.seek(size - _TAIL_BYTES - length)
    return file.read(length)


def _walk(footer: bytes) -> _Facts:
    """Return a row for each struct that matters."""
    types, kinds = bytearray(8 * thrift.FIELDS), bytearray(8 * thrift.FIELDS)
    for kind, fields in _RULES.items():
        for field, (type_, inside) in fields.items():
            types[kind * thrift.FIELDS + field] = type_
            kinds[kind * thrift.FIELDS + field] = inside
    is_long = len(footer) > _AT_ONCE
    is_compiled = is_long or is_numba_loaded() or _patience.is_spent(len(footer))
    capacity, rows = len(footer) // _ROW_BYTES + 64, thrift.IS_FULL
    while rows == thrift.IS_FULL:
        found = np.empty((capacity, _WIDTH), np.int64)
        if is_compiled:
            data, *rules = (np.frombuffer(part, np.uint8) for part in (footer, types, kinds))
            rows = thrift.walk_structs(data, rules[0], rules[1], found)
        else:
            rows = thrift.walk_structs.interpreted(footer, bytes(types), bytes(kinds), found)
        capacity *= 4
    if rows == thrift.DAMAGED:
        raise _Unfit("it is not made of the structs that it should be made of")
    return found[:rows]


@dataclass(frozen=True, slots=True)
class _Levels:
    """Of each column without parts: its type, and its highest definition and repetition level."""

    types: _Facts
    definition: _Facts
    repetition: _Facts


def _read_levels(elements: _Facts) -> _Levels:
    """Follow the tree of the schema, whose elements stand in the order of their beginnings."""
    leaves: list[tuple[int, int, int]] = []
    above: list[tuple[int, int, int, int]] = [(1, 0, 0, 0)]  # children to come, levels, depth
    for number, (type_, repetition, children) in enumerate(elements[:, [1, 3, 5]].tolist()):
        if not above:
            raise _Unfit(f"element {number} of its schema is in no other")
        left, definition, repeated, depth = above.pop()
        if left > 1:
            above.append((left - 1, definition, repeated, depth))
        if number:  # the first is the schema itself
            if not 0 <= repetition < _REPETITIONS:
                raise _Unfit(f"element {number} of its schema has the repetition {repetition}")
            definition += repetition != _REQUIRED
            repeated += repetition == _REPEATED
        if depth > PARQUET_DEPTH_MAX:
            raise _TooDeep
        if children > 0:
            above.append((children, definition, repeated, depth + 1))
        elif type_ >= _TYPES:
            raise _Unfit(f"element {number} of its schema has the type {type_}")
        elif type_ >= 0:
            leaves.append((type_, definition, repeated))
    if above:
        raise _Unfit("its schema is cut off")
    return _Levels(*np.array(leaves, np.int64).reshape(-1, 3).T)


def _take_groups(found: _Facts, levels: _Levels) -> ParquetFooter:
    """Return what is said of row groups, if it fits the schema."""
    groups = found[found[:, 0] == _GROUP]
    columns = found[found[:, 0] == _COLUMN]
    count = len(levels.types)
    odd = np.flatnonzero(groups[:, 1] != count)
    if odd.size:
        raise _Unfit(f"row group {odd[0]} has {groups[odd[0], 1]} columns, the schema {count}")
    if len(columns) != len(groups) * count:
        raise _Unfit("a column of a row group is not described")
    rows = groups[:, 3]
    if (rows < 0).any() or sum(rows.tolist()) != found[0, 3]:
        raise _Unfit(f"its row groups do not have the {found[0, 3]} rows that it states")
    shaped = columns.reshape(len(groups), count, _WIDTH)
    _check_columns(shaped, levels, rows)
    _check_histograms(found, levels)
    return ParquetFooter(rows.tolist(), shaped)


def _check_columns(columns: _Facts, levels: _Levels, rows: _Facts) -> None:
    """Refuse columns of another type than the schema's, or of another number of values."""
    is_flat = levels.repetition == 0
    values, stated = columns[:, :, 5], rows[:, None]
    for is_bad, what, field in (
        (columns[:, :, 1] != levels.types, "another type than the schema", 1),
        ((columns[:, :, 4] < 0) | (columns[:, :, 4] >= len(CODECS)), "an unknown codec", 4),
        (columns[:, :, 7] < 0, "no size", 7),
        (columns[:, :, 9] < 0, "no place", 9),
        (is_flat & (values != stated), "another number of values than the group has rows", 5),
        (~is_flat & (values < stated), "fewer values than the group has rows", 5),
    ):
        for group, column in np.argwhere(is_bad):
            said = columns[group, column, field]
            number = f": {said}" if said >= 0 else ""
            raise _Unfit(f"column {column} of row group {group} states {what}{number}")


def _check_histograms(found: _Facts, levels: _Levels) -> None:
    """Refuse histograms of another length than that of the levels that they count."""
    place = np.cumsum(found[:, 0] == _COLUMN) - 1
    is_sizes = found[:, 0] == _SIZES
    of = place[is_sizes] % max(len(levels.types), 1)
    for field, highest in ((2, levels.repetition), (3, levels.definition)):
        length = found[is_sizes, field]
        odd = np.flatnonzero((length > 0) & (length != highest[of] + 1))
        if odd.size:
            raise _Unfit(
                f"column {of[odd[0]]} has a histogram of {length[odd[0]]} levels, not "
                f"{highest[of[odd[0]]] + 1}"
            )
