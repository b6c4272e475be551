"""A folder in which tests run `contrada stream`: here, or as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from contrada.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SQUARE = '"POLYGON(({0} 0, {1} 0, {1} 1, {0} 1, {0} 0))"'
_LOOK_S = 0.05


class Desk:
    """A folder with subscriptions, incoming files and a stream's state."""

    def __init__(self, folder: Path, fences: str = "fences.csv") -> None:
        self.folder, self._fences = folder, fences
        (folder / "in").mkdir()
        self.subscribe(a=0, b=1)

    def subscribe(self, **places: int) -> None:
        """Write subscriptions to squares that begin at some places."""
        rows = [f"{name},{_SQUARE.format(x, x + 1)}" for name, x in places.items()]
        self.put("fences.csv", "\n".join(["id,geometry", *rows, ""]))

    def send(self, name: str, text: str) -> None:
        """Let one more file come in."""
        self.put(f"in/{name}", text)

    def put(self, name: str, content: str | pa.Table) -> None:
        """Write a file, of a text or as Parquet, which appears whole."""
        draft = self.folder / "draft"
        if isinstance(content, str):
            draft.write_text(content)
        else:
            pq.write_table(content, draft)
        draft.rename(self.folder / name)

    def words(self, *more: str) -> list[str]:
        """The words of the command; a place that they name is taken instead of the usual one."""
        places = {"subscriptions": self._fences, "events": "in", "to": "out", "state": "state"}
        found = ["stream", "--spark", "local[2]"]
        for option, place in places.items():
            if f"--{option}" not in more:
                found += [f"--{option}", str(self.folder / place)]
        return [*found, *more]

    def run(self, *more: str) -> int:
        """Match what is there, in the session that runs, and return the exit code."""
        return main(self.words("--once", *more))

    def rows(self, folder: str) -> list[dict[str, Any]]:
        """The rows of files in a folder; none where there is no file yet."""
        dataset = ds.dataset(self.folder / folder) if (self.folder / folder).exists() else None
        if dataset is None or not dataset.files:
            return []
        found: list[dict[str, Any]] = dataset.to_table().to_pylist()
        return found

    def pairs(self) -> list[tuple[object, object]]:
        """What was matched."""
        return sorted((row["event"], row["subscription"]) for row in self.rows("out"))

    @contextmanager
    def running(self, *more: str) -> Iterator[RunningStream]:
        """The command as a process, which is killed if it has not ended."""
        said = self.folder / "said.txt"
        with said.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "contrada.cli", *self.words(*more)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            yield RunningStream(process, said)
        finally:
            process.kill()
            process.wait()


class RunningStream:
    """A process that runs `contrada stream`, and the file of what it says."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self.process, self._said = process, said

    @property
    def said(self) -> str:
        """What it has said so far."""
        return self._said.read_text()

    def wait(self, seconds: float) -> None:
        """Let some time go by, in which the process must not end."""
        try:
            self.process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return
        raise AssertionError(f"the stream has ended: {self.said}")

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so; the process must not end before."""
        while not is_so():
            self.wait(_LOOK_S)
