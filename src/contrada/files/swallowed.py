"""Rows that a quoted cell has swallowed: a quote that nobody closed, up to the next stray one.

A cell may go over several lines, and nothing but the sense of it tells such a cell from a quote
that was forgotten. The cell is refused where more than half of its lines read as rows: with as many
cells as the header, quoted as in the first line, empty only in columns with empty cells, and of the
kinds that the columns have. Where the lines have as many cells at least, or would be such rows but
for the first one, there is a warning.
Whoever means such a cell quotes all cells of its row.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from contrada.files.sheet_scan import Suspect
from contrada.files.text_types import ColumnTypes

_LINE_END = re.compile(r"\r\n?|\n")

Cell = tuple[str, bool]  # its text, and whether it is quoted


@dataclass(frozen=True, slots=True)
class Swallowed:
    """What a row over several lines looks like, and whether nothing else is likely."""

    reason: str
    is_certain: bool


def find_swallowed(
    suspects: Sequence[Suspect], delimiter: str, columns: Mapping[str, ColumnTypes]
) -> Iterator[Swallowed]:
    """Explain what is wrong with rows over several lines; with those that are meant nothing is."""
    kinds = list(columns.values())
    if not suspects or (len(kinds) == 1 and kinds[0].is_text):
        return
    split = [(suspect, _split_lines(suspect.text, delimiter)) for suspect in suspects]
    doubtful = [(suspect, lines) for suspect, lines in split if not _is_meant(lines[0])]
    counts = _count_rows([lines for _, lines in doubtful], kinds)
    for (suspect, lines), rows in zip(doubtful, counts, strict=True):
        is_likely = 2 * rows > len(lines)
        has_all_cells = len(kinds) > 2 and all(len(cells) == len(kinds) for cells in lines)
        if is_likely or has_all_cells:
            is_certain = is_likely and len(lines[0]) == len(kinds)
            yield Swallowed(_describe(suspect, is_certain), is_certain)


def _describe(suspect: Suspect, is_certain: bool) -> str:
    first, last = suspect.quote_line, suspect.last_line
    verb = "look like" if is_certain else "may be"
    return (
        f"line {first}: a quoted cell runs on to line {last}, and the lines inside it {verb} "
        f"rows; close the quote in line {first} or, if the cell is intended, quote every cell of "
        "that row"
    )


def _split_lines(text: bytes, delimiter: str) -> list[list[Cell]]:
    """Split the lines of a row that are not blank."""
    lines = _LINE_END.split(text.decode(errors="replace"))
    return [split_line(line, delimiter) for line in lines if line]


def _is_meant(line: list[Cell]) -> bool:
    """Whether all cells of a row are quoted, as far as its first line tells."""
    whole = [is_quoted for cell, is_quoted in line if is_quoted or '"' not in cell]
    return len(whole) > 0 and all(whole)


def split_line(line: str, delimiter: str) -> list[Cell]:
    """Split a line as if no cell went on in another; a quote that is not closed here is text."""
    if line.count('"') < 2:
        return [(cell, False) for cell in line.split(delimiter)]
    mark = re.escape(delimiter)
    pattern = re.compile(f'"((?:[^"]|"")*)"(?={mark}|$)|([^{mark}]*)')
    cells: list[Cell] = []
    at = 0
    while at <= len(line):
        found = pattern.match(line, at)
        assert found is not None, "an empty cell matches, too"
        quoted, plain = found.groups()
        cells.append((quoted.replace('""', '"'), True) if plain is None else (plain, False))
        at = found.end() + 1
    return cells


def _count_rows(splits: Sequence[list[list[Cell]]], columns: Sequence[ColumnTypes]) -> list[int]:
    """Count the lines of each suspect that have a cell for each column, of the kind that it has.

    They are quoted as the first line is. Where that has too many cells to be compared, or too few,
    only a column of something else than text tells rows from others.
    """
    is_told = not all(types.is_text for types in columns)
    owners: list[int] = []
    rows: list[list[str | None]] = []
    for number, lines in enumerate(splits):
        is_comparable = len(lines[0]) == len(columns)
        for cells in lines:
            if len(cells) != len(columns) or not (is_comparable or is_told):
                continue
            if not is_comparable or all(map(_are_quoted_alike, cells, lines[0])):
                owners.append(number)
                rows.append([_spell(cell) for cell in cells])
    is_row = np.ones(len(rows), bool)
    for at, types in enumerate(columns):
        is_row &= types.look_alike(pa.array([row[at] for row in rows], pa.string()))
    counted = np.array(owners, np.int64)[is_row]
    return [int(count) for count in np.bincount(counted, minlength=len(splits))]


def _spell(cell: Cell) -> str | None:
    """Return what a cell holds; a quoted one without text is no missing one."""
    text, is_quoted = cell
    spelled = text.strip('"').strip()
    return spelled if spelled or is_quoted else None


def _are_quoted_alike(cell: Cell, first: Cell) -> bool:
    """Whether both cells are quoted, or neither; of one that is not whole that is not known."""
    are_whole = all(is_quoted or '"' not in text for text, is_quoted in (cell, first))
    return not are_whole or cell[1] == first[1]
