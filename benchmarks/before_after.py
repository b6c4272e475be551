"""The same work by this version and by an older one, in turn: what became faster, what slower.

Each round is a process of its own that does one piece of work with one of the two versions, three
times after a warm-up, and takes the fastest in processor time; rounds come in random order. The
work needs public names only, so that any older checkout can do it, and answers must be equal.

    git worktree add ../older <commit>
    python benchmarks/before_after.py ../older [--rounds 5]

The table goes to `results/before_after.txt` beside this file. The exit code is 1 where something
takes more than 1.1 times as long as before.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

OWN = Path(__file__).parents[1]
SLOWER_MAX = 1.1
REPEATS = 3
POLYGONS, SIDE = 20_000, 100.0

Work = Callable[[], int]


def make_areas(rng: np.random.Generator, count: int, radius: float) -> Any:
    """Draw polygons of twelve vertices."""
    angles = np.linspace(0, 2 * np.pi, 13)[:-1]
    radii = radius * rng.uniform(0.6, 1, (count, 12))
    around = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=2)
    return shapely.polygons(rng.uniform(0, SIDE, (count, 2))[:, None] + around)


def make_lines(rng: np.random.Generator, count: int) -> Any:
    """Draw lines of twenty vertices."""
    steps = rng.normal(0, 0.3, (count, 20, 2)).cumsum(axis=1)
    return shapely.linestrings(rng.uniform(0, SIDE, (count, 1, 2)) + steps)


def make_points(rng: np.random.Generator, count: int) -> Any:
    """Draw points."""
    return shapely.points(rng.uniform(0, SIDE, (count, 2)))


def as_table(shapes: Any, **columns: Any) -> pa.Table:
    """Write geometries and other columns as a table."""
    return pa.table({"geometry": pa.array(shapely.to_wkb(shapes), pa.binary()), **columns})


def prepare_batch(events: Any, relation: str, count: int = POLYGONS) -> Work:
    """Match a table with polygons."""
    import contrada

    rng = np.random.default_rng(1)
    matcher = contrada.Matcher()
    areas = make_areas(rng, count, 0.6)
    matcher.add_many(as_table(areas, relation=[relation] * count))
    table = as_table(events(rng))
    return lambda: len(matcher.match_many(table, threads=1))


def prepare_values(filters: list[str], rows: int = 65_536) -> Work:
    """Match a table with filters of attributes."""
    import contrada

    rng = np.random.default_rng(1)
    matcher = contrada.Matcher()
    matcher.add_many(pa.table({"filter": filters}))
    names = [f"ship-{number}" for number in rng.integers(0, 1_000, rows).tolist()]
    table = pa.table({"speed": rng.uniform(0, 100, rows), "name": names})
    return lambda: len(matcher.match_many(table, threads=1))


def prepare_singles(events: Any, where: str | None = None) -> Work:
    """Match events one by one with polygons, which have a range each perhaps."""
    import contrada

    rng = np.random.default_rng(1)
    matcher = contrada.Matcher()
    table = as_table(make_areas(rng, POLYGONS, 0.6))
    if where is not None:
        texts = [where.format(bound) for bound in rng.uniform(0, 100, POLYGONS).tolist()]
        table = table.append_column("where", pa.array(texts))
    matcher.add_many(table)
    asked = [{"geometry": shape, "speed": 50.0} for shape in events(rng)]
    return lambda: sum(len(matcher.match(event)) for event in asked)


def prepare_adding(where: bool) -> Work:
    """Add a table to a new matcher."""
    import contrada

    rng = np.random.default_rng(1)
    table = as_table(make_areas(rng, POLYGONS, 0.6))
    if where:
        texts = [f"speed > {bound!r}" for bound in rng.uniform(0, 100, POLYGONS).tolist()]
        table = table.append_column("where", pa.array(texts))

    def add() -> int:
        matcher = contrada.Matcher()
        added: int = matcher.add_many(table)
        matcher.match({"geometry": shapely.Point(1, 1), "speed": 1})
        return added

    return add


RANGES = [f"speed > {99.5 + number / 2_000}" for number in range(1_000)]
WORKS: dict[str, Callable[[], Work]] = {
    "200,000 points": lambda: prepare_batch(lambda rng: make_points(rng, 200_000), "intersects"),
    "5,000 lines": lambda: prepare_batch(lambda rng: make_lines(rng, 5_000), "intersects"),
    "2,000 areas, intersects": lambda: prepare_batch(
        lambda rng: make_areas(rng, 2_000, 2), "intersects"
    ),
    "2,000 areas, within": lambda: prepare_batch(lambda rng: make_areas(rng, 2_000, 0.3), "within"),
    "500 areas, ehOverlap": lambda: prepare_batch(lambda rng: make_areas(rng, 500, 2), "ehOverlap"),
    "20 points, disjoint": lambda: prepare_batch(lambda rng: make_points(rng, 20), "disjoint"),
    "1,000 ranges, 65,536 rows": lambda: prepare_values(RANGES),
    "20 LIKE, 65,536 rows": lambda: prepare_values([f"name LIKE 'ship-{n}%'" for n in range(20)]),
    "2,000 points, one by one": lambda: prepare_singles(lambda rng: make_points(rng, 2_000)),
    "2,000 points with a range, one by one": lambda: prepare_singles(
        lambda rng: make_points(rng, 2_000), "speed > {!r}"
    ),
    "300 areas, one by one": lambda: prepare_singles(lambda rng: make_areas(rng, 300, 2)),
    "add_many of 20,000, and a match": lambda: prepare_adding(where=False),
    "add_many of 20,000 with a range, and a match": lambda: prepare_adding(where=True),
}


def measure(name: str) -> None:
    """Do one piece of work here, and print the seconds and the answer."""
    work = WORKS[name]()
    answer = work()
    taken = []
    for _ in range(REPEATS):
        started = time.process_time()
        assert work() == answer
        taken.append(time.process_time() - started)
    print(json.dumps([min(taken), answer]))


def run(name: str, tree: Path) -> tuple[float, int]:
    """Do one piece of work in a process that has the sources of a tree."""
    command = [sys.executable, __file__, str(tree), "--work", name]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    taken_s, answer = json.loads(done.stdout)
    return taken_s, answer


def main() -> int:
    """Compare the two versions; print a table and what was reached, and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("older", type=Path, help="a checkout of an older version")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        measure(options.work)
        return 0
    return compare(options.older.resolve(), options.rounds)


def compare(older: Path, rounds: int) -> int:
    """Let the versions take turns at each piece of work."""
    from contrada.reproduce.reporting import Column
    from reporting import Report

    if not (older / "src" / "contrada").is_dir():
        sys.exit(f"{older}: not a checkout of Contrada: it has no src/contrada")
    report = Report("before_after", "numpy", "shapely", "pyarrow")
    table = report.start_table(
        Column("work", width_min=max(map(len, WORKS)), is_text=True),
        Column("before", width_min=10),
        Column("after", width_min=10),
        Column("after/before", width_min=12),
    )
    for name in WORKS:
        turns = [older, OWN] * rounds
        random.Random(name).shuffle(turns)
        found = [(tree, *run(name, tree)) for tree in turns]
        assert len({answer for _, _, answer in found}) == 1, f"{name}: other answers than before"
        before, after = (
            statistics.median(taken_s for tree, taken_s, _ in found if tree == version)
            for version in (older, OWN)
        )
        ratio = after / before
        table.add(name, f"{before * 1e3:,.1f} ms", f"{after * 1e3:,.1f} ms", f"{ratio:.2f}")
        report.ask_limit(name, ratio, most=SLOWER_MAX)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
