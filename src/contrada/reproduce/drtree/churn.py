"""Lemma 3.7: departures without repair until the tree is cut; and the tree under churn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import mean

import numpy as np
from numpy.random import Generator

from contrada.overlay.state import Settings
from contrada.pictures.plots import Panel, Series
from contrada.reproduce.drtree.growing import await_legal, choose, grow
from contrada.reproduce.drtree.links import count_departures, list_links, share_in_largest
from contrada.reproduce.drtree.paper import bound_connection
from contrada.reproduce.drtree.plan import DrtreeRun
from contrada.reproduce.drtree.stabilising import VARIANTS
from contrada.reproduce.reporting import Column, Table, say_prose, say_title, write_percent

RATIOS = (0.7, 0.8, 0.9, 1.0, 1.1)  # Δλ / N
RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)  # of the peers that crash in a round, and as many join
_DEPARTURES_MAX = 200_000


@dataclass(frozen=True, slots=True)
class Disconnection:
    """Mean times at one Δλ / N, in units of Δ: the bound, the first cut by variant, all gone."""

    ratio: float
    bound: float
    cuts: Mapping[str, float]
    emptied: float


@dataclass(frozen=True, slots=True)
class Churn:
    """What churn at one rate does to one variant: mean share connected, most rounds to heal."""

    variant: str
    rate: float
    share: float
    rounds: int


def measure_churn(run: DrtreeRun) -> tuple[list[Disconnection], list[Churn]]:
    """Compare Lemma 3.7 with departures from real trees, and let trees heal under churn."""
    say_title(
        run.reporter,
        f"Lemma 3.7: time before disconnection, in Δ, without repair; N = {run.plan.churn_size}, "
        f"{run.plan.churn_trials:,} trials",
    )
    with run.reporter.watch("Lemma 3.7", len(VARIANTS)) as step:
        departures = {}
        for variant, settings in VARIANTS.items():
            departures[variant] = _count_departures(run, settings)
            step()
    disconnections = [_measure(run, ratio, departures) for ratio in RATIOS]
    _print_lemma(run, disconnections, departures)
    say_title(run.reporter, "Under churn: peers in the largest tree, and rounds until legal after")
    with run.reporter.watch("churn", len(VARIANTS) * len(RATES)) as step:
        churns = []
        for variant in VARIANTS:
            for rate in RATES:
                churns.append(_churn(run, variant, rate))
                step()
    _print_churn(run, churns)
    _draw_lemma(run, disconnections)
    _draw_churn(run, churns)
    return disconnections, churns


def _count_departures(run: DrtreeRun, settings: Settings) -> float:
    """Return the mean number of departures until the living are no longer connected."""
    rng = run.generator(6)
    overlay = grow(settings, "uniform", run.plan.churn_size, rng)
    overlay.simulator.run_rounds(3)  # deputies are told
    links = list_links(overlay.simulator)
    ids = list(links)
    orders = (choose(rng, ids, len(ids)) for _ in range(run.plan.churn_trials))
    return mean(count_departures(links, order) for order in orders)


def _measure(run: DrtreeRun, ratio: float, departures: Mapping[str, float]) -> Disconnection:
    count = run.plan.churn_size
    cuts = {variant: number / (ratio * count) for variant, number in departures.items()}
    rng = run.generator(7)
    trials = max(10, run.plan.churn_trials // 10)
    emptied = mean(_await_emptied(count, ratio, rng) for _ in range(trials))
    return Disconnection(ratio, bound_connection(count, ratio * count), cuts, emptied)


def _await_emptied(count: int, ratio: float, rng: Generator) -> float:
    """Return the time, in Δ, until as many as there are peers have left within one Δ."""
    start, recent = 0.0, np.full(count - 1, -np.inf)
    while True:
        times = start + np.cumsum(rng.exponential(1 / (ratio * count), _DEPARTURES_MAX))
        all_times = np.concatenate([recent, times])
        is_full = all_times[count - 1 :] - all_times[: len(times)] <= 1
        if is_full.any():
            return float(times[int(np.argmax(is_full))])
        start, recent = float(times[-1]), times[len(times) - count + 1 :]


def _churn(run: DrtreeRun, variant: str, rate: float) -> Churn:
    trials = [_churn_once(run, variant, rate, seed) for seed in range(run.plan.churn_seeds)]
    rounds = [rounds for _, rounds in trials]
    return Churn(variant, rate, mean(share for share, _ in trials), max(rounds))


def _churn_once(run: DrtreeRun, variant: str, rate: float, seed: int) -> tuple[float, int]:
    """Let peers crash and join for some rounds; then wait until all is legal."""
    count, rounds = run.plan.churn_size, run.plan.churn_rounds
    rng = run.generator(8, ceil(rate * 1e4), seed)
    overlay = grow(VARIANTS[variant], "uniform", count, rng)
    simulator = overlay.simulator
    shares = []
    for _ in range(rounds):
        joins, crashes = rng.poisson(rate * count, 2).tolist()
        for id_ in choose(rng, simulator.living(), min(crashes, len(simulator.living()) - 2)):
            simulator.crash(id_)
        for _ in range(joins):
            simulator.add(overlay.workload.draw_filter())
        simulator.run_rounds(1)
        shares.append(share_in_largest(simulator))
    return mean(shares[rounds // 4 :]), await_legal(overlay)


def _print_lemma(
    run: DrtreeRun, rows: Sequence[Disconnection], departures: Mapping[str, float]
) -> None:
    table = Table(
        run.reporter,
        [
            Column("Δλ / N", format=".1f"),
            Column("Lemma 3.7", "paper", ".3f"),
            *(Column(name, "ours: first cut", ".3f") for name in departures),
            Column("N gone within Δ", format=",.1f"),
        ],
    )
    for row in rows:
        table.add(row.ratio, row.bound, *row.cuts.values(), row.emptied)
    mean_departures = ", ".join(f"{value:.1f} ({name})" for name, value in departures.items())
    say_prose(
        run.reporter,
        "Δ is a time without repair, λ the rate of departures. First cut: when some living peers "
        f"are no longer connected, after {mean_departures} departures on average, whatever Δ is. "
        "So the bound can speak of it only where Δλ is near N; at Δλ = N / 2 it is "
        f"{bound_connection(100, 50):,.0f} Δ for N = 100. What it bounds from below is the last "
        "column: as many departures within one Δ as there are peers.",
    )


def _print_churn(run: DrtreeRun, churns: Sequence[Churn]) -> None:
    table = Table(
        run.reporter,
        [
            Column("crash and join in a round", is_text=True),
            *(Column(name, "in the largest tree") for name in VARIANTS),
            *(Column(name, "rounds until legal") for name in VARIANTS),
        ],
    )
    for rate in RATES:
        rows = [churn for churn in churns if churn.rate == rate]
        shares = [write_percent(row.share, 1) for row in rows]
        table.add(write_percent(rate, 1), *shares, *(row.rounds for row in rows))
    say_prose(
        run.reporter,
        f"N = {run.plan.churn_size}; {run.plan.churn_rounds} rounds of churn with each of "
        f"{run.plan.churn_seeds} seed(s), the first quarter of them not counted; rounds until "
        "legal are the most. A crashed neighbour is noticed after 3.5 rounds. No churn here "
        "divides the overlay for good.",
    )


def _draw_lemma(run: DrtreeRun, rows: Sequence[Disconnection]) -> None:
    ratios = [row.ratio for row in rows]
    bound = [row.bound for row in rows]
    series = [Series("Lemma 3.7", ratios, bound, 5, "dashed", is_quoted=True)]
    for colour, variant in enumerate(VARIANTS):
        cuts = [row.cuts[variant] for row in rows]
        series.append(Series(f"first cut, {variant}", ratios, cuts, colour, marker="os"[colour]))
    series.append(Series("N gone within Δ", ratios, [row.emptied for row in rows], 2, marker="^"))
    run.draw(
        "lemma-3.7.png",
        [Panel(series, names={ratio: f"{ratio:.1f}" for ratio in ratios})],
        title="Lemma 3.7: time before disconnection, without repair",
        note=f"N = {run.plan.churn_size}; mean of {run.plan.churn_trials:,} trials.",
        x_label="Δλ / N: the share of peers that leave within one time of repair, Δ",
        y_label="time before disconnection, in Δ",
        scale="log",
    )


def _draw_churn(run: DrtreeRun, churns: Sequence[Churn]) -> None:
    panel = Panel(
        [
            Series(
                variant,
                [churn.rate * 100 for churn in churns if churn.variant == variant],
                [churn.share * 100 for churn in churns if churn.variant == variant],
                colour,
                marker="os"[colour],
            )
            for colour, variant in enumerate(VARIANTS)
        ]
    )
    run.draw(
        "churn.png",
        [panel],
        title="Under churn: peers in the largest tree",
        note=f"N = {run.plan.churn_size}; as many join as crash.",
        seeds=run.plan.churn_seeds,
        x_label="% of the peers that crash in a round",
        y_label="% of the living",
    )
