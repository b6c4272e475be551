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

from contrada.deferred import compute as pc
from contrada.errors import InvalidInput
from contrada.files.arrow_types import is_binary, is_text, storage_type
from contrada.files.expanding import PIECE_BYTES
from contrada.files.parquet_footer import CODECS, Chunk, ParquetFooter, as_source
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
_MEASURED_MAX = 1_000_000  # values of a row group whose numbers in a dictionary are read beforehand
_BLOCK_ROWS = 1_024  # of which the bytes are added up together
_SHARED_MIN = 10  # so many times its dictionary a column must take to be read as codes
_SHARED_BYTES_MIN = 2**20  # and so many bytes
_SHARED_LENGTH_MIN = 256  # and so many at the mean in each row: to judge shorter ones takes no time
_LONG_MEAN = 64  # bytes of a text: to step over one is quicker than to look at all of them
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """How many rows to read at once, and which columns to read as dictionaries: those in lists, and
    those of texts and bytes, of which few stand for many rows."""

    rows: int
    packed: list[str]


@dataclass(slots=True)
class _Leaf:
    """What is known of a column without parts, over all row groups.

    `longest` is the longest value that may stand in any row, `starts` and `sizes` are the first
    rows and the bytes of pages whose values are all written out; `is_list` says that a row may
    have many values, `is_text` that they are texts or bytes, `width` how long if all are alike,
    `is_shared` that they are far fewer than the rows that have them.
    """

    path: str
    is_list: bool
    is_text: bool
    width: int
    longest: int = 0
    values: int = 0
    is_coded: bool = False
    is_shared: bool = False
    starts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _File:
    """A file that is looked at: how it is called, what its footer says to PyArrow and to us, how
    many rows are wanted at once. Of PyArrow's facts only the schema is to be asked."""

    path: Path
    opened: IO[bytes]
    facts: "pq.FileMetaData"
    footer: ParquetFooter
    rows_max: int
    place: str


def plan_reading(
    path: Path,
    facts: "pq.FileMetaData",
    footer: ParquetFooter,
    wanted: Sequence[str],
    rows_max: int,
    place: str,
) -> ReadingPlan:
    """Find how to read some columns of a file; refuse what would take far more than it does."""
    with path.open("rb") as opened:
        leaves = list(_survey(_File(path, opened, facts, footer, rows_max, place), wanted))
    rows = rows_max
    while rows > 1 and sum(_worst(leaf, rows, footer.rows) for leaf in leaves) > PIECE_BYTES:
        rows //= 2
    return ReadingPlan(rows, [leaf.path for leaf in leaves if _is_packed(leaf)])


def _survey(file: _File, wanted: Sequence[str]) -> Iterator[_Leaf]:
    facts = file.facts
    for index in range(facts.num_columns):
        column = facts.schema.column(index)
        if not any(column.path == name or column.path.startswith(f"{name}.") for name in wanted):
            continue
        is_text = column.physical_type == "BYTE_ARRAY"
        width = column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0
        leaf = _Leaf(column.path, column.max_repetition_level > 0, is_text, width)
        if not (leaf.is_list or is_text or width or _is_dense(file.footer, index)):
            continue
        row = 0
        for number, rows in enumerate(file.footer.group_rows):
            _look(file, number, file.footer.chunk(number, index), leaf, row)
            row += rows
        yield leaf


def _is_dense(footer: ParquetFooter, index: int) -> bool:
    """Whether a column is compressed so that a page may be far larger than in the file."""
    return not footer.codecs(index) <= {"uncompressed", "snappy"}


@dataclass(slots=True)
class _Chunk:
    """What the pages of a column say in one row group; `coded` counts the values of its dictionary,
    if they all come first."""

    dictionary: Page | None = None
    coded: int | None = 0
    values: int = 0
    stored: int = 0
    starts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


def _look(file: _File, number: int, chunk: Chunk, leaf: _Leaf, row: int) -> None:
    """Take in the pages of one row group."""
    where = f'{file.place}: column "{leaf.path}"'
    found = _Chunk()
    try:
        for page in read_page_headers(file.opened, chunk):
            _check_page(page, where)
            _take_page(page, found, leaf, row)
    except DamagedPage:
        pass  # Arrow will say so, with the row
    leaf.values += found.values
    if leaf.is_list:
        _check_list(leaf, found.values, found.stored, where)
    leaf.longest = max(leaf.longest, leaf.width)
    if found.dictionary is not None and leaf.is_coded:
        _take_dictionary(file, number, chunk, leaf, found, row)
    leaf.starts += found.starts
    leaf.sizes += found.sizes


def _take_page(page: Page, found: _Chunk, leaf: _Leaf, row: int) -> None:
    found.stored += page.stored_bytes
    if page.is_dictionary:
        found.dictionary = page
        return
    is_coded = page.encoding in DICTIONARY_ENCODINGS
    leaf.is_coded |= is_coded and leaf.is_text
    if is_coded and found.coded == found.values:
        found.coded += page.values
    elif is_coded:
        found.coded = None
    elif page.encoding == DELTA_BYTE_ARRAY:
        leaf.longest = max(leaf.longest, page.plain_bytes)
    else:
        found.starts.append(row + found.values)
        found.sizes.append(page.plain_bytes)
    found.values += page.values


