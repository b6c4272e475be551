"""A reporter for experiments that keeps what is said and counts the steps of what is watched."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Notes:
    """Keeps lines, and for each label how many steps were announced and how many were made."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.announced: Counter[str] = Counter()
        self.made: Counter[str] = Counter()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def say(self, line: str) -> None:
        self.lines += line.split("\n")

    @contextmanager
    def watch(self, label: str, steps: int) -> Iterator[Callable[[], None]]:
        self.announced[label] += steps
        yield lambda: self.made.update([label])
