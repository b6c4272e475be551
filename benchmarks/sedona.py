"""Starts Apache Sedona in its own environment (`make sedona`), and asks it to run jobs.

    python benchmarks/sedona.py

starts it once, which fetches its jars, and says which versions it has.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from contrada.spark import java

_PYTHON = Path(__file__).parents[1] / ".venv-sedona" / "bin" / "python"
_PEER = Path(__file__).with_name("sedona_peer.py")
_LINES_SHOWN = 20


class Sedona:
    """A running peer. It works only while it is asked to, so that we never work at once."""

    def __init__(self, process: subprocess.Popen[str], log: IO[str]) -> None:
        self._process, self._log = process, log
        self.versions = ", ".join(f"{name} {number}" for name, number in self._read().items())

    def join(self, query: str, events: Path, zones: Path, out: Path) -> None:
        """Run a query of `sedona_peer.QUERIES` from Parquet to Parquet."""
        assert self._process.stdin is not None
        asked = {"query": query, "events": str(events), "zones": str(zones), "out": str(out)}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            last = "".join(self._log.readlines()[-_LINES_SHOWN:])
            raise RuntimeError(f"Sedona ended with code {self._process.wait()}:\n{last}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def start_sedona() -> Iterator[Sedona | None]:
    """Start the peer, and end it with the block; None where its environment has not been made."""
    if not _PYTHON.exists():
        yield None
        return
    environment = {
        **os.environ,
        "JAVA_HOME": str(java.launcher_home(java.find())),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(
            [_PYTHON, _PEER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        ) as process,
    ):
        yield Sedona(process, log)


def main() -> int:
    """Start the peer once."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with start_sedona() as sedona:
        print(f"there is no {_PYTHON}: make sedona" if sedona is None else sedona.versions)
        return 1 if sedona is None else 0


if __name__ == "__main__":
    sys.exit(main())
