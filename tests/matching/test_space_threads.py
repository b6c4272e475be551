"""Areas that threads ask at once must be ready when they are made: GEOS breaks otherwise."""

import subprocess
import sys

# In a process of its own, since a mistake here ends the process.
CALL = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np, shapely
from contrada.matching.row_relations import make_shapes
areas = shapely.buffer(shapely.points(np.arange(2000) % 50, np.arange(2000) // 50), 0.7, 16)
rng = np.random.default_rng(1)
ids = np.sort(rng.integers(0, len(areas), 40_000))
x, y = ids % 50 + rng.uniform(-0.7, 0.7, len(ids)), ids // 50 + rng.uniform(-0.7, 0.7, len(ids))
for _ in range(12):
    shapes = make_shapes(areas).geometries
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: shapely.intersects_xy(shapes[ids], x, y).sum(), range(4)))
    assert len(set(found)) == 1
print("fine")
"""


def test_threads_may_ask_areas_at_once() -> None:
    run = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=False)
    assert run.stdout == "fine\n", run.stderr[-500:]
