"""Figure 5: how many matches change when the points become more."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from contrada.pictures.plots import Panel, Series
from contrada.reproduce.crtree.paper import GAIN_EXAMPLE_DENSITY, GAIN_EXAMPLE_PERCENT
from contrada.reproduce.crtree.plan import CrtreeRun
from contrada.reproduce.crtree.rings import RingSet
from contrada.reproduce.reporting import Column, Table, compare, say_title
from contrada.reproduce.scenarios import EVENT_KINDS, KINDS_NOTE, Regions, event_region

_STEP = 10_000
DENSITIES = (0, 10_000, 20_000, 30_000)
_ALL_DENSITIES = (*DENSITIES, DENSITIES[-1] + _STEP)

Gains = dict[tuple[str, str], list[float]]


def figure_5(run: CrtreeRun, layers: Mapping[str, Regions]) -> None:
    """Count the constraints whose match changes from density D to D + 10,000."""
    count = run.plan.gain_event_count
    say_title(
        run.reporter,
        f"Figure 5: matches that differ between D and D + {_STEP:,}, % of constraints; "
        f"{count} events of each type",
    )
    table = Table(
        run.reporter,
        [
            Column("layer", width_min=10, is_text=True),
            Column("type"),
            *(Column(f"D = {density:,}", format=".4f", width_min=7) for density in DENSITIES),
        ],
    )
    rng = run.generator(5)
    gains: Gains = {}
    steps = len(layers) * len(EVENT_KINDS) * count * (len(DENSITIES) + 1)
    with run.reporter.watch("Figure 5", steps) as step:
        for label, regions in layers.items():
            rings = RingSet(regions)
            wanted = rng.integers(0, 8, len(regions))
            for kind in EVENT_KINDS:
                changed = np.zeros(len(DENSITIES))
                for _ in range(count):
                    matched = []
                    for found in rings.find_by_density(event_region(rng, kind), _ALL_DENSITIES):
                        matched.append(found == wanted)
                        step()
                    changed += [(before != after).sum() for before, after in pairwise(matched)]
                gains[label, kind] = (changed / count / len(regions) * 100).tolist()
                table.add(label, kind, *gains[label, kind])
    smallest = [100 / count / len(regions) for regions in layers.values()]
    _compare(run, gains, smallest)
    _draw(run, list(layers), gains, smallest)


def _compare(run: CrtreeRun, gains: Gains, smallest: list[float]) -> None:
    at = DENSITIES.index(GAIN_EXAMPLE_DENSITY)
    first, example, last = (
        [row[which] for row in gains.values()] for which in (0, at, len(DENSITIES) - 1)
    )
    compare(
        run.reporter,
        "the text on Figure 5",
        [
            (
                f"at D = {GAIN_EXAMPLE_DENSITY:,} (the paper: an example of how to read it)",
                f"{GAIN_EXAMPLE_PERCENT} %",
                _write_percents(example),
            ),
            ("the differences are very low", "yes", f"at D = 0: {_write_percents(first)}"),
            (
                "they go towards none",
                "yes",
                f"at D = {DENSITIES[-1]:,}: {_write_percents(last)}",
            ),
            ("one match of one event more or less", None, _write_percents(smallest, 5)),
            ("all other values of the nine curves", None, "in the table"),
        ],
    )


def _write_percents(values: list[float], digits: int = 4) -> str:
    low, high = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _draw(run: CrtreeRun, labels: list[str], gains: Gains, smallest: list[float]) -> None:
    example = Series(
        "paper's example",
        [GAIN_EXAMPLE_DENSITY],
        [GAIN_EXAMPLE_PERCENT],
        colour=5,
        line="none",
        is_quoted=True,
    )
    panels = [
        Panel(
            [
                *(
                    Series(f"type {kind}", DENSITIES, gains[label, kind], colour, marker=marker)
                    for colour, (kind, marker) in enumerate(zip(EVENT_KINDS, "os^", strict=True))
                ),
                example,
            ],
            label,
        )
        for label in labels
    ]
    run.draw(
        "figure-5.png",
        panels,
        title="Figure 5: matches that differ between D and D + 10,000",
        note="The paper draws nine curves; its text states one value, as an example. "
        f"One match more or less is {_write_percents(smallest, 5)}. {KINDS_NOTE}",
        x_label="D: points on half of the universe's perimeter",
        y_label="% of constraints",
        scale="log with zero",
    )
