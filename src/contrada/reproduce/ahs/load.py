"""How evenly θ spreads the load (section 4): a partition for each prefix, and prefixes packed.

The paper assigns to each worker what θ splits off; we pack the prefixes into as many partitions as
there are, the heaviest first, and split a prefix that cannot be split further by replicas.
"""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from contrada.arrays import Geometries
from contrada.matching.grid import LONGITUDE_LATITUDE, Grid
from contrada.matching.lookup import Weights, loads, make_lookup_table, split, weigh
from contrada.model.geometry import as_array
from contrada.pictures.plots import Panel, Series
from contrada.reproduce.ahs.plan import AhsRun
from contrada.reproduce.ahs.shapes import make_city
from contrada.reproduce.reporting import Column, Table, say_prose, say_title

PARTITIONS = 16
THETAS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)  # in fair shares of a partition
PREFIX_LEVEL_MAX = 12  # at which a prefix is not split any further
_CITIES = 50


@dataclass(frozen=True, slots=True)
class Load:
    """The result of a θ: its prefixes, and the heaviest load over the mean, by prefix and packed.

    `copies` are the partitions' copies of a subscription, on average, one for each prefix in which
    it lies, and for each replica.
    """

    theta: float
    prefix_count: int
    heaviest_prefix: float
    heaviest_partition: float
    copies: float


def measure_load(run: AhsRun) -> list[Load]:
    """Make lookup tables for several θ over a skewed workload; print and draw their loads."""
    say_title(run.reporter, f"Ours: load by θ, {PARTITIONS} partitions, a skewed workload")
    table = Table(
        run.reporter,
        [
            Column("θ in fair shares", format="g"),
            Column("prefixes", format=","),
            Column("a worker per prefix", "heaviest over mean", ".2f"),
            Column("packed", "heaviest over mean", ".2f"),
            Column("copies of a subscription", format=".2f"),
        ],
    )
    with run.reporter.watch("load by θ", len(THETAS)) as step:
        shapes = make_skewed(run.generator(11), run.plan.loaded)
        weights = _weigh(shapes)
        found = []
        for theta in THETAS:
            found.append(load_of(shapes, weights, theta))
            table.add(*(getattr(found[-1], name) for name in Load.__slots__))
            step()
    say_prose(
        run.reporter,
        f"{len(shapes):,} towns around {_CITIES} cities, the n-th with 1/n as many as the first; "
        f"the weight is the number of their cells. θ is in fair shares: 1 is a {PARTITIONS}th of "
        "all. Packed, a prefix heavier than a fair share has replicas; a subscription is copied to "
        "each partition that has one of its prefixes.",
    )
    _draw(run, found)
    return found


def make_skewed(rng: Generator, count: int) -> Geometries:
    """Make towns around cities whose sizes fall as 1/rank (Zipf), over the whole map."""
    ranks = 1 / np.arange(1, _CITIES + 1)
    cities = rng.uniform((-170, -60), (170, 60), (_CITIES, 2))
    chosen = rng.choice(_CITIES, count, p=ranks / ranks.sum())
    middles = cities[chosen] + rng.normal(0, 1.5, (count, 2))
    scales = np.exp(rng.uniform(np.log(0.2), 0, count))
    return as_array([make_city(rng, *place) for place in zip(middles, scales, strict=True)])


def load_of(shapes: Geometries, weights: Weights, theta: float) -> Load:
    """Make the lookup table of a θ, in fair shares, and see how even it is."""
    fair = weights.total() / PARTITIONS
    prefixes = np.array([weight for _, _, weight in split(weights, theta * fair)])
    held = prefixes[prefixes > 0]
    table = make_lookup_table(LONGITUDE_LATITUDE, weights, PARTITIONS, theta=theta * fair)
    partitions = loads(table, weights)[: table.outside]
    selected = table.select(table.grid().decompose(shapes))
    return Load(
        theta,
        len(prefixes),
        float(held.max() / held.mean()),
        float(partitions.max() / partitions.mean()),
        sum(len(table.replicas[prefix]) for prefix in selected.prefixes.tolist()) / len(shapes),
    )


def _weigh(shapes: Geometries) -> Weights:
    """Count how many cells of the table's level the subscriptions have where."""
    starts = Grid(PREFIX_LEVEL_MAX).decompose(shapes).starts
    return weigh(PREFIX_LEVEL_MAX, Counter(starts.tolist()), {})


def _draw(run: AhsRun, found: list[Load]) -> None:
    thetas = [load.theta for load in found]
    run.draw(
        "load.png",
        [
            Panel(
                [
                    Series(
                        "heaviest over mean: a worker per prefix",
                        thetas,
                        [load.heaviest_prefix for load in found],
                        1,
                    ),
                    Series(
                        f"heaviest over mean: packed into {PARTITIONS}",
                        thetas,
                        [load.heaviest_partition for load in found],
                        0,
                    ),
                    Series(
                        "copies of a subscription",
                        thetas,
                        [load.copies for load in found],
                        2,
                        "dashed",
                    ),
                ],
                names={theta: str(Fraction(theta)) for theta in thetas},
                is_x_log=True,
            )
        ],
        title="The load of partitions by θ",
        note=f"{run.plan.loaded:,} towns, gathered around {_CITIES} cities of very different size.",
        x_label="θ: how heavy a prefix may be before it is divided, in fair shares of a partition",
        y_label="ratio",
    )
