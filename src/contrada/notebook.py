"""HTML for notebooks: small tables in the reader's own colours, light or dark, all text escaped."""

import re
from collections.abc import Iterable, Sequence
from html import escape

from contrada.showing import cut

_NUMBER = r"-?\d+(?:\.\d+)?"
_PAIR = rf"{_NUMBER} {_NUMBER}"
_GEOMETRY = re.compile(rf"\b[A-Z]*(?:POINT|STRING|POLYGON)(?P<open>\(+){_PAIR}, ")
_PARENTHESIS = re.compile(r"[()]")
_POINTS_MAX = 6  # of a geometry that is written whole
_LENGTH_MAX = 400  # characters of a CQL2 text
_ROWS_MAX = 100
_LINE = "1px solid rgba(128, 128, 128, 0.4)"
_CELL = "text-align: left; vertical-align: top; padding: 2px 10px 2px 0"
_TABLE = "border-collapse: collapse; color: inherit; font-size: inherit"
_SMALL_CELL = "text-align: center; padding: 0 4px"
_PARTS = ("I", "B", "E")
_MATRIX_TITLE = "interior, boundary and exterior of the first geometry (rows) and of the second"


def abridge(text: str, length: int = _LENGTH_MAX) -> str:
    """Shorten CQL2 text for the eye: of a geometry with many points the first is written."""
    pieces, done = [], 0
    while (found := _GEOMETRY.search(text, done)) is not None:
        end = _end(text, found.start("open"))
        points = text.count(",", found.start(), end) + 1
        if points > _POINTS_MAX:
            depth = len(found["open"])
            pieces.append(f"{text[done : found.end()]}… {points - 1:,} more{')' * depth}")
        else:
            pieces.append(text[done:end])
        done = end
    return cut("".join([*pieces, text[done:]]), length)


def _end(text: str, start: int) -> int:
    """Find where the parenthesis that opens at `start` is closed."""
    depth = 0
    for found in _PARENTHESIS.finditer(text, start):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return found.end()
    return len(text)


def text(value: object) -> str:
    """Write plain text."""
    return escape(str(value))


def strong(value: object) -> str:
    """Write text that stands out."""
    return f"<b>{escape(str(value))}</b>"


def code(cql2: str) -> str:
    """Write CQL2 text, abridged."""
    style = "background: none; color: inherit; white-space: pre-wrap"
    return f'<code style="{style}">{escape(abridge(cql2))}</code>'


def truth(value: bool | None) -> str:
    """Write one of the three values, with a mark that is distinct without colour."""
    mark, word = {True: ("✓", "true"), False: ("✗", "false"), None: ("?", "unknown")}[value]
    return f"{mark}&nbsp;{word}"


def matrix(de9im: str) -> str:
    """Write a DE-9IM matrix or pattern as three rows of three."""
    rows = [_small_row("th", ("", *_PARTS))]
    for i, part in enumerate(_PARTS):
        rows.append(_small_row("td", (part, *de9im[i * 3 : i * 3 + 3])))
    style = f"font-family: monospace; margin: 0; {_TABLE}"
    return f'<table style="{style}" title="{_MATRIX_TITLE}">{"".join(rows)}</table>'


def _small_row(kind: str, cells: Sequence[str]) -> str:
    first, *others = (escape(cell) for cell in cells)
    row = "".join(f'<{kind} style="{_SMALL_CELL}">{cell}</{kind}>' for cell in others)
    return f'<tr style="background: none"><th style="{_SMALL_CELL}">{first}</th>{row}</tr>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write rows of cells that are HTML under a header that is text; of very many the first."""
    rows = list(rows)
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in header)
    lines = [
        f'<tr style="border-top: {_LINE}; background: none">'
        + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in row)
        + "</tr>"
        for row in rows[:_ROWS_MAX]
    ]
    top = f"<tr>{head}</tr>" if any(header) else ""
    more = paragraph(f"and {len(rows) - _ROWS_MAX:,} more") if len(rows) > _ROWS_MAX else ""
    return f'<table style="{_TABLE}">{top}{"".join(lines)}</table>{more}'


def paragraph(html: str) -> str:
    """Write a line of HTML of its own."""
    return f'<div style="margin: 2px 0">{html}</div>'


def block(*parts: str) -> str:
    """Join pieces of HTML into what a notebook shows."""
    return f"<div>{''.join(parts)}</div>"
