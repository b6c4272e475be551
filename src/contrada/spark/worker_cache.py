"""The cache folder that the Python workers of one machine share, of bounded size."""

import os
from pathlib import Path

from contrada.errors import InvalidInput, Unavailable
from contrada.machine import cache_folders

_BYTES_MAX = "CONTRADA_CACHE_BYTES_MAX"
_BYTES_MAX_DEFAULT = 8 * 2**30


def cache_folder(name: str) -> Path:
    """Return a folder that all workers of a machine share."""
    for folder in cache_folders(name):
        return folder
    raise Unavailable(
        "neither the user's cache nor the temporary folder can be written to: "
        "set XDG_CACHE_HOME to a folder that can"
    )


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
