"""Where seeds come from, how long a soak lasts, and what a failure says.

`make test` always takes the same few seeds. `make soak` takes new ones for `FUZZ_MINUTES` minutes
(12 unless stated) in each of its six parts, and prints which; `FUZZ_SEED` replays one seed.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MINUTES = 12.0


def few(count: int) -> Iterator[int]:
    """The seeds of `make test`, or the one to be replayed."""
    yield from replayed() or range(count)


def many(request: pytest.FixtureRequest) -> Iterator[int]:
    """New seeds until the time is up, or the one to be replayed."""
    if replayed():
        yield from replayed()
        return
    first = secrets.randbelow(10**12)
    end = time.monotonic() + soak_s()
    announce(request, f"seeds from {first}")
    seed = first
    while time.monotonic() < end:
        yield seed
        seed += 1
    announce(request, f"{seed - first:,} seeds, from {first} to {seed - 1}")


def announce(request: pytest.FixtureRequest, message: str) -> None:
    """Say something at once, also from a process of pytest-xdist."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        print(f"{request.node.name}: {message}", file=sys.stderr, flush=True)


def soak_s() -> float:
    """How long one part of a soak lasts."""
    return 60 * float(os.environ.get("FUZZ_MINUTES", MINUTES))


def replayed() -> list[int]:
    """The seed that the environment asks for."""
    return [int(os.environ["FUZZ_SEED"])] if "FUZZ_SEED" in os.environ else []


def command(seed: int, request: pytest.FixtureRequest) -> str:
    """What replays a seed of the running test."""
    is_soak = request.node.get_closest_marker("soak") is not None
    options = " -m soak" if is_soak else ""
    return f"FUZZ_SEED={seed} .venv/bin/python -m pytest{options} '{request.node.nodeid}'"
