"""Kernels are compiled by another process, once on a machine."""

import subprocess
import time
from pathlib import Path

import pytest

from contrada.broker import warming


def test_kernels_are_warmed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # to compile them all would take half a minute
    marker = warming._find_marker()
    assert marker is not None and not marker.exists()
    with warming.warming():
        end = time.monotonic() + 120
        while not marker.exists() and time.monotonic() < end:
            time.sleep(0.05)
    assert marker.exists()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("another process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with warming.warming():
        pass


def test_a_process_that_still_warms_ends_with_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(command: list[str], **options: object) -> "subprocess.Popen[bytes]":
        started.append(popen(["sleep", "1000"]))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", start)
    with warming.warming():
        assert started[0].poll() is None
    assert started[0].poll() is not None
