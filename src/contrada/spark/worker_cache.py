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
_FILES_MAX = 16_384
_PRUNED_AFTER = 64, 1 / 16  # new files, or a share of the bytes: until then nobody looks at all
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


class CachePruner:
    """Deletes the files longest unused beyond the caps on bytes and on files.

    One that is open lives until it is closed. It looks at all files only now and then, so the
    folder may grow beyond the caps by what each process adds meanwhile. Drafts go that a task left
    behind when it was killed.
    """

    def __init__(self) -> None:
        """Look at all files when the first is added."""
        self._files, self._bytes = _PRUNED_AFTER[0], 0

    def add(self, path: Path, suffix: str) -> None:
        """Note that a file was added; it stays, whatever else goes."""
        bytes_max = read_bytes_max(_BYTES_MAX, _BYTES_MAX_DEFAULT)
        self._files += 1
        with contextlib.suppress(FileNotFoundError):
            self._bytes += path.stat().st_size
        files, share = _PRUNED_AFTER
        if self._files >= files or self._bytes >= share * bytes_max:
            self._files = self._bytes = 0
            _delete_old_drafts(path.parent)
            _delete_unused(path, suffix, bytes_max)


def _delete_unused(keep: Path, suffix: str, bytes_max: int) -> None:
    copies = []
    for path in keep.parent.glob(f"*{suffix}"):
        try:
            state = path.stat()
        except FileNotFoundError:
            continue
        copies.append((path != keep, -state.st_mtime, state.st_size, path))
    for place, (_, _, size, path) in enumerate(sorted(copies)):
        bytes_max -= size
        if (bytes_max < 0 or place >= _FILES_MAX) and path != keep:
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
