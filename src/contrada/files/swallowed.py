"""Rows that a quoted cell has swallowed: a quote that nobody closed, up to the next stray one.

A cell may go over several lines, and nothing but the sense of it tells such a cell from a quote
that was forgotten. The cell is refused where each of its lines reads as a row like the others:
with as many cells, quoted alike, and of the kinds that the columns have.
"""

import re
from collections.abc import Mapping

import pyarrow as pa

from contrada.files.sheet_scan import Suspect
from contrada.files.text_types import ColumnTypes

_LINE_END = re.compile(r"\r\n?|\n")

Cell = tuple[str, bool]  # its text, and whether it is quoted


def explain_swallowed(
    suspect: Suspect, delimiter: str, columns: Mapping[str, ColumnTypes]
) -> str | None:
    """Say what is wrong with a row over several lines; None where it may be meant."""
    text = suspect.text.decode(errors="replace")
    lines = [split_line(line, delimiter) for line in _LINE_END.split(text) if line]
    if any(len(cells) != len(columns) for cells in lines):
        return None
    is_told = len(columns) > 1 or not all(types.is_text for types in columns.values())
    by_column = zip(columns.values(), zip(*lines, strict=True), strict=True)
    if not is_told or not all(_is_alike(types, cells) for types, cells in by_column):
        return None
    first, last = suspect.quote_line, suspect.last_line
    return (
        f"line {first}: a quoted cell goes on to line {last}, and each of its lines reads as a row "
        f"of its own; close the quote in line {first} or, if the cell is meant, quote every cell "
        "of that row"
    )


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


def _is_alike(types: ColumnTypes, cells: tuple[Cell, ...]) -> bool:
    """Tell whether the cells of one column are quoted alike, and as the column has them."""
    whole = [cell for cell in cells if cell[1] or '"' not in cell[0]]  # without a stray quote
    is_empty = any(not text for text, _ in whole)
    if len({is_quoted for _, is_quoted in whole}) > 1 or (is_empty and not types.has_null):
        return False
    texts = [text.strip('"').strip() or None for text, _ in cells]
    return types.fits(pa.array(texts, pa.string()))
