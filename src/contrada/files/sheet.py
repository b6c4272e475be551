"""A delimited text file as columns of text: its header, its cells, and where it is damaged."""

import csv
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO

import pyarrow as pa

from contrada.deferred import csv as pa_csv
from contrada.errors import InvalidInput
from contrada.files.blank_lines import skip_blank_lines
from contrada.files.ragged import insert_ragged, open_pieces
from contrada.files.sheet_scan import BYTE_ORDER_MARK, GZIP_FAULTS, SheetScan, open_bytes
from contrada.files.swallowed import find_swallowed
from contrada.files.text_types import ColumnTypes
from contrada.limits import COLUMNS_MAX, ROW_BYTES_MAX
from contrada.showing import brief

BLOCK_BYTES = 4 * 2**20


class RowTooLong(Exception):
    """A row does not fit in a block."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A delimited file of `count` rows after `header_lines` lines of header.

    These are `header_bytes` bytes, without a byte order mark. Any row fits in a block of
    `block_bytes`. Of the rows, `suspects` go over several lines that might be rows of their own,
    and `ragged` have another number of cells than the header.
    """

    path: Path
    name: str
    delimiter: str
    header: tuple[str, ...]
    header_lines: int
    header_bytes: int
    count: int
    suspects: int
    ragged: int
    block_bytes: int = BLOCK_BYTES

    def read_rows(
        self, columns: Collection[str]
    ) -> Iterator[tuple[pa.RecordBatch, dict[int, int]]]:
        """Read all rows: batches of cells, and the numbers of cells of ragged rows by position.

        Of a ragged row all cells are null. The batches have only those of the header's columns that
        are asked for, since a ragged row of a few bytes has a cell in each.
        """
        wanted = [column for column in self.header if column in columns] or [self.header[0]]
        batches = (batch.select(wanted) for batch in self.read_cells())
        if self.ragged:
            yield from insert_ragged(batches, wanted, self._scan().ragged())
        else:
            yield from ((batch, {}) for batch in batches)

    def read_cells(self) -> Iterator[pa.RecordBatch]:
        """Read the cells of all rows but ragged ones as text; an empty cell is null."""
        if self.count == self.ragged:
            return
        with self._open_whole_rows() as file:
            try:
                yield from self._read_blocks(file)
            except pa.ArrowInvalid as fault:
                if "straddl" in str(fault) or "file or block" in str(fault):
                    raise RowTooLong from fault
                raise self.fault(_find_other_text(self) or str(fault)) from fault
            except GZIP_FAULTS as fault:
                raise self.fault(f"damaged gzip: {fault}") from fault

    def with_larger_blocks(self) -> "Sheet":
        """Return the same sheet, read in blocks four times as large."""
        assert self.block_bytes <= ROW_BYTES_MAX, "the scan has refused longer rows"
        return replace(self, block_bytes=self.block_bytes * 4)

    def refuse_swallowed(self, columns: dict[str, ColumnTypes]) -> None:
        """Refuse a cell that has swallowed rows, or warn of it, by what is known of all columns."""
        blank = {column: ColumnTypes() for column in columns}
        doubts: list[str] = []
        for suspects in self._scan().suspects():
            in_header = [one for one in suspects if one.first_line <= self.header_lines]
            for some, known in ((in_header, blank), (suspects[len(in_header) :], columns)):
                for swallowed in find_swallowed(some, self.delimiter, known):
                    if swallowed.is_certain:
                        raise self.fault(swallowed.reason)
                    doubts.append(swallowed.reason)
        if doubts:
            more = f" ({len(doubts) - 1:,} more cells look like it)" if len(doubts) > 1 else ""
            warnings.warn(f"{self.name}: {doubts[0]}{more}", stacklevel=2)

    def first_lines(self) -> Iterator[int]:
        """Iterate over the lines at which the rows begin."""
        return islice(self._scan().first_lines(), 1, None)

    def fault(self, reason: str) -> InvalidInput:
        """Return the error to raise for this file."""
        return InvalidInput(f"{self.name}: {reason}")

    def _scan(self) -> SheetScan:
        return SheetScan(self.path, self.name, self.delimiter, len(self.header))

    def _open_whole_rows(self) -> IO[bytes]:
        """Open the file after its header, without its ragged rows: Arrow decodes what it skips."""
        if self.ragged:
            file = open_pieces(self._scan().without_ragged())
        else:
            file = open_bytes(self.path)
            if file.read(len(BYTE_ORDER_MARK)) != BYTE_ORDER_MARK:
                file.seek(0)
        _skip_bytes(file, self.header_bytes)
        return file

    def _read_blocks(self, file: IO[bytes]) -> Iterator[pa.RecordBatch]:
        yield from pa_csv.open_csv(
            file,
            pa_csv.ReadOptions(
                use_threads=False,
                block_size=self.block_bytes,
                column_names=list(self.header),
            ),
            pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            pa_csv.ConvertOptions(
                column_types=dict.fromkeys(self.header, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )


def _skip_bytes(file: IO[bytes], count: int) -> None:
    while count > 0 and (text := file.read(min(count, BLOCK_BYTES))):
        count -= len(text)


def open_sheet(path: Path, name: str) -> Sheet:
    """Read the header of a delimited file and scan it; the suffix tells commas from tabs."""
    delimiter = "\t" if ".tsv" in path.name.lower()[-7:] else ","
    try:
        with open_bytes(path) as file:
            lines = _HeaderLines(file, name)
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            header = next((row for row in reader if row), [])
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"{name}: the header is not UTF-8: {fault.reason}") from fault
    except (csv.Error, *GZIP_FAULTS) as fault:
        is_old = str(fault).startswith("new-line character seen")
        reason = "lines end with CR alone; end them with LF or CR LF" if is_old else fault
        raise InvalidInput(f"{name}: the header cannot be read: {reason}") from fault
    if not header:
        raise InvalidInput(f"{name}: the file is empty; a header is expected")
    _refuse_other_delimiter(header, delimiter, name)
    if len(header) > COLUMNS_MAX:
        raise InvalidInput(
            f"{name}: its header has {len(header):,} columns; "
            f"the limit is {COLUMNS_MAX:,} (COLUMNS_MAX)"
        )
    found = SheetScan(path, name, delimiter, len(header)).count()
    names = tuple(cell.strip() for cell in header)
    counts = (found.rows, found.suspects, found.ragged)
    return Sheet(path, name, delimiter, names, lines.number, lines.length, *counts)


def _refuse_other_delimiter(header: list[str], delimiter: str, name: str) -> None:
    """Refuse a header of one cell that another delimiter would make several of."""
    others = {",": "commas", "\t": "tabs", ";": "';'", "|": "'|'"}
    own = others.pop(delimiter)
    found = next((other for other in others if len(header) == 1 and other in header[0]), None)
    if found is None:
        return
    suffix, rival = (".csv", ",") if delimiter == "\t" else (".tsv", "\t")
    elsewhere = f"name it {suffix}" if found == rival else f"as {suffix} with {others[rival]}"
    raise InvalidInput(
        f"{name}: the header has one column, {brief(header[0])}: its cells seem to be separated by "
        f"{others[found]}, not by {own}; save the file with {own}, or {elsewhere}"
    )


def _find_other_text(sheet: Sheet) -> str | None:
    """Find the first line that is not UTF-8."""
    with open_bytes(sheet.path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as fault:
                return f"line {number} is not UTF-8: {fault.reason}"
    return None


class _HeaderLines:
    """The lines of a header; blank ones before it may be many, but none may be long.

    `number` of them, and `length` bytes without a byte order mark, have been read.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self.number = self.length = 0

    def __iter__(self) -> Iterator[str]:
        has_begun = False
        while line := self._file.readline(ROW_BYTES_MAX + 1):
            self.number += 1
            if self.number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK)
            self.length += len(line)
            if len(line) > ROW_BYTES_MAX:
                what = f"line {self.number} is longer than {ROW_BYTES_MAX:,} bytes (ROW_BYTES_MAX)"
                raise InvalidInput(f"{self._name}: {what}")
            has_begun = has_begun or line not in (b"\n", b"\r\n")
            if not has_begun:
                lines, length = skip_blank_lines(self._file)
                self.number += lines
                self.length += length
            yield line.decode()
