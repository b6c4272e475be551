"""The cache folder that the Python workers of one machine share, of bounded size.

What a worker has open in its own memory is in `open_sets`.
"""

import contextlib
import os
import time
from pathlib import Path

from contrada.errors import InvalidInput, Unavailable
from contrada.machine import cache_folders

_BYTES_MAX = "CONTRADA_CACHE_BYTES_MAX"
_BYTES_MAX_DEFAULT = 8 * 2**30
DRAFT_SUFFIX = ".tmp"
_DRAFT_AGE_MAX_S = 3_600.0  # since somebody has written to it last


def cache_folder(name: str) -> Path:
    """Return a folder that all workers of a machine share."""
    for folder in cache_folders(name):
        return folder
    raise Unavailable(
        "neither the user's cache nor the temporary folder is writable; "
        "set XDG_CACHE_HOME to a folder that is"
    )


def prune(folder: Path, suffix: str, keep: Path) -> None:
    """Delete the files longest unused beyond the cap; one that is open lives until it is closed.

    Drafts go that a task left behind when it was killed.
    """
    _delete_old_drafts(folder)
    room = read_bytes_max(_BYTES_MAX, _BYTES_MAX_DEFAULT)
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


def _delete_old_drafts(folder: Path) -> None:
    for path in folder.glob(f".*{DRAFT_SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _DRAFT_AGE_MAX_S:
                path.unlink()


def read_bytes_max(name: str, default: int) -> int:
    """Read a limit of bytes that a variable of the environment may state."""
    stated = os.environ.get(name)
    if stated is None:
        return default
    if not stated.isdecimal():
        raise InvalidInput(f"{name} must be a number of bytes, not {stated!r}")
    return int(stated)
