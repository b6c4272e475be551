"""What a path to rows may lead to: a file that stays as it is, or a folder.

Formats are read more than once: first for their columns, then for the rows, and where a row is bad
for its line. A pipe gives its bytes once, and whoever opens it waits until somebody writes.
"""

import stat
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
    kind = stat.S_IFMT(path.stat().st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        raise InvalidInput(
            f"{name}: is {_OTHER_KINDS.get(kind, 'of another kind')}, not a file, and is to be "
            "read more than once; write what it holds to a file and name that"
        )
