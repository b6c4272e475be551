"""JSON text of any length, decoded value by value from a window that moves over the file.

The window grows only as far as the value at hand needs, so memory is bounded by the largest
value, not by the file; a value beyond a limit is refused.
"""

import codecs
import json
import re
from typing import IO, Any

from contrada.errors import InvalidInput
from contrada.limits import DIGITS_MAX, JSON_DEPTH_MAX, ROW_BYTES_MAX

CHUNK_BYTES = 2**20
CUT_CHARACTERS = 16  # no literal, escape or number's beginning that a cut can spoil is longer
BLANK = re.compile(r"[ \t\r\n]*")


def describe_fault(fault: RecursionError | ValueError) -> str:
    """Explain why Python refuses JSON that is well-formed."""
    if isinstance(fault, RecursionError):
        return f"a value is nested deeper than {JSON_DEPTH_MAX} (JSON_DEPTH_MAX)"
    return f"a number has more than {DIGITS_MAX:,} digits (DIGITS_MAX)"


class JsonWindow:
    """A cursor in the JSON text of an open file; `name` is for messages."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._decode_bytes = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._decode_value = json.JSONDecoder().raw_decode
        self._bytes_read = 0
        self._text = ""
        self._at = 0
        self._is_last = False
        self._line = 1
        self._column = 1
        self._counted = 0  # how far into the text `_line` counts
        self.marked_line = 1

    def peek(self) -> str:
        """Return the next character that is not blank; empty at the end of the file."""
        while True:
            blank = BLANK.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._text) or self._is_last:
                return self._text[self._at : self._at + 1]
            self._fill()

    def mark(self) -> None:
        """Note in `marked_line` the line of the next character that is not blank."""
        self.peek()
        self.marked_line = self._count_lines()

    def take(self, character: str) -> None:
        """Step over the next character, which must be this one."""
        if self.peek() != character:
            raise self.fault(f'expected "{character}"')
        self._at += 1

    def value(self) -> tuple[Any, int]:
        """Decode the next value and step over it; with it, the number of its characters."""
        self.peek()
        while True:
            try:
                value, end = self._decode_value(self._text, self._at)
            except json.JSONDecodeError as fault:
                if self._is_last or not self._is_cut(fault):
                    self._at = fault.pos
                    raise self.fault(fault.msg) from fault
            except (RecursionError, ValueError) as fault:
                raise self.fault(describe_fault(fault)) from fault
            else:
                # A number at the very end may go on in what is not read yet.
                if end < len(self._text) or self._is_last:
                    length = end - self._at
                    self.refuse_long(length)
                    self._at = end
                    return value, length
            self.refuse_long(len(self._text) - self._at)
            self._fill()

    def refuse_long(self, length: int) -> None:
        """Refuse a value at the cursor that takes so many characters, or more."""
        if length > ROW_BYTES_MAX:
            raise self.fault(f"a value is longer than {ROW_BYTES_MAX:,} bytes (ROW_BYTES_MAX)")

    def fault(self, reason: str) -> InvalidInput:
        """Return the error to raise when the text at the cursor cannot be read."""
        line, column = self._place()
        near = self._text[self._at : self._at + 20]
        place = f"{self._name}: line {line}, column {column}"
        return InvalidInput(f"{place}: {reason}, near {near!r}" if near else f"{place}: {reason}")

    def _is_cut(self, fault: json.JSONDecodeError) -> bool:
        """Whether the fault may be only that the value goes on beyond the window."""
        near_end = len(self._text) - CUT_CHARACTERS
        return fault.pos >= near_end or fault.msg.startswith("Unterminated string")

    def _fill(self) -> None:
        """Drop what is decoded and read as much again as is left, at least a chunk."""
        self._line, self._column = self._place()
        left = self._text[self._at :]
        chunk = self._file.read(max(CHUNK_BYTES, len(left)))
        self._is_last = not chunk
        try:
            self._text = left + self._decode_bytes(chunk, final=self._is_last)
        except UnicodeDecodeError as fault:
            byte = self._bytes_read + len(chunk) - len(fault.object) + fault.start
            raise InvalidInput(f"{self._name}: not UTF-8 at byte {byte}: {fault.reason}") from fault
        self._bytes_read += len(chunk)
        self._at = self._counted = 0

    def _place(self) -> tuple[int, int]:
        line_end = self._text.rfind("\n", 0, self._at)
        column = self._column + self._at if line_end < 0 else self._at - line_end
        return self._count_lines(), column

    def _count_lines(self) -> int:
        """Return the line of the cursor; what has been counted is not counted again."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line
