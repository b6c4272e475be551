"""What `make setup` runs: `pip install …` that says how far it is, and nothing else.

pip itself is either silent or long-winded, and silent in any case while it unpacks. What it has to
say is shown if it fails.
"""

import re
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

QUIET_S = 10  # between two lines where a line cannot be written over


class Progress:
    """How far pip is, by what it prints and by what lies in the folder of packages."""

    def __init__(self, folder: Path) -> None:
        """Start before anything is fetched."""
        self._folder = folder
        self._before = self._count()
        self._fetched: list[str] = []
        self._wanted = 0
        self.said: list[str] = []

    def hear(self, line: str) -> None:
        """Take in a line of pip's."""
        self.said.append(line)
        if found := re.match(
            r"(?:Collecting|Processing) (?:.*/)?([\w.-]+?)(?:[=<>~!;\[ -]|$)", line
        ):
            self._fetched.append(found[1])
        elif line.startswith("Installing collected packages: "):
            self._wanted = line.count(",") + 1

    def __str__(self) -> str:
        if self._wanted:
            done = min(self._count() - self._before, self._wanted)
            return f"unpacking: {done} of {self._wanted} packages"
        now = f", now {self._fetched[-1]}" if self._fetched else ""
        return f"fetching: {len(self._fetched)} packages{now}"

    def _count(self) -> int:
        return len(list(self._folder.glob("*.dist-info")))


def main(arguments: list[str]) -> int:
    """Run pip, and show its progress on stderr until it ends."""
    command = [sys.executable, "-m", "pip", "install", "--progress-bar", "off", *arguments]
    progress = Progress(Path(sysconfig.get_path("purelib")))
    started = time.monotonic()
    with subprocess.Popen(  # noqa: S603  the pip of this very Python
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        reader = threading.Thread(target=_read, args=(pip, progress))
        reader.start()
        show_until_over(reader, progress, started)
    if pip.returncode:
        print(*progress.said, sep="\n", file=sys.stderr)
    else:
        say(f"installed in {time.monotonic() - started:.0f} s")
    return pip.returncode


def _read(pip: "subprocess.Popen[str]", progress: Progress) -> None:
    assert pip.stdout is not None
    for line in pip.stdout:
        progress.hear(line.rstrip())


def show_until_over(reader: threading.Thread, progress: object, started: float) -> None:
    """Show progress until a thread has ended."""
    pause_s = 1 if sys.stderr.isatty() else QUIET_S
    reader.join(pause_s)
    while reader.is_alive():
        say(f"{time.monotonic() - started:4.0f} s  {progress}", is_kept=not sys.stderr.isatty())
        reader.join(pause_s)


def say(text: str, *, is_kept: bool = True) -> None:
    """Write a line; on a terminal over the one before, which the next may then write over."""
    start = "\r\x1b[2K" if sys.stderr.isatty() else ""
    print(f"{start}  {text}", end="\n" if is_kept else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
