"""How long `import contrada` and `contrada --help` take, in processes of their own.

The files are warm: each runs once before the clock starts. Runs take turns; medians. Beside them
stands `import numpy, pyarrow, shapely`, without which nothing can be done.

    python benchmarks/starting.py [--repeats 9]

What is asked: 0.3 s for the import, 0.4 s for the help. The table goes to `results/starting.txt`
beside this file. The exit code is 1 where a target is missed.
"""

import argparse
import statistics
import subprocess
import sys
import time

from contrada.reproduce.reporting import Column
from reporting import Report, seconds

PROGRAMS = {
    "import numpy, pyarrow, shapely": "import numpy, pyarrow, shapely",
    "import contrada": "import contrada",
    "contrada --help": "import contrada.cli, sys; sys.exit(contrada.cli.main(['--help']))",
}
MOST_S = {"import contrada": 0.3, "contrada --help": 0.4}


def main() -> int:
    """Measure all programs; print a table and what was reached, and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for turn in range(options.repeats + 1):
        for name, program in PROGRAMS.items():
            spent = run_s(program)
            if turn:
                taken[name].append(spent)
    report = Report("starting", "numpy", "pyarrow", "shapely")
    table = report.start_table(
        Column("program", width_min=30, is_text=True), seconds("median"), seconds("fastest")
    )
    for name, times in taken.items():
        table.add(name, statistics.median(times), min(times))
        if name in MOST_S:
            reached, most = statistics.median(times), MOST_S[name]
            report.ask(name, f"≤ {most:.1f} s", f"{reached:.2f} s", reached <= most)
    return report.finish()


def run_s(program: str) -> float:
    """Run a program in a new Python; return the seconds that it takes."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
