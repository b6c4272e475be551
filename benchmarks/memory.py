"""How much memory Spark's Python workers, its Java and this process take, as Linux counts it."""

import ctypes
import gc
import os
import re
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

_INTERVAL_S = 0.2
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Sample:
    """What was resident at one moment, in bytes; of the workers the largest one."""

    at_s: float
    worker: int
    driver: int
    java: int


@dataclass(slots=True)
class Peaks:
    """The most that one process of a kind has had, in bytes.

    `worker` counts from the start of the worker; `private` is what it shares with no other process.
    """

    worker: int = 0
    private: int = 0
    driver: int = 0
    java: int = 0
    samples: list[Sample] = field(default_factory=list)


class MemoryWatch(AbstractContextManager[Peaks]):
    """Looks at the processes five times a second while a block runs."""

    def __init__(self) -> None:
        self._peaks = Peaks()
        self._is_over = threading.Event()
        self._started = time.perf_counter()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Peaks:
        self._thread.start()
        return self._peaks

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._look()

    def _run(self) -> None:
        while not self._is_over.wait(_INTERVAL_S):
            self._look()

    def _look(self) -> None:
        parents = _parents()
        java = [pid for pid in _below(os.getpid(), parents) if _name(pid) == "java"]
        daemons = [pid for root in java for pid in _below(root, parents) if _is_daemon(pid)]
        workers = [pid for pid, parent in parents.items() if parent in daemons]
        peaks = self._peaks
        peaks.worker = max(peaks.worker, *(_read(pid, "status", "VmHWM") for pid in workers), 0)
        peaks.private = max(peaks.private, *(_private(pid) for pid in workers), 0)
        peaks.driver = max(peaks.driver, _read(os.getpid(), "status", "VmRSS"))
        peaks.java = max(peaks.java, *(_read(pid, "status", "VmRSS") for pid in java), 0)
        peaks.samples.append(
            Sample(
                time.perf_counter() - self._started,
                max((_read(pid, "status", "VmRSS") for pid in workers), default=0),
                _read(os.getpid(), "status", "VmRSS"),
                max((_read(pid, "status", "VmRSS") for pid in java), default=0),
            )
        )


def read_resident() -> int:
    """Count the bytes of this process that are resident."""
    return _read(os.getpid(), "status", "VmRSS")


def read_peak() -> int:
    """Count the bytes of this process that were resident at most, since it settled."""
    return _read(os.getpid(), "status", "VmHWM")


def settle() -> int:
    """Give back to Linux what this process does not use, and return what is resident then.

    What is free but not given back would be used again, and so hide what is taken afterwards.
    """
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    (_PROC / "self" / "clear_refs").write_text("5")  # the peak counts from now on
    return read_resident()


def _parents() -> dict[int, int]:
    """Give the parent of each process."""
    found = {}
    for path in _PROC.glob("[0-9]*/stat"):
        text = _text(path)
        if text:
            found[int(path.parent.name)] = int(text.rpartition(")")[2].split()[1])
    return found


def _below(root: int, parents: dict[int, int]) -> set[int]:
    """Give the processes that a process has started, and those that they have."""
    found = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found - {root}
        found |= more


def _name(pid: int) -> str:
    return _text(_PROC / str(pid) / "comm").strip()


def _is_daemon(pid: int) -> bool:
    """Tell whether a process is the one that forks the workers, which look like it otherwise."""
    parent = _text(_PROC / str(pid) / "status")
    starter = re.search(r"^PPid:\s*(\d+)", parent, re.MULTILINE)
    line = _text(_PROC / str(pid) / "cmdline")
    return "pyspark.daemon" in line and starter is not None and _name(int(starter[1])) == "java"


def _private(pid: int) -> int:
    return sum(_read(pid, "smaps_rollup", f"Private_{kind}") for kind in ("Clean", "Dirty"))


def _read(pid: int, file: str, name: str) -> int:
    """Read a number of kB as bytes; a process that has gone has none."""
    found = re.search(rf"^{name}:\s*(\d+) kB", _text(_PROC / str(pid) / file), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
