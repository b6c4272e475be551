"""How often Algorithm 1 errs, by density, against the exact relation (section 5.1)."""

from collections.abc import Sequence

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.matching.indexes.by_tree import TABLE_1_BASES
from contrada.model.relation import egenhofer
from contrada.pictures.plots import Panel, Series
from contrada.reproduce.crtree.measuring import Subjects, mean_ms
from contrada.reproduce.crtree.paper import WRONG_PERCENT
from contrada.reproduce.crtree.plan import CrtreeRun
from contrada.reproduce.crtree.rings import RingSet
from contrada.reproduce.reporting import (
    Column,
    Table,
    compare,
    say_title,
    write_ms,
    write_times,
)
from contrada.reproduce.scenarios import Regions, synthetic_regions


def measure_error(run: CrtreeRun) -> None:
    """Compare Algorithm 1 with the exact relation over pairs of large regions."""
    side = int(np.sqrt(run.plan.pair_count))
    pair_count = side * side
    say_title(
        run.reporter,
        f"The error of Algorithm 1: {pair_count:,} pairs of large regions "
        f"(one pair is {100 / pair_count:.3g} %)",
    )
    table = Table(
        run.reporter,
        [
            Column("D", format=",", width_min=6),
            Column("wrong pairs", format=","),
            Column("paper", "wrong %"),
            Column("ours", "wrong %", width_min=7),
            Column(f"against {side} regions", "ms per event"),
        ],
    )
    rng = run.generator(3)
    regions, events = synthetic_regions(rng, side), synthetic_regions(rng, side)
    rings = RingSet(regions)
    shares, times = [], []
    with run.reporter.watch("error", len(run.plan.densities) + 1) as step:
        exact = _exact_relations(regions, events)
        exact_ms = mean_ms(lambda event: shapely.relate(event, regions), events)
        step()
        for density in run.plan.densities:
            wrong = _count_wrong(rings, events, density, exact)
            times.append(rings.mean_ms(events[:10], density))
            shares.append(wrong / pair_count * 100)
            paper = WRONG_PERCENT.get(density)
            table.add(
                density,
                wrong,
                None if paper is None else f"{paper:g}",
                f"{shares[-1]:.3f}",
                write_ms(times[-1]),
            )
            step()
    table.add("exact", "0", None, "0", write_ms(exact_ms))
    _compare(run, times, exact_ms)
    _draw(run, shares)


def _exact_relations(regions: Regions, events: Subjects) -> NDArray[np.int64]:
    return np.array(
        [
            [TABLE_1_BASES.index(egenhofer(str(m))) for m in shapely.relate(e, regions)]
            for e in events
        ]
    )


def _count_wrong(rings: RingSet, events: Subjects, density: float, exact: NDArray[np.int64]) -> int:
    return sum(
        int((rings.find(event, density) != truth).sum())
        for event, truth in zip(events, exact, strict=True)
    )


def _compare(run: CrtreeRun, times: Sequence[float], exact_ms: float) -> None:
    """Hold the times against the text; the last density is the paper's last, 12,000."""
    first, last = run.plan.densities[1], run.plan.densities[-1]
    ratio = times[-1] / exact_ms
    compare(
        run.reporter,
        "the text on densities",
        [
            (
                f"at D = {last:,} Algorithm 1 is still faster than the exact algorithm",
                "yes",
                f"{'yes' if ratio < 1 else 'no'}: it takes {write_times(ratio)} the time",
            ),
            (
                f"time is linear in D: from {first:,} to {last:,} it grows",
                f"more or less {write_times(last / first)}",
                write_times(times[-1] / times[1]),
            ),
        ],
    )


def _draw(run: CrtreeRun, shares: Sequence[float]) -> None:
    paper = Series(
        "paper (two values in its text)",
        list(WRONG_PERCENT),
        list(WRONG_PERCENT.values()),
        colour=1,
        line="none",
        is_quoted=True,
    )
    run.draw(
        "error.png",
        [Panel([Series("ours", run.plan.densities, shares), paper])],
        title="The error of Algorithm 1 by point density",
        note="0 % means none of the pairs examined. At D = 0 only vertices are points.",
        x_label="points on half of the universe's perimeter (D)",
        y_label="% of pairs with a wrong relation",
        scale="log with zero",
    )
