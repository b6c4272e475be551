"""Newline-delimited GeoJSON and JSON, and GeoJSON text sequences (RFC 8142)."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from contrada.errors import InvalidInput
from contrada.files.blank_lines import BLANK_LINES, skip_blank_lines
from contrada.files.crs import CRS84
from contrada.files.json_rows import Record, Survey, read_json_rows
from contrada.files.json_window import describe_fault
from contrada.files.rows import Rows
from contrada.limits import ROW_BYTES_MAX

SUFFIXES = (".geojsonl", ".geojsons", ".ndgeojson", ".ndjson", ".jsonl")
RECORD_SEPARATOR = b"\x1e"
_PIECE_BYTES = 2**20


def read_json_lines(
    path: Path, name: str, *, batch_rows: int, columns: Sequence[str] | None
) -> Rows:
    """Read one JSON object per line; a Feature becomes its id, properties and geometry."""

    def open_records() -> Iterator[Record]:
        with path.open("rb") as file:
            for line, text in split_texts(file, name):
                yield decode_text(text, line, name), len(text)

    def open_lines() -> Iterator[int]:
        with path.open("rb") as file:
            for line, _ in split_texts(file, name):
                yield line

    return read_json_rows(
        name, open_records, open_lines, _find_crs, batch_rows=batch_rows, columns=columns
    )


def _find_crs(survey: Survey) -> str | None:
    return CRS84 if survey.has_features else None


def split_texts(
    file: IO[bytes], name: str, *, is_lenient: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Split a file into texts, each with its first line; blank ones are left out.

    Once a record separator has been met, a text goes on to the next one, over several lines. One
    that is too long is refused, or where `is_lenient`, empty: the next one begins after it.
    """
    held: list[bytes] = []
    first = 1
    length = 0
    is_sequence = is_skipping = False
    number = 0
    while line := file.readline(ROW_BYTES_MAX + 1):
        number += 1
        starts = line.startswith(RECORD_SEPARATOR)
        is_sequence = is_sequence or starts
        if starts or not is_sequence:
            yield from _nonblank(first, held)
            held, first, length = [], number, 0
            is_skipping = False
        if not is_sequence and line.isspace():
            number += skip_blank_lines(file, BLANK_LINES)[0]
            continue
        if not is_skipping:
            held.append(line)
            length += len(line)
        if length > ROW_BYTES_MAX:
            if not is_lenient:
                what = f"line {first} is" if number == first else f"lines {first} to {number} are"
                raise InvalidInput(f"{name}: {what} {describe_length()}")
            yield first, b""
            held, length, is_skipping = [], 0, True
        if is_skipping:
            _skip_line(file, line)
    yield from _nonblank(first, held)


def describe_length() -> str:
    """Return what a line is that is too long."""
    return f"longer than {ROW_BYTES_MAX:,} bytes (ROW_BYTES_MAX)"


def _skip_line(file: IO[bytes], begun: bytes) -> None:
    """Read to the end of a line, of which a piece was read, and keep none of it."""
    while begun and not begun.endswith(b"\n"):
        begun = file.readline(_PIECE_BYTES)


def _nonblank(line: int, parts: list[bytes]) -> Iterator[tuple[int, bytes]]:
    text = b"".join(parts).strip(RECORD_SEPARATOR + b" \t\r\n")
    if text and text != b"\xef\xbb\xbf":
        yield line, text


def decode_text(text: bytes, line: int, name: str) -> object:
    """Decode a text; an error names its line."""
    try:
        return json.loads(text.decode("utf-8-sig" if line == 1 else "utf-8"))
    except json.JSONDecodeError as fault:
        near = fault.doc[fault.pos : fault.pos + 20]
        place = f"{name}: line {line + fault.lineno - 1}, column {fault.colno}"
        raise InvalidInput(f"{place}: {fault.msg}, near {near!r}") from fault
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"{name}: line {line} is not UTF-8: {fault.reason}") from fault
    except (RecursionError, ValueError) as fault:
        raise InvalidInput(f"{name}: line {line}: {describe_fault(fault)}") from fault