def _take_dictionary(
    file: _File,
    number: int,
    chunk: Chunk,
    leaf: _Leaf,
    found: _Chunk,
    row: int,
) -> None:
    """Take in what the values that a dictionary stands for will take: all that they may, or, where
    that would be much, as much as they do."""
    page = found.dictionary
    assert page is not None
    values = leaf.values if leaf.is_list else min(file.rows_max, file.footer.rows)
    longest = page.plain_bytes - 4 * max(page.values - 1, 0)
    is_measured = not leaf.is_list and found.coded is not None and found.coded <= _MEASURED_MAX
    mean = longest // max(page.values, 1)  # where that is too long, so is the longest
    if _is_much(longest, values) and not (is_measured and mean * values > PIECE_BYTES):
        longest = _find_longest(file.opened, chunk, page, longest)
    sizes = None
    if is_measured and _is_much(longest, values):
        sizes = _measure(file, number, leaf.path, found.coded or 0)
    if sizes is not None and _is_shared(sum(sizes), page, found.coded or 0):
        leaf.is_shared |= _can_be_coded(file, leaf.path)
    if leaf.is_shared:
        pass  # whoever reads codes writes nothing out
    elif sizes is None or longest * values <= PIECE_BYTES:
        leaf.longest = max(leaf.longest, longest)
    else:
        found.starts[:0] = range(row, row + (found.coded or 0), _BLOCK_ROWS)
        found.sizes[:0] = sizes


def _is_much(longest: int, values: int) -> bool:
    """Whether it is worth a look how often the values of a dictionary stand in a column."""
    return longest >= _SHARED_LENGTH_MIN and longest * values > _SHARED_BYTES_MIN


def _is_shared(written: int, dictionary: Page, rows: int) -> bool:
    """Whether the rows that a dictionary stands for should be read as codes."""
    times = max(_SHARED_MIN * dictionary.plain_bytes, _SHARED_LENGTH_MIN * rows)
    return written > max(times, _SHARED_BYTES_MIN)


def _can_be_coded(file: _File, name: str) -> bool:
    """Whether a column, not one inside another, is of texts or bytes for Arrow, too."""
    schema = file.facts.schema.to_arrow_schema()
    if schema.names.count(name) != 1:
        return False
    kind = storage_type(schema.field(name).type)
    kind = storage_type(kind.value_type) if pa.types.is_dictionary(kind) else kind
    return is_text(kind) or is_binary(kind)


def _measure(file: _File, number: int, name: str, rows: int) -> list[int] | None:
    """Add up the bytes of the first rows of a group, block by block; None where Arrow cannot."""
    import pyarrow.parquet as pq

    try:
        reader = pq.ParquetFile(
            as_source(file.path), metadata=file.facts, read_dictionary=[name], pre_buffer=False
        )
        batches = reader.iter_batches(rows, row_groups=[number], columns=[name], use_threads=False)
        column = next(iter(batches)).column(0)
        if len(column) != rows or not pa.types.is_dictionary(column.type):
            return None
        lengths = pc.binary_length(column.dictionary).fill_null(0).to_numpy(zero_copy_only=False)
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    except (pa.ArrowException, OSError, StopIteration):
        return None  # who reads the rows will say what is wrong with them
    sizes = np.append(lengths.astype(np.int64), 0)[codes]
    return [int(part) for part in np.add.reduceat(sizes, range(0, rows, _BLOCK_ROWS))]


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
    return leaf.is_shared or (
        leaf.is_list and leaf.is_coded and leaf.longest * leaf.values > PIECE_BYTES
    )


def _worst(leaf: _Leaf, rows: int, rows_in_file: int) -> float:
    """Return the bytes that so many rows of a column may take."""
    if leaf.is_list:
        size = _CODE_BYTES if _is_packed(leaf) else max(leaf.longest, _CODE_BYTES)
        all_ = leaf.values * size + sum(leaf.sizes)
        return all_ * min(1, rows / max(rows_in_file, 1))
    coded = rows * (max(leaf.longest, _CODE_BYTES) if leaf.is_shared else leaf.longest)
    if not leaf.starts:
        return coded
    starts = np.asarray(leaf.starts)
    total = np.concatenate([[0.0], np.cumsum(leaf.sizes, dtype=np.float64)])
    ends = np.append(starts[1:], np.iinfo(np.int64).max - rows)
    after = np.searchsorted(starts, ends + rows - 1)
    return float(coded + (total[after] - total[:-1]).max())


def _find_longest(file: IO[bytes], chunk: Chunk, page: Page, longest: int) -> int:
    """Find the length of the longest text of a dictionary; what is not one is left to Arrow."""
    file.seek(page.data_at)
    raw = file.read(page.stored_bytes)
    codec = CODECS[chunk.codec]
    try:
        if codec != "uncompressed":
            raw = pa.decompress(raw, page.plain_bytes, codec=codec)
        return longest_text(np.frombuffer(raw, np.uint8), page.values)
    except (pa.ArrowException, ValueError, OSError, struct.error):
        return longest


def longest_text(page: NDArray[np.uint8], count: int) -> int:
    """Return the length of the longest of some texts that follow each other, each after its length.

    How many there are is only a hint.
    """
    if len(page) < 4:
        return 0
    if len(page) > _LONG_MEAN * count:
        return _longest_by_steps(page)
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
    return _longest_by_steps(page)


def _longest_by_steps(page: NDArray[np.uint8]) -> int:
    at = longest = 0
    data = page.data
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        longest = max(longest, length)
        at += 4 + length
    return longest
