"""A delimited text file as columns of text: its header, its cells, and where it is damaged."""

import csv
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
import pyarrow.csv as pa_csv

from contrada.errors import InvalidInput

BLOCK_BYTES = 4 * 2**20
BLOCK_BYTES_MAX = 2**30


class RowTooLong(Exception):
    """A row does not fit in a block."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A delimited file; the first `header_lines` lines hold the header, `block_bytes` any row."""

    path: Path
    name: str
    delimiter: str
    header: tuple[str, ...]
    header_lines: int
    has_rows: bool
    block_bytes: int = BLOCK_BYTES

    def read_cells(self) -> Iterator[pa.RecordBatch]:
        """Read all cells as text, in batches; an empty cell is null."""
        if not self.has_rows:
            return
        with open_bytes(self.path) as file:
            try:
                yield from self._read_blocks(file)
            except pa.ArrowInvalid as fault:
                if "straddl" in str(fault) or "file or block" in str(fault):
                    raise RowTooLong from fault
                raise self.fault(find_damage(self) or str(fault)) from fault
            except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
                raise self.fault(f"damaged gzip: {fault}") from fault

    def with_larger_blocks(self) -> "Sheet":
        """Give the same sheet, read in blocks four times as large."""
        if self.block_bytes >= BLOCK_BYTES_MAX:
            raise self.fault(find_damage(self) or f"a row is longer than {BLOCK_BYTES_MAX} bytes")
        return replace(self, block_bytes=self.block_bytes * 4)

    def fault(self, reason: str) -> InvalidInput:
        """Say what to raise for this file."""
        return InvalidInput(f"{self.name}: {reason}")

    def _read_blocks(self, file: IO[bytes]) -> Iterator[pa.RecordBatch]:
        yield from pa_csv.open_csv(
            file,
            pa_csv.ReadOptions(
                use_threads=False,
                block_size=self.block_bytes,
                skip_rows=self.header_lines,
                column_names=list(self.header),
            ),
            pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pa_csv.ConvertOptions(
                column_types=dict.fromkeys(self.header, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )


def open_sheet(path: Path, name: str) -> Sheet:
    """Read the header of a delimited file; the suffix tells commas from tabs."""
    delimiter = "\t" if ".tsv" in path.name.lower()[-7:] else ","
    try:
        with open_bytes(path) as file:
            lines = _decode_lines(file)
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            header = next((row for row in reader if row), [])
            header_lines = reader.line_num
            has_rows = any(line.strip("\r\n") for line in lines)
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"{name}: the header is not UTF-8: {fault.reason}") from fault
    except (csv.Error, EOFError, zlib.error, gzip.BadGzipFile) as fault:
        raise InvalidInput(f"{name}: the header cannot be read: {fault}") from fault
    if not header:
        raise InvalidInput(f"{name}: the file is empty; a header is expected")
    names = tuple(cell.strip() for cell in header)
    sheet = Sheet(path, name, delimiter, names, header_lines, has_rows)
    if has_rows and _has_odd_quotes(sheet):
        damage = find_damage(sheet)
        if damage:
            raise sheet.fault(damage)
    return sheet


def find_damage(sheet: Sheet) -> str | None:
    """Find the first line at fault and why, with a strict reader; slow, so only on damage."""
    with open_bytes(sheet.path) as file:
        reader = csv.reader(_decode_lines(file), delimiter=sheet.delimiter, strict=True)
        line = 1
        try:
            for row in reader:
                if row and len(row) != len(sheet.header):
                    return f"line {line} has {len(row)} cells, the header {len(sheet.header)}"
                line = reader.line_num + 1
        except UnicodeDecodeError as fault:
            return f"line {reader.line_num + 1} is not UTF-8: {fault.reason}"
        except csv.Error as fault:
            if "field larger" in str(fault):
                return None  # a limit of this reader, not a fault of the file
            is_unclosed = "unexpected end of data" in str(fault)
            return f"line {line}: {'a quote is not closed' if is_unclosed else fault}"
        except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
            return f"damaged gzip: {fault}"
    return None


def open_bytes(path: Path) -> IO[bytes]:
    """Open the file's bytes, decompressed where its suffix says so."""
    if path.suffix.lower() == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")


def _decode_lines(file: IO[bytes]) -> Iterator[str]:
    for number, line in enumerate(file):
        yield line.decode("utf-8" if number else "utf-8-sig")


def _has_odd_quotes(sheet: Sheet) -> bool:
    """Tell whether some quote may be open at the end, which the fast reader would not say."""
    count = 0
    with open_bytes(sheet.path) as file:
        try:
            while chunk := file.read(BLOCK_BYTES):
                count += chunk.count(b'"')
        except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
            raise sheet.fault(f"damaged gzip: {fault}") from fault
    return count % 2 == 1
