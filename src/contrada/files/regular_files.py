"""What a path to rows may lead to: a file that stays as it is, or a folder.

Formats are read more than once: first for their columns, then for the rows, and where a row is bad
for its line. A pipe gives its bytes once, and whoever opens it waits until somebody writes. And a
file that is written takes the place of what is there, be it the null device.
"""

import stat
from contextlib import suppress
from pathlib import Path

from contrada.errors import InvalidInput

_OTHER_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_regular(path: Path, name: str) -> None:
    """Refuse what is neither a file nor a folder; raises `OSError` where nothing is there."""
    kind = _name_other_kind(path)
    if kind is not None:
        raise InvalidInput(
            f"{name}: is {kind}, not a regular file, and must be read more than once; "
            "save its contents to a file and use that"
        )


def check_named(name: str) -> None:
    """Refuse an empty name, which would mean the folder at hand: a variable was not set."""
    if not name:
        raise InvalidInput("'' is not a path: it is empty")


def check_replaceable(path: Path) -> None:
    """Refuse to put a file in the place of a folder, a pipe, a socket or a device."""
    with suppress(OSError):
        if path.is_dir():
            raise InvalidInput(f"{path}: cannot be written: it is a folder")
        kind = _name_other_kind(path)
        if kind is not None:
            raise InvalidInput(
                f"{path}: is {kind}, not a regular file, and will not be replaced; "
                "choose another file"
            )


def _name_other_kind(path: Path) -> str | None:
    kind = stat.S_IFMT(path.stat().st_mode)
    if kind in (stat.S_IFREG, stat.S_IFDIR):
        return None
    return _OTHER_KINDS.get(kind, "of another kind")
