"""Rows that a quoted cell has swallowed: a quote that nobody closed, up to the next stray one.

A cell may go over several lines, and nothing but the sense of it tells such a cell from a quote
that was forgotten. The cell is refused where more than half of its lines read as rows: with as many
cells as the header, quoted as in the first line, empty only in columns with empty cells, and of the
kinds that the columns have. Where the lines have as many cells at least, there is a warning.
Whoever means such a cell quotes all cells of its row.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

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


def explain_swallowed(
    suspect: Suspect, delimiter: str, columns: Mapping[str, ColumnTypes]
) -> Swallowed | None:
    """Explain what is wrong with a row over several lines; None where it is probably meant."""
    text = suspect.text.decode(errors="replace")
    lines = [split_line(line, delimiter) for line in _LINE_END.split(text) if line]
    whole = [is_quoted for cell, is_quoted in lines[0] if is_quoted or '"' not in cell]
    is_meant = len(whole) > 0 and all(whole)
    is_told = len(columns) > 1 or not all(types.is_text for types in columns.values())
    if is_meant or not is_told:
        return None
    rows = sum(_is_like_a_row(cells, lines[0], list(columns.values())) for cells in lines)
    is_certain = 2 * rows > len(lines)
    has_all_cells = len(columns) > 2 and all(len(cells) == len(columns) for cells in lines)
    if not (is_certain or has_all_cells):
        return None
    first, last = suspect.quote_line, suspect.last_line
    verb = "look like" if is_certain else "may be"
    reason = (
        f"line {first}: a quoted cell runs on to line {last}, and the lines inside it {verb} "
        f"rows; close the quote in line {first} or, if the cell is intended, quote every cell of "
        "that row"
    )
    return Swallowed(reason, is_certain)


def split_line(line: str, delimiter: str) -> list[Cell]:
    """Split a line as if no cell went on in another; a quote that is not closed here is text."""
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


def _is_like_a_row(cells: list[Cell], first: list[Cell], columns: list[ColumnTypes]) -> bool:
    """Whether a line has a cell for each column, each of the kind that the column has."""
    return len(cells) == len(first) == len(columns) and all(map(_is_alike, cells, first, columns))


def _is_alike(cell: Cell, first: Cell, types: ColumnTypes) -> bool:
    """Whether a cell is quoted as in the first line, and of the kind of its column."""
    are_whole = all(is_quoted or '"' not in text for text, is_quoted in (cell, first))
    if are_whole and cell[1] != first[1]:
        return False
    text = cell[0].strip('"').strip()
    return types.fits(pa.array([text], pa.string())) if text else types.has_null
