"""A disk of a few megabytes that can be filled to the last page, where root may mount one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_PAGE = 4_096


class SmallDisk:
    """A file system of its own; `fill` takes what is free of it, `empty` gives that back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def free_bytes(self) -> int:
        """How much is free."""
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize

    def fill(self, left_bytes: int = 0) -> None:
        """Take all that is free but a little, whatever others take meanwhile."""
        with self._ballast.open("ab", buffering=0) as file:
            while (pages := (self.free_bytes() - left_bytes) // _PAGE) > 0:
                try:
                    file.write(bytes(_PAGE * pages))
                except OSError:  # somebody was faster
                    continue

    def empty(self) -> None:
        """Let all that was taken be free again."""
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a disk on a folder, which is made; whoever may not is skipped."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("a small disk needs root on Linux")
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody write to a folder, not even root, who is not asked for permission."""
    command = ["mount", "--bind", str(folder), str(folder)]
    if os.geteuid() != 0:
        folder.chmod(0o500)
    elif subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no folder can be mounted read-only")
    else:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
    try:
        yield
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        else:
            folder.chmod(0o700)
