"""What one user's processes on one machine share: cache folders, locks, files that appear whole."""

import atexit
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from contrada.errors import Unavailable, blame


def cache_folders(name: str = "") -> Iterator[Path]:
    """List the folders of a name that can be written to, best first; each is made if need be.

    They lie in the user's cache ($XDG_CACHE_HOME or ~/.cache), or where that is read-only in a
    temporary folder. What is in them may be run, so a folder of another user's will not do.
    """
    for parent in _parents():
        folder = parent / name
        try:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(exist_ok=True)
            is_ours = folder.stat().st_uid == parent.stat().st_uid == _user()
        except OSError:
            continue
        if is_ours and os.access(folder, os.W_OK):
            yield folder


def _parents() -> Iterator[Path]:
    # Path.home() fails where the user has no home; this leaves the "~".
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))  # noqa: PTH111
    if cache.is_absolute():
        yield cache / "contrada"
    yield Path(tempfile.gettempdir()) / f"contrada-{_user()}"


def _user() -> int:
    return os.getuid() if sys.platform != "win32" else 0


def temporary_folder(purpose: str) -> Path:
    """Make a folder that goes when this process ends; a child of a fork leaves it alone."""
    folder = Path(tempfile.mkdtemp(prefix=f"contrada-{purpose}-"))
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process of a machine in at a time; on Windows, which has no such locks, any."""
    with ExitStack() as stack:
        try:
            _lock(stack.enter_context(path.open("w")))
        except OSError as fault:
            raise Unavailable(f"{path}: cannot be locked: {fault.strerror or fault}") from fault
        yield


def _lock(file: IO[str], *, is_patient: bool = True) -> None:
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if is_patient else fcntl.LOCK_NB))


def try_lock(path: Path) -> IO[str]:
    """Lock a file until it is closed; raise BlockingIOError while somebody else has it.

    Where there are no such locks, on Windows and some file systems, everybody gets it.
    """
    with ExitStack() as stack:
        file = stack.enter_context(path.open("w"))
        try:
            _lock(file, is_patient=False)
        except BlockingIOError:
            raise
        except OSError:
            pass
        stack.pop_all()
    return file


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the target, then rename: a reader sees the old file or the new one.

    This also holds after a power failure: content is on disk before it gets the name.
    A link stays, and what is not a file (a pipe, a device) is written to as it is.
    """
    try:
        _write_or_replace(Path(os.path.realpath(path)), content)
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise blame(fault, f"{path}: cannot be written: {fault.strerror or fault}") from fault


def _write_or_replace(path: Path, content: bytes) -> None:
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    draft = path.with_name(f".contrada-{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
