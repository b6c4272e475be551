"""Kernels are compiled once for all processes of a machine, wherever there is a place for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Says how many kernels it has compiled and loaded, after a line that lets all processes begin.
CALL = """
import sys
from contrada.kernels import boxtree
import numpy as np
print("ready", flush=True)
sys.stdin.readline()
boxtree.margin(np.array([0.0, 0.0, 2.0, 3.0]))
stats = boxtree.margin.compiled.stats
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


# Calls a kernel with files that may not grow beyond some bytes, as on a disk that is full.
CALL_WITHOUT_ROOM = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from contrada.kernels import boxtree
import numpy as np
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
print(boxtree.margin(np.array([0.0, 0.0, 2.0, 3.0])))
"""


def call(cache: Path, *command: str) -> str:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", *command],
        input="go",
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of the process")
def test_where_the_disk_is_full_kernels_are_compiled_all_the_same(tmp_path: Path) -> None:
    room_for_index = "4000"
    assert call(tmp_path, CALL_WITHOUT_ROOM, "0") == "5.0"
    assert call(tmp_path, CALL_WITHOUT_ROOM, room_for_index) == "5.0"
    assert list(tmp_path.rglob("*.nbi"))
    assert not list(tmp_path.rglob("*.nbc"))


def test_a_cache_that_is_damaged_is_made_anew(tmp_path: Path) -> None:
    assert call(tmp_path, CALL) == "1 0"
    for suffix, damage in (("nbi", b"\x80\x04garbage"), ("nbc", b"")):
        (path,) = tmp_path.rglob(f"*margin*.{suffix}")
        path.write_bytes(damage)
        assert call(tmp_path, CALL) == "1 0"
    assert call(tmp_path, CALL) == "0 1"
