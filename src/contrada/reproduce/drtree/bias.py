"""Dynamic reorganisation (section 3.2): false positives where a few places see all events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
from numpy.random import Generator

from contrada.overlay.boxes import Box, meets
from contrada.overlay.messages import Event, PeerId
from contrada.overlay.state import Settings
from contrada.pictures.plots import Panel, Series
from contrada.reproduce.drtree.growing import Overlay, grow
from contrada.reproduce.drtree.plan import DrtreeRun
from contrada.reproduce.reporting import Column, Table, say_prose, say_title
from contrada.simulation.workloads import UNIT, Array

_PLACES, _SPREAD = 5, 0.01
_LATE_ROUNDS = 5  # that events have to arrive after the last was published
_PARTS = 4  # of the rounds: the first and the last of them are compared

VARIANTS: Mapping[str, Settings] = {
    "by cover": Settings(UNIT, summaries=False, deputies=False, moving=False),
    "by false positives": Settings(
        UNIT, summaries=False, deputies=False, moving=False, swapping=True
    ),
}


@dataclass(frozen=True, slots=True)
class Bias:
    """False positives in each round, in % of living peers × events; `down` those on the way down.

    `wanted` are pairs of event and receiver, `missed` those of them that were never reached.
    """

    rates: Sequence[float]
    down: Sequence[float]
    wanted: int
    missed: int


class _Tally:
    """Counts false positives and receivers of the events of an overlay."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._seen: set[tuple[int, PeerId]] = set()
        self.false_positives = self.down = self.wanted = 0
        self.pending: set[tuple[int, PeerId]] = set()
        overlay.simulator.on_visit = self.note_visit
        overlay.simulator.on_deliver = self.note_delivery

    def expect(self, name: int, box: Box) -> None:
        """Note who should receive an event."""
        filters = self._overlay.filters
        receivers = {(name, id_) for id_, filter_ in filters.items() if meets(filter_, box)}
        self.wanted += len(receivers)
        self.pending |= receivers

    def note_visit(self, id_: PeerId, event: Event) -> None:
        """Count each peer once that handles an event without a match."""
        key = event.payload, id_
        if key in self._seen or id_ == event.publisher:
            return
        self._seen.add(key)
        if not meets(self._overlay.filters[id_], event.box):
            self.false_positives += 1
            self.down += not event.is_rising

    def note_delivery(self, id_: PeerId, event: Event) -> None:
        """Count a receiver as reached."""
        self.pending.discard((event.payload, id_))


def measure_bias(run: DrtreeRun) -> Mapping[str, Bias]:
    """Publish around a few places only, with and without the reorganisation; print and draw it."""
    plan = run.plan
    say_title(
        run.reporter,
        f"Dynamic reorganisation: false positives under bias; N = {plan.bias_size:,}, "
        f"{plan.bias_seeds} seeds, {plan.bias_rounds} rounds of {plan.bias_events} events",
    )
    found = {}
    with run.reporter.watch("reorganisation", len(VARIANTS) * plan.bias_seeds) as step:
        for variant, settings in VARIANTS.items():
            trials = []
            for seed in range(plan.bias_seeds):
                trials.append(_measure(run, settings, seed))
                step()
            found[variant] = _unite(trials)
    _print(run, found)
    _draw(run, found)
    return found


def _measure(run: DrtreeRun, settings: Settings, seed: int) -> Bias:
    plan = run.plan
    overlay = grow(settings, "uniform", plan.bias_size, run.generator(10, seed))
    rng = run.generator(11, seed)
    places = rng.random((_PLACES, 2))
    tally, counts = _Tally(overlay), [(0, 0)]
    for number in range(plan.bias_rounds):
        _publish(run, overlay, tally, places, rng, number)
        overlay.simulator.run_rounds(1)
        counts.append((tally.false_positives, tally.down))
    overlay.simulator.run_rounds(_LATE_ROUNDS)
    rates = np.diff(np.array(counts), axis=0) * 100 / (plan.bias_size * plan.bias_events)
    return Bias(rates[:, 0].tolist(), rates[:, 1].tolist(), tally.wanted, len(tally.pending))


def _unite(trials: Sequence[Bias]) -> Bias:
    return Bias(
        [mean(rates) for rates in zip(*(trial.rates for trial in trials), strict=True)],
        [mean(rates) for rates in zip(*(trial.down for trial in trials), strict=True)],
        sum(trial.wanted for trial in trials),
        sum(trial.missed for trial in trials),
    )


def _publish(
    run: DrtreeRun, overlay: Overlay, tally: _Tally, places: Array, rng: Generator, number: int
) -> None:
    ids, count = list(overlay.filters), run.plan.bias_events
    for i in range(count):
        place = places[int(rng.integers(_PLACES))] + rng.normal(size=2) * _SPREAD
        x, y = (float(value) for value in place.clip(0.0, 1.0))
        publisher, name = ids[int(rng.integers(len(ids)))], number * count + i
        tally.expect(name, (x, y, x, y))
        overlay.simulator.publish(publisher, (x, y, x, y), name)


def _print(run: DrtreeRun, found: Mapping[str, Bias]) -> None:
    table = Table(
        run.reporter,
        [
            Column("leaders are chosen", width_min=18, is_text=True),
            Column("first quarter", "false positives, %", ".2f"),
            Column("last quarter", "false positives, %", ".2f"),
            Column("first quarter", "on the way down, %", ".2f"),
            Column("last quarter", "on the way down, %", ".2f"),
            Column("receivers", format=","),
            Column("missed", format=","),
        ],
    )
    part = max(1, run.plan.bias_rounds // _PARTS)
    for variant, bias in found.items():
        ends = [mean(v) for rates in (bias.rates, bias.down) for v in (rates[:part], rates[-part:])]
        table.add(variant, *ends, bias.wanted, bias.missed)
    say_prose(
        run.reporter,
        "The paper exchanges a parent and a child that would have seen fewer false positives, and "
        "states no number. By CHECK_COVER the two would be exchanged back: it must give way. Plain "
        f"trees; events around {_PLACES} places, with a deviation of {_SPREAD}. An event also "
        "rises from its publisher to the root, whoever leads there. Missed: receivers, while "
        "leaders change places.",
    )


def _draw(run: DrtreeRun, found: Mapping[str, Bias]) -> None:
    rounds = range(run.plan.bias_rounds)
    panels = []
    for title in ("all", "on the way down"):
        series = [
            Series(
                f"leaders {variant}",
                rounds,
                bias.rates if title == "all" else bias.down,
                colour,
                marker="os"[colour],
            )
            for colour, (variant, bias) in enumerate(found.items())
        ]
        panels.append(Panel(series, title))
    run.draw(
        "reorganisation.png",
        panels,
        title="Dynamic reorganisation: false positives under a biased workload",
        note=f"N = {run.plan.bias_size:,}; events around {_PLACES} places; mean of the seeds.",
        seeds=run.plan.bias_seeds,
        x_label="round",
        y_label="% of living peers × events",
    )
