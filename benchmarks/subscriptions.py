"""What it costs to hold subscriptions and to change them.

Polygons are star-shaped, all different, of a radius of 0.01 in 20° × 13°:

- 85,550 of 36 vertices (605 bytes of WKB), with a range `speed > x` each, x all different: memory
  in columns, resident after a match, and after events in all of them, since GEOS prepares what
  events come near; `add_many` as WKB without and with ranges, and as CQL2;
- 1,000,000 of five vertices: `add_many`, a first match, a snapshot, and a match after opening it;
- the same, then one more by `add` and one event, 200 times, and one more and a table of 100
  events, 21 times;
- 750,000 of five vertices and 250,000 more, and as many `name = x`, which are merged in the
  background: how long another thread does not run that wants to each half millisecond;
- 85,550 of 36 vertices, while another thread adds one each millisecond, and removes it a hundred
  later: one event each millisecond, for 5 s;
- 1,000 subscriptions to one of 111,436 vertices, as an Arrow dictionary and as 1.8 GB of WKB;
- 1,000 of 36 vertices with engine `crtree`, removed one by one after a match.

Each case is measured `--repeats` times, each time once, in a process of its own that draws other
polygons (seeds 1, 2, …) and has warmed up on a thousand; medians. A peer works in the same
process, in an order drawn from the seed. `--quick` takes a tenth of the polygons, and of the
vertices of the largest, and asks for the same. Needs Linux.

    python benchmarks/subscriptions.py [--quick] [--repeats 3]

The table goes to `results/subscriptions.txt` beside this file. The exit code is 1 where a target
is missed.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from contrada.reproduce.reporting import Column, Table
from reporting import Report

CASES_SCRIPT = Path(__file__).with_name("subscription_cases.py")
MEMORY = Path("/proc/meminfo")
QUICK_DIVISOR = 10
PLAIN_FREE_MIN = 8e9  # bytes: what the case `plain` asks for
SHAPELY = "from_wkb, is_valid"


@dataclass(frozen=True, slots=True)
class Figure:
    """What a case measures: its name there, its unit, and what is asked of it."""

    name: str
    work: str
    unit: str
    most: float | None = None
    least: float | None = None
    peer: str = ""  # who works beside it

    def write(self, value: float) -> str:
        """Write a value, which is in seconds, bytes or a count a second."""
        scale, digits = UNITS[self.unit]
        return f"{value * scale:,.{digits}f} {self.unit}"

    def tell(self, table: Table, medians: Mapping[str, float]) -> None:
        """Add a row with the median, and that of the peer."""
        peer = self.write(medians["peer"]) if self.peer else ""
        table.add(self.work, self.write(medians[self.name]), peer, self.peer)

    def ask(self, report: Report, value: float) -> None:
        """Compare a value with what is asked, if anything is."""
        reached = self.write(value)
        if self.most is not None:
            report.ask(self.work, f"≤ {self.write(self.most)}", reached, value <= self.most)
        if self.least is not None:
            report.ask(self.work, f"≥ {self.write(self.least)}", reached, value >= self.least)


UNITS = {"s": (1, 2), "ms": (1e3, 2), "kB": (1e-3, 2), "MB": (1e-6, 1), "/s": (1, 0)}

FIGURES: dict[str, Sequence[Figure]] = {
    "memory": (
        Figure("columns", "85,550 with a range: columns, each", "kB", most=1_000),
        Figure("resident", "85,550 with a range: resident, each", "kB", most=4_000),
        Figure("visited", "85,550 with a range: after an event in each", "kB"),
    ),
    "wkb": (Figure("seconds", "85,550: add_many, WKB", "s", most=1.5, peer=SHAPELY),),
    "where": (Figure("seconds", "85,550: add_many, WKB and where", "s", most=3, peer=SHAPELY),),
    "filter": (
        Figure("seconds", "85,550: add_many, filters", "s", most=6, peer="from_wkt, is_valid"),
    ),
    "added": (
        Figure("seconds", "1,000,000: add_many, WKB", "s", most=8, peer=SHAPELY),
        Figure("match", "1,000,000: first match", "s", most=0.1),
        Figure("save", "1,000,000: save", "s"),
    ),
    "opened": (
        Figure("open", "1,000,000: open", "s", most=0.5),
        Figure("match", "1,000,000: first match after opening", "s"),
    ),
    "single": (
        Figure("both", "1,000,000: add and match, p99", "ms", most=1e-3),
        Figure("match", "1,000,000: match alone after add, p99", "ms"),
        Figure("match_many", "1,000,000: match_many of 100 after add", "ms", most=10e-3),
    ),
    "merged": (
        Figure("polygons", "1,000,000 that are merged: another waits at most", "ms", most=50e-3),
        Figure("texts", "1,000,000 texts that are merged: another waits", "ms", most=50e-3),
    ),
    "churn": (
        Figure("match", "85,550 that change: match, p99", "ms", most=2e-3),
        Figure("changes", "85,550 that change: added and removed", "/s", least=950),
    ),
    "dictionary": (
        Figure("seconds", "1,000 of 111,436 vertices: dictionary", "s", most=0.5),
        Figure("peak", "1,000 of 111,436 vertices: dictionary, at most", "MB"),
    ),
    "plain": (
        Figure("seconds", "1,000 of 111,436 vertices: WKB", "s", most=1.5, peer="Arrow's hash"),
        Figure("resident", "1,000 of 111,436 vertices: WKB, resident", "MB", most=50e6),
        Figure("peak", "1,000 of 111,436 vertices: WKB, at most", "MB"),
    ),
    "removed": (Figure("removals", "1,000 in crtree: remove", "/s", least=10_000),),
}


def main() -> int:
    """Measure all cases; print a table and what was reached, and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    divisor = QUICK_DIVISOR if options.quick else 1
    report = Report("subscriptions", "numpy", "pyarrow")
    if options.quick:
        report.say("quick: a tenth of the polygons that are named")
    table = report.start_table(
        Column("case", width_min=max(len(figure.work) for figure in list_figures()), is_text=True),
        Column("contrada", width_min=10),
        Column("peer", width_min=8),
        Column("the peer's work", width_min=18, is_text=True),
    )
    with tempfile.TemporaryDirectory() as folder:
        for case, figures in FIGURES.items():
            free_min = PLAIN_FREE_MIN / divisor if case == "plain" else 0
            if read_available() < free_min:
                report.say(f"{figures[0].work}: skipped, needs {free_min / 1e9:.1f} GB of memory")
                continue
            runs = [measure(case, folder, 1 + run, divisor) for run in range(options.repeats)]
            medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
            for figure in figures:
                figure.tell(table, medians)
                figure.ask(report, medians[figure.name])
    return report.finish()


def list_figures() -> Iterator[Figure]:
    """List the figures of all cases."""
    return chain.from_iterable(FIGURES.values())


def measure(case: str, folder: str, seed: int, divisor: int) -> dict[str, float]:
    """Measure a case once, in a process of its own."""
    command = [sys.executable, str(CASES_SCRIPT), case, folder, str(seed), str(divisor)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: dict[str, float] = json.loads(said)
    return figures


def read_available() -> int:
    """Count the bytes of memory that processes could take, as Linux sees it."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB", MEMORY.read_text(), re.MULTILINE)
    assert found, "Linux says how much is available"
    return int(found[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())
