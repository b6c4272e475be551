"""Kernels are compiled once for all processes of a machine, wherever there is a place for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Says how many kernels it has compiled and loaded, after a line that lets all processes begin.
CALL = """
import sys
from contrada.kernels import boxtree
import numpy as np
print("ready", flush=True)
sys.stdin.readline()
boxtree.margin(np.array([0.0, 0.0, 2.0, 3.0]))
stats = boxtree.margin.stats
print(sum(stats.cache_misses.values()), sum(stats.cache_hits.values()))
"""


def start(cache: Path, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop("NUMBA_CACHE_DIR", None)
    environment |= variables
    return subprocess.Popen(
        [sys.executable, "-c", CALL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_of_processes_that_start_at_once_one_compiles_and_the_others_load(tmp_path: Path) -> None:
    processes = [start(tmp_path) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = sorted(process.communicate()[0].strip() for process in processes)
    assert said == ["0 1", "1 0"]
    assert len(list((tmp_path / "contrada").rglob("*margin*.nbc"))) == 1


def test_where_numba_is_told_to_cache_in_no_folder_kernels_are_compiled_all_the_same(
    tmp_path: Path,
) -> None:
    process = start(tmp_path, NUMBA_CACHE_DIR="/dev/null/none")
    said, _ = process.communicate("go\n")
    assert said.splitlines()[-1] in ("1 0", "0 1")  # Numba may have another place for it
