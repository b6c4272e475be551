"""The memory of a process and of all that descend from it, as Linux tells it in /proc.

Pages of files are left out: how much of a library counts as a process's own depends on who else on
the machine has it open.
"""

import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
# A page that n processes share counts 1/n.
_PSS = re.compile(r"^Pss_(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)


def measure_tree(top: int) -> dict[str, float]:
    """The memory in MB of a process and its descendants, by the name of their program."""
    found: dict[str, float] = defaultdict(float)
    for pid in [top, *_descendants(top)]:
        with suppress(OSError):  # it has just ended
            name = (_PROC / str(pid) / "comm").read_text().strip()
            stated = _PSS.findall((_PROC / str(pid) / "smaps_rollup").read_text())
            found[name] += sum(map(int, stated)) / 1024
    return dict(found)


def _descendants(top: int) -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for path in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):
            children[int(path.read_text().rpartition(")")[2].split()[1])].append(
                int(path.parent.name)
            )
    found, waiting = [], [top]
    while waiting:
        below = children[waiting.pop()]
        found += below
        waiting += below
    return found
