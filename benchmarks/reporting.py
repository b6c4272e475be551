"""What a benchmark prints and keeps: tables, and what was asked beside what was reached."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from contrada.reproduce.reporting import Column, Table
from machine import describe_machine

RESULTS = Path(__file__).parent / "results"
MIB = 2**20


class Report:
    """The lines of one run: printed as they come, and at the end written to a file."""

    def __init__(self, name: str, *packages: str) -> None:
        self._path = RESULTS / f"{name}.txt"
        self._lines: list[str] = []
        self._asked: list[tuple[str, str, str, bool]] = []
        self.say(describe_machine(*packages))

    def say(self, line: str) -> None:
        """Print a line and keep it."""
        print(line, flush=True)
        self._lines.append(line)

    @contextmanager
    def watch(self, label: str, steps: int) -> Iterator[Callable[[], object]]:  # noqa: ARG002
        """Show no progress: a benchmark is left alone while it runs."""
        yield lambda: None

    def start_table(self, *columns: Column) -> Table:
        """Begin a table after an empty line."""
        self.say("")
        return Table(self, columns)

    def ask(self, work: str, asked: str, reached: str, is_reached: bool) -> None:
        """Keep what was asked of a piece of work, and what was reached, for the end."""
        self._asked.append((work, asked, reached, is_reached))

    def ask_ratio(self, work: str, ratio: float, *, least: float) -> None:
        """Ask for a ratio of so much or more."""
        self.ask(work, f"≥ {least:.1f}×", f"{ratio:.2f}×", ratio >= least)

    def ask_limit(self, work: str, ratio: float, *, most: float) -> None:
        """Ask for a ratio of so much or less."""
        self.ask(work, f"≤ {most:.1f}×", f"{ratio:.2f}×", ratio <= most)

    def finish(self) -> int:
        """Print what was asked and reached, write all lines, and give the exit code."""
        texts = [(work, asked, reached) for work, asked, reached, _ in self._asked]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)] or [0, 0, 0]
        table = self.start_table(
            Column("asked of", width_min=widths[0], is_text=True),
            Column("asked", width_min=max(8, widths[1])),
            Column("reached", width_min=max(8, widths[2])),
            Column("", width_min=6),
        )
        for work, asked, reached, is_reached in self._asked:
            table.add(work, asked, reached, "" if is_reached else "MISSED")
        RESULTS.mkdir(exist_ok=True)
        self._path.write_text("\n".join([*self._lines, ""]), encoding="utf-8")
        print(f"\nwritten: {self._path}")
        return 0 if all(is_reached for *_, is_reached in self._asked) else 1


def seconds(name: str) -> Column:
    """Make a column of seconds."""
    return Column(f"{name} s", format=".2f", width_min=8)


def count(name: str) -> Column:
    """Make a column of whole numbers."""
    return Column(name, format=",", width_min=9)


def ratio(name: str) -> Column:
    """Make a column of ratios."""
    return Column(name, format=".2f", width_min=6)


def mebibytes(name: str) -> Column:
    """Make a column of MiB."""
    return Column(f"{name} MiB", format=",.0f", width_min=6)
