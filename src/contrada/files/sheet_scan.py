"""A first pass over a delimited file: how many rows it has, and whether all of them are whole.

What the fast reader would pass over in silence is found here: quotes that are not closed, text
after a closing quote, and rows that do not fit in memory. It looks at bytes, so that a row is
never decoded that will be refused.
"""

import gzip
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
    LINE,
    LISTED,
    MODE,
    NO_FAULT,
    NO_LIST,
    OTHER_CELLS,
    QUOTE_LINE,
    QUOTED,
    ROW_BYTES,
    ROW_LINE,
    ROW_TOO_LONG,
    ROWS,
    SUSPECT,
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


@dataclass(frozen=True, slots=True)
class Suspect:
    """A row with a quoted cell over several lines, most of which might be rows of their own."""

    first_line: int
    quote_line: int
    last_line: int
    text: bytes


@dataclass(slots=True)
class SheetScan:
    """A scan of one file; when `suspects` is used up, `rows` counts the rows, header included."""

    path: Path
    name: str
    delimiter: str
    columns: int
    _state: NDArray[np.int64] = field(default_factory=start_rows)

    @property
    def rows(self) -> int:
        """How many rows there are so far."""
        return int(self._state[ROWS])

    def count_suspects(self) -> int:
        """Scan the whole file; a fault is refused with its line."""
        for _ in self._scan(stops=False):
            pass
        return int(self._state[SUSPECTS])

    def suspects(self) -> Iterator[Suspect]:
        """Scan the whole file again and give the suspects."""
        self._state = start_rows()
        return self._scan(stops=True)

    def first_lines(self) -> Iterator[int]:
        """Scan the whole file again and give the line at which each row begins, the header too."""
        self._state = start_rows()
        with open_bytes(self.path) as file:
            for block in chain(self._blocks(file), [b"\n"]):  # the last line may have no end
                lines = np.empty(len(block), np.int64)
                self._state[LISTED] = 0
                self._go_on(block, 0, stops=False, lines=lines)
                yield from lines[: self._state[LISTED]].tolist()

    def _scan(self, *, stops: bool) -> Iterator[Suspect]:
        held = b""  # the row at hand, as far as it lies in blocks before this one
        with open_bytes(self.path) as file:
            for block in self._blocks(file):
                at = 0
                while at < len(block):
                    at = self._go_on(block, at, stops)
                    if self._state[FAULT] == SUSPECT:
                        yield self._describe((held + block[:at]).rstrip(b"\r\n"))
                if stops:
                    length = int(self._state[ROW_BYTES]) if self._state[FAULT] == NO_FAULT else 0
                    held = (held + block)[len(held) + len(block) - length :]
        self._go_on(b"\n", 0, stops)  # the last line may have no end; a blank one changes nothing
        if self._state[FAULT] == SUSPECT:
            yield self._describe(held)

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

    def _go_on(self, block: bytes, at: int, stops: bool, lines: Ints = NO_LIST) -> int:
        kinds = kinds_of_bytes(self.delimiter)
        array = np.frombuffer(block, np.uint8)
        at = scan_rows(array, at, kinds, self.columns, ROW_BYTES_MAX, stops, self._state, lines)
        if self._state[FAULT] not in (NO_FAULT, SUSPECT):
            near = block[at - 1 : at + 19].decode(errors="replace")
            raise InvalidInput(f"{self.name}: {self._explain(near)}")
        return at

    def _describe(self, text: bytes) -> Suspect:
        state = self._state
        return Suspect(
            int(state[ROW_LINE]),
            int(state[QUOTE_LINE]),
            int(state[LINE]) - 1,
            text[len(text) - int(state[ROW_BYTES]) :],
        )

    def _explain(self, near: str) -> str:
        state = self._state
        match int(state[FAULT]):
            case fault if fault == TEXT_AFTER_QUOTE:
                opens, closes = state[QUOTE_LINE], state[LINE]
                where = f", which opens in line {opens}" if opens < closes else ""
                return (
                    f"line {closes}: there is text after the closing quote of a cell{where}: "
                    f"{near!r}; write a quote inside a cell as two"
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
        assert state[FAULT] == OTHER_CELLS
        return f"line {state[ROW_LINE]} has {state[CELLS]} cells, the header {self.columns}"


def open_bytes(path: Path) -> IO[bytes]:
    """Open the file's bytes, decompressed where its suffix says so."""
    if path.suffix.lower() == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")
