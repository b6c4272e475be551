"""The headers of the pages of a Parquet file: how large each is, before anything is unpacked.

A footer may say anything; what a reader allocates is what stands before each page. The headers are
structs of Thrift's compact protocol, of which this module knows as much as it takes to find them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from contrada.files.parquet_footer import Chunk

DICTIONARY_PAGE = 2
DICTIONARY_ENCODINGS = frozenset({2, 8})
DELTA_BYTE_ARRAY = 7
_WINDOW_BYTES, _HEADER_BYTES_MAX = 512, 16 * 2**20
_DEPTH_MAX = 8
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8  # fields of a header: which kind of page it is of


class DamagedPage(Exception):
    """What should be the header of a page is none."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its bytes before and after decompression, its values and how they are encoded."""

    is_dictionary: bool
    plain_bytes: int
    stored_bytes: int
    values: int
    encoding: int
    data_at: int


def read_page_headers(file: IO[bytes], chunk: Chunk) -> Iterator[Page]:
    """Yield the pages of one column of one row group; at damage, raise `DamagedPage`."""
    at = chunk.data_at
    if 0 < chunk.dictionary_at < at:
        at = chunk.dictionary_at
    end, left = at + chunk.stored_bytes, chunk.values
    while at < end and left > 0:
        page = _read_header(file, at)
        yield page
        left -= 0 if page.is_dictionary else page.values
        at = page.data_at + page.stored_bytes


def _read_header(file: IO[bytes], at: int) -> Page:
    size = _WINDOW_BYTES
    while True:
        file.seek(at)
        window = file.read(size)
        try:
            fields, length = _read_struct(window, 0, 0)
            return _as_page(fields, at + length)
        except IndexError:
            if len(window) < size or size > _HEADER_BYTES_MAX:
                raise DamagedPage from None
            size *= 8


def _as_page(fields: dict[int, Any], data_at: int) -> Page:
    kind = next((kind for kind in (_DATA, _DATA_2, _DICTIONARY) if kind in fields), 0)
    about = fields.get(kind, {})
    sizes = fields.get(2), fields.get(3), about.get(1, 0) if isinstance(about, dict) else None
    if not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise DamagedPage
    encoding = about.get(4 if kind == _DATA_2 else 2, 0)
    plain, stored, values = (size if isinstance(size, int) else 0 for size in sizes)
    return Page(fields.get(1) == DICTIONARY_PAGE, plain, stored, values, encoding, data_at)


def _read_struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    if depth > _DEPTH_MAX:
        raise DamagedPage
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return fields, at
        kind, step = head & 15, head >> 4
        if step:
            number += step
        else:
            number, at = _read_number(data, at)
        fields[number], at = _read_value(data, at, kind, depth)


def _read_value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, at
    if kind == _BYTE:
        return data[at], at + 1
    if _BYTE < kind < _DOUBLE:
        return _read_number(data, at)
    if kind == _DOUBLE:
        return None, at + 8
    if kind == _BINARY:
        length, at = _read_varint(data, at)
        if at + length > len(data):
            raise IndexError
        return None, at + length
    if kind in (_LIST, _SET):
        return _read_list(data, at, depth)
    if kind == _STRUCT:
        return _read_struct(data, at, depth + 1)
    raise DamagedPage  # maps are in no header


def _read_list(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    head = data[at]
    count, at = (head >> 4, at + 1) if head >> 4 < 15 else _read_varint(data, at + 1)
    kind = head & 15
    for _ in range(count):
        is_boolean = kind in (_TRUE, _FALSE)
        _, at = _read_value(data, at, _BYTE if is_boolean else kind, depth + 1)
    return None, at


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """Read an integer in zigzag: the last bit is the sign."""
    number, at = _read_varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift > 63:
            raise DamagedPage
