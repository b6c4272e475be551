"""How much the experiments measure, and what each of them is given."""

from dataclasses import dataclass

from contrada.reproduce import running
from contrada.reproduce.ahs.paper import STEP


@dataclass(frozen=True, slots=True)
class AhsPlan:
    """How much to measure; sizes are numbers of subscriptions.

    `shape_count` lines, as many polygons and `point_count` points are given to workers, and what
    each worker does is repeated `worker_repeats` times.
    """

    copies: tuple[int, ...]
    query_repeats: int
    point_count: int
    shape_count: int
    worker_repeats: int
    pair_count: int
    error_levels: tuple[int, ...]
    aggregated: tuple[int, ...]
    loaded: int


FULL = AhsPlan(
    copies=tuple(range(STEP, 10_001, STEP)),
    query_repeats=50,
    point_count=200,
    shape_count=40,
    worker_repeats=10,
    pair_count=1_000,
    error_levels=(6, 8, 10, 12, 14, 16, 18),
    aggregated=(125, 250, 500, 1_000, 2_000, 4_000, 8_000),
    loaded=20_000,
)
QUICK = AhsPlan(
    copies=tuple(range(STEP, 5_001, STEP)),
    query_repeats=20,
    point_count=50,
    shape_count=16,
    worker_repeats=5,
    pair_count=200,
    error_levels=(8, 10, 12, 14, 16),
    aggregated=(125, 250, 500, 1_000, 2_000),
    loaded=5_000,
)

AhsRun = running.Run[AhsPlan]
