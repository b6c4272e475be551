"""How much of a Parquet file to read at once, from the headers of its pages.

A page of a few bytes may stand for thousands of long values: by a dictionary, by the prefixes of
`DELTA_BYTE_ARRAY`, by compression, or by a run of nulls in a list. Arrow writes all of a batch out;
so a batch has only as many rows as fit in `PIECE_BYTES` at the worst.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.errors import InvalidInput
from contrada.files.expanding import PIECE_BYTES
from contrada.files.parquet_pages import (
    DELTA_BYTE_ARRAY,
    DICTIONARY_ENCODINGS,
    DamagedPage,
    Page,
    read_page_headers,
)
from contrada.limits import LIST_VALUES_MAX, PARQUET_PAGE_BYTES_MAX

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_EXPANSION_MAX = 200  # so many times its size in the file a page, or a list, may take
_CODE_BYTES = 8  # of a value of which only a number is read, with its levels
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """How many rows to read at once, and which columns in lists to read as dictionaries."""

    rows: int
    packed: list[str]


@dataclass(slots=True)
class _Leaf:
    """What is known of a column without parts, over all row groups.

    `longest` is the longest value that may stand in any row, `starts` and `sizes` are the first
    rows and the bytes of pages whose values are all written out; `is_list` says that a row may
    have many values, `is_text` that they are texts or bytes, `width` how long if all are alike.
    """

    path: str
    is_list: bool
    is_text: bool
    width: int
    longest: int = 0
    values: int = 0
    is_coded: bool = False
    starts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


def plan_reading(
    path: Path, facts: "pq.FileMetaData", wanted: Sequence[str], rows_max: int, place: str
) -> ReadingPlan:
    """Find how to read some columns of a file; refuse what would take far more than it does."""
    with path.open("rb") as file:
        leaves = list(_survey(file, facts, wanted, rows_max, place))
    rows = rows_max
    while rows > 1 and sum(_worst(leaf, rows, facts.num_rows) for leaf in leaves) > PIECE_BYTES:
        rows //= 2
    return ReadingPlan(rows, [leaf.path for leaf in leaves if _is_packed(leaf)])


def _survey(
    file: IO[bytes], facts: "pq.FileMetaData", wanted: Sequence[str], rows_max: int, place: str
) -> Iterator[_Leaf]:
    for index in range(facts.num_columns):
        column = facts.schema.column(index)
        if not any(column.path == name or column.path.startswith(f"{name}.") for name in wanted):
            continue
        is_text = column.physical_type == "BYTE_ARRAY"
        width = column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0
        leaf = _Leaf(column.path, column.max_repetition_level > 0, is_text, width)
        if not (leaf.is_list or is_text or width or _is_dense(facts, index)):
            continue
        row = 0
        for group in map(facts.row_group, range(facts.num_row_groups)):
            _look(file, group.column(index), leaf, row, rows_max, place)
            row += group.num_rows
        yield leaf


def _is_dense(facts: "pq.FileMetaData", index: int) -> bool:
    """Whether a column is compressed so that a page may be far larger than in the file."""
    codecs = {facts.row_group(i).column(index).compression for i in range(facts.num_row_groups)}
    return not codecs <= {"UNCOMPRESSED", "SNAPPY"}


def _look(
    file: IO[bytes],
    chunk: "pq.ColumnChunkMetaData",
    leaf: _Leaf,
    row: int,
    rows_max: int,
    place: str,
) -> None:
    """Take in the pages of one row group."""
    where = f'{place}: column "{leaf.path}"'
    dictionary = None
    stored = values = 0
    try:
        for page in read_page_headers(file, chunk):
            _check_page(page, where)
            stored += page.stored_bytes
            if page.is_dictionary:
                dictionary = page
                continue
            values += page.values
            is_coded = page.encoding in DICTIONARY_ENCODINGS
            leaf.is_coded |= is_coded and leaf.is_text
            if page.encoding == DELTA_BYTE_ARRAY:
                leaf.longest = max(leaf.longest, page.plain_bytes)
            elif not is_coded:
                leaf.starts.append(row)
                leaf.sizes.append(page.plain_bytes)
            row += page.values
    except DamagedPage:
        pass  # Arrow will say so, with the row
    leaf.values += values
    if leaf.is_list:
        _check_list(leaf, values, stored, where)
    leaf.longest = max(leaf.longest, leaf.width)
    if dictionary is not None and leaf.is_coded:
        longest = dictionary.plain_bytes - 4 * max(dictionary.values - 1, 0)
        if max(longest, leaf.longest) * (leaf.values if leaf.is_list else rows_max) > PIECE_BYTES:
            longest = _find_longest(file, chunk, dictionary, longest)
        leaf.longest = max(leaf.longest, longest)


def _check_page(page: Page, where: str) -> None:
    if page.plain_bytes > max(PARQUET_PAGE_BYTES_MAX, _EXPANSION_MAX * page.stored_bytes):
        raise InvalidInput(
            f"{where}: a page of {page.stored_bytes:,} bytes would take {page.plain_bytes:,}; the "
            "limit for one that is compressed so much is "
            f"{PARQUET_PAGE_BYTES_MAX:,} (PARQUET_PAGE_BYTES_MAX)"
        )


def _check_list(leaf: _Leaf, values: int, stored: int, where: str) -> None:
    cells = values * max(leaf.width, _CODE_BYTES) // _CODE_BYTES
    if cells > max(LIST_VALUES_MAX, _EXPANSION_MAX * stored):
        raise InvalidInput(
            f"{where}: a row group of {stored:,} bytes has {values:,} values in lists; the limit "
            f"for so few bytes is {LIST_VALUES_MAX:,} (LIST_VALUES_MAX)"
        )


def _is_packed(leaf: _Leaf) -> bool:
    """Whether to read codes: in a list, not even one row has a bounded number of values."""
    return leaf.is_list and leaf.is_coded and leaf.longest * leaf.values > PIECE_BYTES


def _worst(leaf: _Leaf, rows: int, rows_in_file: int) -> float:
    """Return the bytes that so many rows of a column may take."""
    if leaf.is_list:
        size = _CODE_BYTES if _is_packed(leaf) else max(leaf.longest, _CODE_BYTES)
        all_ = leaf.values * size + sum(leaf.sizes)
        return all_ * min(1, rows / max(rows_in_file, 1))
    coded = rows * leaf.longest
    if not leaf.starts:
        return coded
    starts = np.asarray(leaf.starts)
    total = np.concatenate([[0.0], np.cumsum(leaf.sizes, dtype=np.float64)])
    ends = np.append(starts[1:], np.iinfo(np.int64).max - rows)
    after = np.searchsorted(starts, ends + rows - 1)
    return float(coded + (total[after] - total[:-1]).max())


def _find_longest(
    file: IO[bytes], chunk: "pq.ColumnChunkMetaData", page: Page, longest: int
) -> int:
    """Find the length of the longest text of a dictionary; what is not one is left to Arrow."""
    file.seek(page.data_at)
    raw = file.read(page.stored_bytes)
    codec = chunk.compression.lower()
    try:
        if codec != "uncompressed":
            codec = "lz4_raw" if codec == "lz4" else codec
            raw = pa.decompress(raw, page.plain_bytes, codec=codec)
        return longest_text(np.frombuffer(raw, np.uint8))
    except (pa.ArrowException, ValueError, OSError, struct.error):
        return longest


def longest_text(page: NDArray[np.uint8]) -> int:
    """Return the length of the longest of texts that follow each other, each after its length."""
    if len(page) < 4:
        return 0
    first = _LENGTH.unpack_from(page[:4].tobytes())[0]
    if len(page) % (4 + first) == 0:  # perhaps all are of one length, as points are
        heads = page.reshape(-1, 4 + first)[:, :4]
        if (heads == heads[0]).all():
            return int(first)
    # Short texts without a null character: a length is where three zeros follow.
    is_zero = page == 0
    is_start = is_zero[1:-2] & is_zero[2:-1] & is_zero[3:]
    is_start[:-1] &= ~is_start[1:]
    starts = np.flatnonzero(is_start)
    if starts.size and starts[0] == 0:
        lengths = np.diff(starts, append=len(page)) - 4
        if (page[starts] == lengths).all():
            return int(lengths.max())
    at = longest = 0
    data = page.tobytes()
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        longest = max(longest, length)
        at += 4 + length
    return longest
