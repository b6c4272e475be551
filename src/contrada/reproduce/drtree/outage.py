"""Events published while the overlay heals: how many of their receivers they reach, by round."""

from collections import defaultdict
from dataclasses import dataclass, field

from numpy.random import Generator

from contrada.overlay.boxes import meets
from contrada.overlay.deputies import SILENCE
from contrada.overlay.messages import Event, PeerId
from contrada.overlay.state import Settings
from contrada.pictures.plots import Panel, Series
from contrada.reproduce.drtree.growing import Overlay, grow
from contrada.reproduce.drtree.plan import DrtreeRun
from contrada.reproduce.drtree.stabilising import HARMS, MANY, PLAIN, ROOT_CRASHES, VARIANTS
from contrada.reproduce.reporting import Column, Table, say_prose, say_title, write_percent

CRASHES = (ROOT_CRASHES, MANY)
_LATE_ROUNDS = 5  # that events have to arrive after the last was published


OutageDelivery = tuple[int, int, int, PeerId]  # the event's seed, round and number; the receiver


@dataclass(slots=True)
class Reach:
    """Pairs of events and receivers, by the round of publication; -1 is before the crash."""

    wanted: dict[int, set[OutageDelivery]] = field(default_factory=lambda: defaultdict(set))
    reached: set[OutageDelivery] = field(default_factory=set)

    def share(self, number: int) -> float:
        """Return the share of the pairs of a round that were reached."""
        wanted = self.wanted[number]
        return len(wanted & self.reached) / max(1, len(wanted))

    @property
    def lost(self) -> int:
        """Count the pairs that were never reached."""
        return sum(len(wanted - self.reached) for wanted in self.wanted.values())


ReachOf = dict[tuple[str, str], Reach]  # of a kind of harm and a variant


def measure_outage(run: DrtreeRun) -> ReachOf:
    """Crash peers, publish in each round, and count the receivers reached; print and draw it."""
    plan = run.plan
    say_title(
        run.reporter,
        f"Events while it heals: % of receivers reached; N = {plan.outage_size:,}, "
        f"{plan.outage_seeds} seeds, {plan.outage_events} events in each round",
    )
    found: ReachOf = {}
    with run.reporter.watch("outage", len(CRASHES) * len(VARIANTS) * plan.outage_seeds) as step:
        for harm in CRASHES:
            for variant, settings in VARIANTS.items():
                reach = found[harm, variant] = Reach()
                for seed in range(plan.outage_seeds):
                    _measure(run, harm, settings, seed, reach)
                    step()
    _print(run, found)
    _draw(run, found)
    return found


def _measure(run: DrtreeRun, harm: str, settings: Settings, seed: int, reach: Reach) -> None:
    """Note the pairs of one seed: events of all seeds have different names."""
    rng = run.generator(9, seed)
    overlay = grow(settings, "uniform", run.plan.outage_size, rng)
    simulator = overlay.simulator

    def note(id_: PeerId, event: Event) -> None:
        reach.reached.add((*event.payload, id_))

    simulator.on_deliver = note
    _publish(run, overlay, rng, reach, (seed, -1))
    simulator.run_rounds(_LATE_ROUNDS)
    do_harm, _, _ = HARMS[harm]
    do_harm(overlay, rng)
    for number in range(run.plan.outage_rounds):
        _publish(run, overlay, rng, reach, (seed, number))
        simulator.run_rounds(1)
    simulator.run_rounds(_LATE_ROUNDS)


def _publish(
    run: DrtreeRun, overlay: Overlay, rng: Generator, reach: Reach, moment: tuple[int, int]
) -> None:
    """Publish events from random living peers, and note who should receive them."""
    simulator, count = overlay.simulator, run.plan.outage_events
    living = simulator.living()
    for i in range(count):
        publisher = living[int(rng.integers(len(living)))]
        point = overlay.workload.draw_point()
        name = (*moment, i)
        wanted = [p for p in living if meets(overlay.filters[p], (*point, *point))]
        reach.wanted[moment[1]] |= {(*name, id_) for id_ in wanted if id_ != publisher}
        simulator.publish(publisher, (*point, *point), name)


def _print(run: DrtreeRun, found: ReachOf) -> None:
    table = Table(
        run.reporter,
        [
            Column("rounds after", is_text=True),
            *(Column(variant, harm) for harm, variant in found),
        ],
    )
    for number in range(-1, run.plan.outage_rounds):
        shares = [write_percent(reach.share(number), 1) for reach in found.values()]
        table.add("before" if number < 0 else str(number), *shares)
    table.add("pairs lost", *(f"{reach.lost:,}" for reach in found.values()))
    pairs = sum(len(wanted) for wanted in next(iter(found.values())).wanted.values())
    say_prose(
        run.reporter,
        f"Of about {pairs:,} pairs of event and receiver, the publisher's own match aside. When a "
        f"leader has been silent for {SILENCE} rounds, its neighbours send its deputy what it may "
        f"have missed; the deputy serves events from then on, and leads after "
        f"{VARIANTS[PLAIN].patience}. The paper does not say what happens to events meanwhile.",
    )


def _draw(run: DrtreeRun, found: ReachOf) -> None:
    rounds = range(run.plan.outage_rounds)
    panels = [
        Panel(
            [
                Series(
                    variant,
                    rounds,
                    [100 * found[harm, variant].share(number) for number in rounds],
                    colour,
                    marker="os"[colour],
                )
                for colour, variant in enumerate(VARIANTS)
            ],
            harm,
            names={number: str(number) for number in rounds if number % 5 == 0},
        )
        for harm in CRASHES
    ]
    run.draw(
        "events-while-healing.png",
        panels,
        title="Events while the overlay heals",
        note=f"N = {run.plan.outage_size:,}; {run.plan.outage_events} events in each round.",
        seeds=run.plan.outage_seeds,
        x_label="rounds from the crash to the publication",
        y_label="% of receivers reached",
    )
