"""A first pass over a delimited file: how many rows it has, and whether all of them are whole.

What the fast reader would pass over in silence is found here: quotes that are not closed, text
after a closing quote, rows of another number of cells, and rows that do not fit in memory. It looks
at bytes, so that a row is never decoded that will be refused.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from contrada.errors import InvalidInput
from contrada.kernels.boxtree import Ints
from contrada.kernels.delimiting import (
    CELLS,
    FAULT,
    LINE_NUMBER,
    LISTED,
    LISTED_OF_A_ROW,
    MODE,
    NO_FAULT,
    NO_LIST,
    QUOTE_LINE,
    QUOTED,
    RAGGED,
    RAGGED_LINES,
    ROW_LINE,
    ROW_TOO_LONG,
    ROWS,
    SUSPECTS,
    TEXT_AFTER_QUOTE,
    kinds_of_bytes,
    scan_rows,
    start_rows,
)
from contrada.limits import ROW_BYTES_MAX

SCAN_BYTES = 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GZIP_FAULTS = (EOFError, zlib.error, gzip.BadGzipFile)


_LINE_END = re.compile(rb"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class Suspect:
    """A row with a quoted cell over several lines, most of which might be rows of their own."""

    first_line: int
    quote_line: int
    text: bytes

    @property
    def last_line(self) -> int:
        """The line in which the row ends."""
        return self.first_line + len(_LINE_END.findall(self.text))


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows there are after the header, and how many suspects and ragged ones of them."""

    rows: int
    suspects: int
    ragged: int


@dataclass(slots=True)
class SheetScan:
    """A scan of one file, from its beginning with each method."""

    path: Path
    name: str
    delimiter: str
    columns: int
    _state: NDArray[np.int64] = field(default_factory=start_rows)

    def count(self) -> RowCounts:
        """Count the rows; a fault that makes the others doubtful is refused with its line."""
        self._state = start_rows()
        with open_bytes(self.path) as file:
            for block in self._blocks(file):
                self._go_on(block, NO_LIST)
        self._go_on(b"\n", NO_LIST)  # the last line may have no end; a blank one changes nothing
        state = self._state
        return RowCounts(int(state[ROWS]) - 1, int(state[SUSPECTS]), int(state[RAGGED]))

    def suspects(self) -> Iterator[list[Suspect]]:
        """Iterate over the suspects, of many rows at a time."""
        for text, bounds, listed in self._list_texts():
            found = np.flatnonzero(listed[:, 3]).tolist()
            yield [
                Suspect(
                    int(listed[row, 0]),
                    int(listed[row, 3]),
                    text[bounds[row] : bounds[row + 1]].strip(b"\r\n"),
                )
                for row in found
            ]

    def first_lines(self) -> Iterator[int]:
        """Yield the line at which each row begins, the header too."""
        for _, listed in self._list_rows():
            yield from listed[:, 0].tolist()

    def ragged(self) -> Iterator[tuple[int, int]]:
        """Yield the number and the width of each row that is not as wide as the header.

        Rows are counted from 0, after the header.
        """
        first_row = -1
        for _, listed in self._list_rows():
            widths = listed[:, 1]
            ragged = np.flatnonzero(widths != self.columns)
            yield from zip((first_row + ragged).tolist(), widths[ragged].tolist(), strict=True)
            first_row += len(widths)

    def without_ragged(self) -> Iterator[bytes]:
        """Yield the text of the file, in pieces, as it would be without its ragged rows."""
        for text, bounds, listed in self._list_texts():
            pieces, at = [], 0
            for row in np.flatnonzero(listed[:, 1] != self.columns).tolist():
                pieces.append(text[at : bounds[row]])
                at = bounds[row + 1]
            yield b"".join([*pieces, text[at : bounds[-1]]])

    def _list_texts(self) -> Iterator[tuple[bytes, list[int], Ints]]:
        """Yield block by block the rows that end there: their text, bounds in it, and numbers.

        Blank lines belong to the row after them.
        """
        held = b""  # the row at hand, as far as it lies in blocks before this one
        for block, listed in self._list_rows():
            text, bounds = held + block, [0, *(len(held) + listed[:, 2]).tolist()]
            yield text, bounds, listed
            held = text[bounds[-1] :]

    def _list_rows(self) -> Iterator[tuple[bytes, Ints]]:
        """Yield block by block what `scan_rows` lists of the rows that end there."""
        self._state = start_rows()
        with open_bytes(self.path) as file:
            for block in chain(self._blocks(file), [b"\n"]):  # the last line may have no end
                listed = np.empty((len(block), LISTED_OF_A_ROW), np.int64)
                self._state[LISTED] = 0
                self._go_on(block, listed)
                yield block, listed[: self._state[LISTED]]

    def _blocks(self, file: IO[bytes]) -> Iterator[bytes]:
        try:
            block = file.read(SCAN_BYTES).removeprefix(BYTE_ORDER_MARK)
            while block:
                yield block
                block = file.read(SCAN_BYTES)
        except GZIP_FAULTS as fault:
            raise InvalidInput(f"{self.name}: damaged gzip: {fault}") from fault
        if self._state[MODE] == QUOTED:
            raise InvalidInput(
                f"{self.name}: line {self._state[QUOTE_LINE]}: a quote is not closed"
            )

    def _go_on(self, block: bytes, listed: Ints) -> None:
        kinds, array, state = (
            kinds_of_bytes(self.delimiter),
            np.frombuffer(block, np.uint8),
            self._state,
        )
        at = scan_rows(array, 0, kinds, self.columns, ROW_BYTES_MAX, state, listed)
        if state[FAULT] != NO_FAULT:
            near = block[at - 1 : at + 19].decode(errors="replace")
            raise InvalidInput(f"{self.name}: {self._explain(near)}")

    def _explain(self, near: str) -> str:
        state = self._state
        match int(state[FAULT]):
            case fault if fault == TEXT_AFTER_QUOTE:
                opens, closes = state[QUOTE_LINE], state[LINE_NUMBER]
                where = f", which opens in line {opens}" if opens < closes else ""
                return (
                    f"line {closes}: text follows the closing quote of a cell{where}: "
                    f"{near!r}; write a quote inside a cell as two quotes"
                )
            case fault if fault == ROW_TOO_LONG and state[MODE] == QUOTED:
                return (
                    f"line {state[QUOTE_LINE]}: a quote is not closed within "
                    f"{ROW_BYTES_MAX:,} bytes (ROW_BYTES_MAX)"
                )
            case fault if fault == ROW_TOO_LONG:
                return (
                    f"line {state[ROW_LINE]} is longer than {ROW_BYTES_MAX:,} bytes (ROW_BYTES_MAX)"
                )
        assert state[FAULT] == RAGGED_LINES
        return (
            f"line {state[ROW_LINE]} {describe_ragged(int(state[CELLS]), self.columns)}; "
            f"the row continues to line {state[LINE_NUMBER] - 1}; was a quote left open?"
        )


def describe_ragged(cells: int, columns: int) -> str:
    """Describe what is wrong with a ragged row."""
    return f"has {cells:,} cell{'s' if cells > 1 else ''}; the header has {columns:,}"


def open_bytes(path: Path) -> IO[bytes]:
    """Open the file's bytes, decompressed where its suffix says so."""
    if path.suffix.lower() == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")
