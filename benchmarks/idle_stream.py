"""What an idle `contrada stream` costs: the processor time of all its processes, for a minute.

One file of a single event has been matched; then nothing comes any more. With `--every 1 s`, the
default, Spark looks for files once a second; with `--every 0 s` all the time, as it does where a
query names no interval. The folder has 1 file, or 1,000 that have been matched before.

    python benchmarks/idle_stream.py [--seconds 60]

Reported, not asked: processor seconds per minute. The table goes to `results/idle_stream.txt`
beside this file.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from contrada.reproduce.reporting import Column
from reporting import Report, seconds

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SETTLE_S = 15.0  # after the first batch Java still compiles


def main() -> int:
    """Measure each interval with few and many files; print a table, and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    report = Report("idle_stream", "pyspark")
    table = report.start_table(
        Column("--every", width_min=10, is_text=True),
        Column("files", width_min=6),
        seconds("CPU a minute"),
    )
    for files in (1, 1_000):
        for every in ("1 s", "0 s"):
            with tempfile.TemporaryDirectory() as folder:
                spent = measure(Path(folder), every, files, options.seconds)
            table.add(every, files, spent * 60 / options.seconds)
    return report.finish()


def measure(folder: Path, every: str, files: int, length_s: float) -> float:
    """Run the command until it is idle; return the processor seconds of the time after."""
    (folder / "in").mkdir()
    (folder / "fences.csv").write_text('id,geometry\na,"POLYGON((0 0, 1 0, 1 1, 0 0))"\n')
    for number in range(files):
        (folder / "in" / f"{number}.csv").write_text(f"id,lon,lat\n{number},0.5,0.2\n")
    places = {"subscriptions": "fences.csv", "events": "in", "to": "out", "state": "state"}
    words = [f"--{option}={folder / place}" for option, place in places.items()]
    command = [sys.executable, "-m", "contrada.cli", "stream", *words, "--every", every]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            while not list((folder / "state").glob("checkpoint/commits/0")):
                time.sleep(0.1)
            time.sleep(_SETTLE_S)
            before = count_ticks(process.pid)
            time.sleep(length_s)
            return (count_ticks(process.pid) - before) / _TICKS_PER_S
        finally:
            process.terminate()


def count_ticks(top: int) -> int:
    """Count the processor time of a process and of all that descend from it."""
    children: dict[int, list[int]] = defaultdict(list)
    ticks: dict[int, int] = {}
    for path in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            pid = int(path.parent.name)
            children[int(fields[1])].append(pid)
            ticks[pid] = int(fields[11]) + int(fields[12])
    total, waiting = 0, [top]
    while waiting:
        pid = waiting.pop()
        total += ticks.get(pid, 0)
        waiting += children[pid]
    return total


if __name__ == "__main__":
    sys.exit(main())
