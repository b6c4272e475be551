"""`contrada serve` as a process that may be killed, and started again on its folder."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class ServedProcess:
    """A server of a folder; its log goes to a file beside it."""

    def __init__(self, folder: Path, *args: str) -> None:
        self.folder, self._args = folder, args
        self.log = folder.with_name(f"{folder.name}.log")
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start, and wait until it takes events; it listens where it did before."""
        command = [sys.executable, "-m", "contrada", "serve", "--data", str(self.folder)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CONTRADA_")}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--port", str(self.port), *self._args],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            ready = stdout.readline()
        found = re.match(r"contrada: http://127\.0\.0\.1:(\d+) serves ", ready)
        if found is None:
            self.kill()
            raise AssertionError(self.log.read_text())
        self.port = int(found[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End it as a loss of power would."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """End it as one should; return its exit code."""
        self._process.terminate()
        return self._process.wait(60)


@contextmanager
def served_process(folder: Path, *args: str) -> Iterator[ServedProcess]:
    """Serve a folder until the block is left."""
    process = ServedProcess(folder, *args)
    try:
        yield process
    finally:
        process.kill()
