"""Processes that pack rows for a broker: few at a time, under limits, and ended when unwanted.

Each works in a folder of its own, into which the sender's file was put and which goes with it.
However such a process ends, its broker goes on.
"""

import contextlib
import json
import logging
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from contrada.broker.row_packing import PackedFile, PackingLimits, PackingOrder
from contrada.errors import (
    ContradaError,
    InvalidInput,
    OutOfSpace,
    Overloaded,
    Unavailable,
    read_line,
)
from contrada.matcher.packed_rows import SharedTerms

_log = logging.getLogger(__name__)
DRAFTS_FOLDER = "drafts"
_TARGET, _ANSWER, _ERRORS = "packed.contrada", "answer.json", "errors.txt"
_ERROR_BYTES_MAX = 64 * 1024
_ROOM_BYTES_MIN = 256 * 2**20  # left on the disk for what the broker writes
_PAUSE_S = 0.05
_MEMORY_WORDS = (  # of Python, of C++, and of whoever loads a library where there is no room
    *("MemoryError", "bad_alloc", "failed to map segment", "Cannot allocate memory"),
    "can't start new thread",
)
_NEEDED = (
    *("PATH", "HOME", "LANG", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "XDG_CACHE_HOME"),
    *("PROJ_DATA", "PROJ_LIB", "NUMBA_CACHE_DIR"),
)
_NEEDED_PREFIXES = ("LC_", "PYTHON")


class RowPackers:
    """The processes of one server, for all its brokers; every method may be called by any thread.

    At most `processes_max` run at one time; who must wait for longer than `wait_s` is refused.
    """

    def __init__(
        self,
        limits: PackingLimits | None = None,
        *,
        processes_max: int = 1,
        wait_s: float = 120.0,
    ) -> None:
        """Begin without any."""
        self._limits = limits or PackingLimits()
        self._turns = threading.BoundedSemaphore(processes_max)
        self._wait_s = wait_s

    def pack(
        self, source: Path, terms: SharedTerms, gave_up: threading.Event | None = None
    ) -> PackedFile:
        """Pack the rows of a file into another beside it, and wait until it is on the disk.

        The suffix of the source names its format. Raises `InvalidInput` for what is wrong with the
        rows, `Overloaded` where too much waits, and `Unavailable` where `gave_up` is set, the
        machine lacks something, or the time is over.
        """
        gave_up = gave_up or threading.Event()
        end_s = time.monotonic() + self._wait_s
        while not self._turns.acquire(timeout=_PAUSE_S):
            _check_wanted(gave_up)
            if time.monotonic() > end_s:
                raise Overloaded("rows of other collections are still being packed", 30.0)
        try:
            room = max(shutil.disk_usage(source.parent).free - _ROOM_BYTES_MIN, 0)
            limits = replace(self._limits, file_bytes_max=min(self._limits.file_bytes_max, room))
            PackingOrder(source.name, _TARGET, terms, limits).write(source.parent)
            self._run(source.parent, gave_up)
            return _read_answer(source.parent)
        finally:
            self._turns.release()

    def _run(self, folder: Path, gave_up: threading.Event) -> None:
        with (folder / _ANSWER).open("wb") as answer, (folder / _ERRORS).open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "contrada.broker.row_packing"],
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=errors,
                cwd=folder,
                env=_choose_environment(os.environ, folder),
                start_new_session=True,  # who interrupts the broker at a terminal means the broker
            )
        try:
            status = self._wait(process, gave_up)
        finally:
            process.kill()
            process.wait()
        if status:
            raise self._explain(status, folder / _ERRORS)

    def _wait(self, process: subprocess.Popen[bytes], gave_up: threading.Event) -> int:
        end_s = time.monotonic() + self._limits.time_s_max
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_PAUSE_S)
            _check_wanted(gave_up)
            if time.monotonic() > end_s:
                most = f"{self._limits.time_s_max:,.0f} s"
                raise Unavailable(f"judging and packing the rows takes longer than {most}")

    def _explain(self, status: int, errors: Path) -> ContradaError:
        """Return the error that a process has left, or what its end says."""
        with errors.open("rb") as file:
            file.seek(max(0, errors.stat().st_size - _ERROR_BYTES_MAX))
            text = file.read().decode(errors="replace")
        fault = read_line(text)
        if fault is not None:
            return fault
        if -status == signal.SIGXCPU:
            most = f"{self._limits.cpu_s_max:,} s"
            return InvalidInput(f"judging and packing the rows takes more work than {most}")
        if any(words in text for words in _MEMORY_WORDS):
            most = f"{self._limits.memory_bytes_max:,} bytes"
            return InvalidInput(f"judging and packing the rows takes more than {most} of memory")
        if -status == signal.SIGKILL:
            return Unavailable("the process that packs rows was killed, perhaps to free memory")
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        _log.warning("a process that reads rows ended with %s: %s", how, text)
        return InvalidInput(f"the process that reads the rows ended with {how}")


def _check_wanted(gave_up: threading.Event) -> None:
    if gave_up.is_set():
        raise Unavailable("nobody waits for the rows any longer")


def _choose_environment(known: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Choose what a process needs of the environment, which may have secrets."""
    chosen = {
        name: value
        for name, value in known.items()
        if name in _NEEDED or name.startswith(_NEEDED_PREFIXES)
    }
    return chosen | {"TMPDIR": str(folder)}


def _read_answer(folder: Path) -> PackedFile:
    facts = json.loads((folder / _ANSWER).read_text())
    return PackedFile(folder / _TARGET, facts["count"], facts["crs"])


# Folders


@contextmanager
def open_draft(folder: Path) -> Iterator[Path]:
    """Make a folder for one file of rows inside that of a broker; it goes with the block."""
    draft = folder / DRAFTS_FOLDER / secrets.token_hex(8)
    try:
        draft.mkdir(mode=0o700, parents=True)
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def refuse_without_room(draft: Path, count: int) -> None:
    """Refuse to write so many bytes more where a broker would soon lack them."""
    if shutil.disk_usage(draft).free < _ROOM_BYTES_MIN + count:
        raise OutOfSpace(f"less than {_ROOM_BYTES_MIN:,} bytes would be free on the disk")


def clear_drafts(folder: Path) -> None:
    """Remove what an earlier process left; only whoever has the folder of a broker may do so."""
    shutil.rmtree(folder / DRAFTS_FOLDER, ignore_errors=True)


def keep_packed(packed: PackedFile, folder: Path) -> PackedFile:
    """Move a packed file to where it stays, in the same file system, under a new name."""
    kept = folder / f"{secrets.token_hex(8)}.contrada"
    packed.path.rename(kept)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return replace(packed, path=kept)
