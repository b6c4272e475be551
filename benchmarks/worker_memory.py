"""How much memory a Python worker of Spark needs for its subscriptions.

10,000 and 100,000 regular polygons of 9 and of 100 vertices in 20° × 15°, each with one comparison
of an attribute. A process of its own opens them as a worker does, and matches 65,536 points; what
is resident is read before, between and after. Seed 1. Needs Linux.

    python benchmarks/worker_memory.py
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import shapely

import contrada
from contrada.matcher.match_run import match_received
from contrada.matching.receiving import receive
from contrada.spark.open_sets import open_set
from contrada.spark.staging import StagedSet, put
from contrada.spark.worker import cut
from machine import describe_machine

_SIZES = [(10_000, 9), (100_000, 9), (10_000, 100), (100_000, 100)]
_WEST_SOUTH, _EAST_NORTH = (-10.0, 40.0), (10.0, 55.0)
_POINTS = 65_536


def main() -> None:
    """Make the subscriptions of each size, and let a process of its own open them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--open", nargs=2, metavar=("SNAPSHOT", "COUNT"), help="measure only this")
    options = parser.parse_args()
    if options.open is not None:
        path, count = options.open
        measure(Path(path), int(count))
        return
    print(describe_machine())
    print("subscriptions, vertices: MB staged, resident before, opened, after matching")
    for count, vertices in _SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "set.contrada"
            save(path, count, vertices)
            command = [sys.executable, __file__, "--open", str(path), str(count)]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(f"{count:,}, {vertices}: {said.strip()}", flush=True)


def save(path: Path, count: int, vertices: int) -> None:
    """Save polygons around random places as a snapshot."""
    rng = np.random.default_rng(1)
    angles = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    middles = rng.uniform(_WEST_SOUTH, _EAST_NORTH, (count, 2))[:, None]
    radii = rng.uniform(0.01, 0.05, (count, 1, 1))
    rings = middles + radii * np.column_stack([np.cos(angles), np.sin(angles)])
    rows = {
        "id": [f"site-{i}" for i in range(count)],
        "geometry": pa.array(shapely.to_wkb(shapely.polygons(rings)), pa.binary()),
        "where": [f"wind > {i % 97}" for i in range(count)],
    }
    matcher = contrada.Matcher()
    matcher.add_many(pa.table(rows))
    matcher.save(path)


def measure(path: Path, count: int) -> None:
    """Open a snapshot as a worker does, match points, and print what is resident."""
    rng = np.random.default_rng(2)
    uri = path.parent.as_uri()
    part = put(uri, path, count)
    resident = [_resident_mb()]
    subscriptions = open_set(StagedSet(uri, (part,)))
    resident.append(_resident_mb())
    points = shapely.points(rng.uniform(_WEST_SOUTH, _EAST_NORTH, (_POINTS, 2)))
    columns = {
        "id": np.arange(_POINTS),
        "geometry": pa.array(shapely.to_wkb(points), pa.binary()),
        "wind": rng.uniform(0, 100, _POINTS),
    }
    events = pa.RecordBatch.from_pydict(columns)
    for batch in cut([events], subscriptions):
        received = receive(
            batch,
            0,
            geometry_attributes=("geometry",),
            geometry_columns=(),
            id_column="id",
            name="events",
            repair=False,
        )
        match_received(received, subscriptions)
    resident.append(_resident_mb())
    print(f"{part.size_bytes / 2**20:.1f},", ", ".join(f"{mb:.0f}" for mb in resident))


def _resident_mb() -> float:
    found = re.search(r"^VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found, "Linux says how much is resident"
    return int(found[1]) / 2**10


if __name__ == "__main__":
    main()
