"""Strange geometry values never end the process, nor raise anything but an error of Contrada's own.

They are tried in a child process, since a fault of GEOS would take this one along. The parent knows
which value the child died of, and shows its seed, its bytes and the signal.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import contrada
from fuzz import runs
from fuzz.geometry_values import KILLERS, MAKERS, make

HANG_S = 240  # beyond what a slice is given: a child that takes longer hangs on one value
SLICE_S = 60  # more than a slice takes
FEW = 800
SHOWN_MAX = 400


def run(
    first: int, count: int, seconds: float, folder: Path, request: pytest.FixtureRequest
) -> int:
    """Try so many seeds in a child, and say what killed it, if something did; the last seed."""
    progress = folder / "progress"
    progress.write_bytes(b"%20d" % first)
    roots = [Path(contrada.__file__).parent.parent, Path(__file__).parent.parent]
    command = [sys.executable, "-X", "faulthandler", "-m", "fuzz.geometry_child"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}
    try:
        child = subprocess.run(
            [*command, str(progress), str(first), str(count), str(seconds)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds + HANG_S,
            check=False,
        )
        end, said = child.returncode, child.stderr
    except subprocess.TimeoutExpired:
        end, said = -signal.SIGKILL, "it hung"
    seed = int(progress.read_bytes())
    if end:
        how = signal.Signals(-end).name if end < 0 else f"exit {end}"
        where = said.split("Extension modules:")[0][-2_000:]
        replay = runs.command(seed, request)
        pytest.fail(f"{how} by {shown(make(seed))}\n{where}\nReplay it: {replay}")
    return seed


def shown(value: Any) -> str:
    """A value as it can be pasted: bytes in hexadecimal, and the length of what is long."""
    kind = type(value).__name__
    text = (
        bytes(value).hex() if isinstance(value, bytes | bytearray | memoryview) else safely(value)
    )
    return f"{kind} of {len(text):,} characters: {text[:SHOWN_MAX]}"


def safely(value: Any) -> str:
    """The value in words, however deep it nests."""
    try:
        return repr(value)
    except RecursionError:
        return "too deep to be shown"


def test_every_kind_of_strange_value_comes_among_few_seeds() -> None:
    assert {type(make(seed)).__name__ for seed in range(200)} >= {
        "bytes",
        "str",
        "dict",
        "bytearray",
    }
    assert len(MAKERS) > 10


def test_values_that_once_ended_the_process_do_no_harm(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run(-len(KILLERS), len(KILLERS), SLICE_S, tmp_path, request)


def test_strange_geometries_do_no_harm(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seeds = runs.replayed()
    run(seeds[0] if seeds else 0, 1 if seeds else FEW, SLICE_S, tmp_path, request)


@pytest.mark.soak
def test_many_strange_geometries_do_no_harm(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if seeds := runs.replayed():
        run(seeds[0], 1, SLICE_S, tmp_path, request)
        return
    first = secrets.randbelow(10**12)
    runs.announce(request, f"seeds from {first}")
    last = run(first, 10**9, runs.soak_s(), tmp_path, request)
    runs.announce(request, f"{last - first:,} seeds, from {first} to {last}")
