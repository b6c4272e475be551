"""What the Python workers of one machine share: a cache folder of bounded size, and locks."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contrada.errors import InvalidInput

_BYTES_MAX = "CONTRADA_CACHE_BYTES_MAX"
_BYTES_MAX_DEFAULT = 8 * 2**30


def cache_folder(name: str) -> Path:
    """Give a folder that all workers of a machine share; a temporary one if home is read-only."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    for parent in (
        Path(cache) / "contrada",
        Path(tempfile.gettempdir()) / f"contrada-{os.getuid()}",
    ):
        folder = parent / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise InvalidInput(
        f"neither {cache} nor {tempfile.gettempdir()} can be written to: "
        "set XDG_CACHE_HOME to a folder that can"
    )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process of a machine in at a time."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def prune(folder: Path, suffix: str, keep: Path) -> None:
    """Delete the files longest unused beyond the cap; one that is open lives until it is closed."""
    room = _bytes_max()
    copies = []
    for path in folder.glob(f"*{suffix}"):
        try:
            state = path.stat()
        except FileNotFoundError:
            continue
        copies.append((path != keep, -state.st_mtime, state.st_size, path))
    for _, _, size, path in sorted(copies):
        room -= size
        if room < 0 and path != keep:
            path.unlink(missing_ok=True)


def _bytes_max() -> int:
    stated = os.environ.get(_BYTES_MAX)
    if stated is None:
        return _BYTES_MAX_DEFAULT
    if not stated.isdecimal():
        raise InvalidInput(f"{_BYTES_MAX} must be a number of bytes, not {stated!r}")
    return int(stated)
