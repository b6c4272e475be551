"""Blank lines of a text file, passed over many at a time: a file may be nothing else."""

import io
import re
from typing import IO, cast

EMPTY_LINES = re.compile(rb"(?:\r?\n)+")
BLANK_LINES = re.compile(rb"(?:[ \t]*\r?\n)+")


def skip_blank_lines(file: IO[bytes], blank: re.Pattern[bytes] = EMPTY_LINES) -> tuple[int, int]:
    """Pass over lines that are empty, or what else counts as blank; return their lines and bytes.

    Some may be left where what the file holds ready ends within a line.
    """
    lines = length = 0
    while found := blank.match(cast(io.BufferedReader, file).peek(1)):
        text = file.read(found.end())
        lines += text.count(b"\n")
        length += len(text)
    return lines, length
