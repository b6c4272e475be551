"""The work of a process of its own: reading the rows of a collection, judging and packing them.

A stranger's file is read here and nowhere else, under limits that the process sets for itself
before it opens the file; whoever started it finds in its folder what to do (`ORDER_FILE`) and the
file of rows, and gets the packed one, and on the standard output its facts as JSON. What is wrong
with the rows is the last line of the standard error (`contrada.errors.read_line`).
"""

import argparse
import contextlib
import errno
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from contrada.errors import BadRows, ContradaError, InvalidInput, write_line
from contrada.files import read_rows
from contrada.matcher.packed_rows import SharedTerms, write_packed_rows

ORDER_FILE = "order.json"
_PARENT_PAUSE_S = 1.0
_NICENESS = 10


@dataclass(frozen=True, slots=True)
class PackingLimits:
    """What one process may take: memory as address space, time, and room on the disk.

    A million polygons of five vertices take 2.3 GB of address space, six seconds, and 0.2 GB on the
    disk. Without `memory_bytes_max` the limit is three quarters of the machine's memory. Where
    `time_s_max` has passed, the process is ended; `cpu_s_max` counts only what it has worked.
    """

    memory_bytes_max: int = field(default_factory=lambda: _find_memory() * 3 // 4)
    file_bytes_max: int = 16 * 2**30
    cpu_s_max: int = 900
    time_s_max: float = 1_800.0


def _find_memory() -> int:
    if sys.platform == "win32":
        return 8 * 2**30
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(frozen=True, slots=True)
class PackingOrder:
    """What a process is to do: files by their names in its folder, and what the rows share."""

    source: str
    target: str
    terms: SharedTerms
    limits: PackingLimits

    def write(self, folder: Path) -> None:
        """Write the order for the process."""
        (folder / ORDER_FILE).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what `write` wrote."""
        found: Mapping[str, Any] = json.loads((folder / ORDER_FILE).read_text())
        terms, limits = SharedTerms(**found["terms"]), PackingLimits(**found["limits"])
        return cls(found["source"], found["target"], terms, limits)


@dataclass(frozen=True, slots=True)
class PackedFile:
    """What was packed: where it is, how many rows, and the coordinate system that they state."""

    path: Path
    count: int
    crs: str | None


def pack_rows(source: Path, target: Path, terms: SharedTerms) -> PackedFile:
    """Read and judge the rows of a file, and pack them into another.

    Raises `InvalidInput` for a file or a row that cannot be used, `BadRows` for several rows.
    """
    rows = read_rows(source, batch_rows=terms.batch_rows, is_decoded=False)
    count = write_packed_rows(rows, target, terms)
    return PackedFile(target, count, rows.crs)


def main() -> int:
    """Carry out the order that lies in the current folder."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    order = PackingOrder.read(Path())
    _end_with(os.getppid())
    _limit(order.limits)
    warnings.simplefilter("ignore")
    try:
        packed = pack_rows(Path(order.source), Path(order.target), order.terms)
    except (ContradaError, MemoryError) as fault:
        print(write_line(_without_remedies(fault, order.limits)), file=sys.stderr)
        return 1
    print(json.dumps({"count": packed.count, "crs": packed.crs}))
    return 0


def _limit(limits: PackingLimits) -> None:
    """Take on the limits, and let others go first, in time and where memory becomes scarce."""
    if sys.platform != "win32":  # where there are no such limits
        import resource

        for kind, most in (
            (resource.RLIMIT_AS, limits.memory_bytes_max),
            (resource.RLIMIT_FSIZE, limits.file_bytes_max),
            (resource.RLIMIT_CPU, limits.cpu_s_max),
            (resource.RLIMIT_CORE, 0),
        ):
            _, hard = resource.getrlimit(kind)
            soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (soft, hard))  # a hard one would end it without a reason
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _end_with(parent: int) -> None:
    """End this process soon after the one that started it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_PAUSE_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _without_remedies(fault: ContradaError | MemoryError, limits: PackingLimits) -> ContradaError:
    """Return an error as the sender of rows can use it: there are no options for them."""
    if isinstance(fault, BadRows):
        summary, rows, count = fault.args
        return BadRows(summary, rows, count)
    if isinstance(fault, InvalidInput):
        return fault.with_remedies()
    cause = fault if isinstance(fault, MemoryError) else fault.__cause__
    if isinstance(cause, MemoryError):
        return _refuse_large(limits.memory_bytes_max, "of memory")
    if isinstance(cause, OSError) and cause.errno == errno.EFBIG:
        return _refuse_large(limits.file_bytes_max, "on the disk")
    assert isinstance(fault, ContradaError)
    return fault


def _refuse_large(most: int, where: str) -> InvalidInput:
    return InvalidInput(f"judging and packing the rows takes more than {most:,} bytes {where}")


if __name__ == "__main__":
    sys.exit(main())
