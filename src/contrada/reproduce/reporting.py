"""What experiments print: tables that grow row by row, prose, and a paper's word beside ours."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

_LINE_LENGTH_MAX = 100
_GAP = 2
NOT_STATED = "–"


class Reporter(Protocol):
    """Where lines and progress go."""

    def say(self, line: str) -> object:
        """Print a line of the result."""

    def watch(self, label: str, steps: int) -> AbstractContextManager[Callable[[], object]]:
        """Show how far some work has come; call the result after each step."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; those of one group that are neighbours share a line above them."""

    name: str
    group: str = ""
    format: str = ""
    width_min: int = 0
    is_text: bool = False

    @property
    def width(self) -> int:
        """The width with the gap before it."""
        return max(len(self.name), self.width_min) + _GAP

    def write(self, cell: object) -> str:
        """Write a cell as wide as the column; None is something that a paper does not state."""
        text = _write_cell(cell, self.format)
        gap = " " * _GAP
        return f"{gap}{text}".ljust(self.width) if self.is_text else text.rjust(self.width)


def _write_cell(cell: object, number_format: str) -> str:
    if cell is None:
        return NOT_STATED
    return cell if isinstance(cell, str) else format(cell, number_format)


def _widen(columns: Sequence[Column]) -> Iterator[Column]:
    """Make room for the names of groups, in the first column of each."""
    for group, members in groupby(columns, key=lambda column: column.group):
        first, *others = members
        missing = len(group) + _GAP - sum(column.width for column in (first, *others))
        yield replace(first, width_min=first.width - _GAP + max(0, missing))
        yield from others


class Table:
    """A table. Rows appear as they come, since one may take minutes."""

    def __init__(self, reporter: Reporter, columns: Sequence[Column]) -> None:
        """Print the header."""
        self._reporter, self._columns = reporter, list(_widen(columns))
        if any(column.group for column in columns):
            reporter.say(self._groups())
        self.add(*(column.name for column in columns))

    def _groups(self) -> str:
        runs = groupby(self._columns, key=lambda column: column.group)
        line = "".join(group.rjust(sum(c.width for c in columns)) for group, columns in runs)
        return line[_GAP:].rstrip()

    def add(self, *cells: object) -> None:
        """Print a row."""
        line = "".join(c.write(cell) for c, cell in zip(self._columns, cells, strict=True))
        self._reporter.say(line[_GAP:].rstrip())  # the first column needs no gap before it


def say_title(reporter: Reporter, title: str) -> None:
    """Print the title of an experiment."""
    reporter.say(f"\n{title}\n{'-' * len(title)}")


def say_prose(reporter: Reporter, text: str, indent: str = "") -> None:
    """Print a paragraph; `indent` is that of all lines but the first."""
    for line in textwrap.wrap(text, _LINE_LENGTH_MAX, subsequent_indent=indent):
        reporter.say(line)


def say_terms(reporter: Reporter, terms: Mapping[str, str]) -> None:
    """Print words and what they mean."""
    width = max(map(len, terms)) + _GAP
    for word, meaning in terms.items():
        say_prose(reporter, f"{word.ljust(width)}{meaning}", indent=" " * width)


def compare(
    reporter: Reporter, subject: str, claims: Iterable[tuple[str, str | None, str | None]]
) -> None:
    """Print what a paper's text says and what we found; None is what was not stated or found."""
    rows = list(claims)
    width = max(len(subject), *(len(claim) for claim, _, _ in rows))
    paper_width = max(len("paper"), *(len(paper or NOT_STATED) for _, paper, _ in rows))
    reporter.say("")
    for claim, paper, ours in [(subject, "paper", "ours"), *rows]:
        reporter.say(
            f"{claim:<{width}}  {paper or NOT_STATED:<{paper_width}}  {ours or NOT_STATED}"
        )


def write_ms(ms: float) -> str:
    """Write a time with two or three digits that mean something."""
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 10 else f"{ms:.2f}"


def write_percent(share: float, digits: int = 0) -> str:
    """Write a share of 1."""
    return f"{share * 100:.{digits}f} %"


def write_times(ratio: float) -> str:
    """Write how many times something is something else."""
    return f"{ratio:,.0f}×" if ratio >= 100 else f"{ratio:.2g}×"


def write_spread(ratios: Iterable[float]) -> str:
    """Write the least and the greatest of some ratios."""
    found = sorted(ratios)
    return f"{write_times(found[0])} to {write_times(found[-1])}"
