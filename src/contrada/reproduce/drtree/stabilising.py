"""Lemmas 3.2 to 3.6: rounds until the overlay is legal again, after each kind of harm, by N."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from statistics import median

from numpy.random import Generator

from contrada.overlay.messages import PeerId
from contrada.overlay.state import Settings
from contrada.pictures.plots import Panel, Series
from contrada.reproduce.drtree.growing import Overlay, await_legal, choose, grow, plain
from contrada.reproduce.drtree.paper import bound_height
from contrada.reproduce.drtree.plan import DrtreeRun
from contrada.reproduce.reporting import Column, Table, say_prose, say_title
from contrada.simulation.garbage import Garbage
from contrada.simulation.simulator import Simulator
from contrada.simulation.workloads import UNIT

PLAIN, DEPUTIES = "paper's tree", "with deputies"
VARIANTS: Mapping[str, Settings] = {
    PLAIN: plain(),
    DEPUTIES: Settings(UNIT, summaries=False, moving=False),
}
CRASH_SHARE = 0.3
_REST_ROUNDS = 5  # in which deputies are told

Rounds = dict[tuple[str, str, int], list[int]]  # of a variant, a kind of harm and N, by seed


def measure_healing(run: DrtreeRun) -> Rounds:
    """Harm copies of overlays at rest, print how long they need, and draw it by log N."""
    plan, settings = run.plan, VARIANTS[PLAIN]
    say_title(
        run.reporter,
        f"Lemmas 3.2 to 3.6: rounds until legal again, median (most) of {plan.harm_seeds} seeds; "
        f"m = {settings.m}, M = {settings.M}",
    )
    found: Rounds = defaultdict(list)
    steps = len(VARIANTS) * len(plan.harmed) * plan.harm_seeds
    with run.reporter.watch("Lemmas 3.2 to 3.6", steps) as step:
        for variant, its_settings in VARIANTS.items():
            for count in plan.harmed:
                for seed in range(plan.harm_seeds):
                    rng = run.generator(2, count, seed)
                    for harm, rounds in _harm(its_settings, count, rng):
                        found[variant, harm, count].append(rounds)
                    step()
    _print(run, found)
    _draw(run, found)
    return found


def _harm(settings: Settings, count: int, rng: Generator) -> Iterator[tuple[str, int]]:
    """Harm a copy of the same overlay at rest in each way."""
    overlay = grow(settings, "uniform", count, rng)
    overlay.simulator.run_rounds(_REST_ROUNDS)
    await_legal(overlay)
    for name, (do_harm, _, _) in HARMS.items():
        copy, its_rng = deepcopy((overlay, rng))  # together, as they share the generator
        do_harm(copy, its_rng)
        yield name, await_legal(copy)


def _join(overlay: Overlay, _: Generator) -> None:
    overlay.simulator.add(overlay.workload.draw_filter())


def _impoverish(overlay: Overlay, _: Generator) -> None:
    """Let leaves leave until a node has one child too few; where the root leads all, none has."""
    simulator = overlay.simulator
    states = [peer.state for peer in simulator.peers.values()]
    leaders = [state for state in states if state.top == 1 and not state.is_root]
    if leaders:
        poorest = min(leaders, key=lambda state: len(state.levels[1]))
        for id_ in list(poorest.levels[1])[simulator.settings.m - 2 :]:  # and the leader itself
            simulator.leave(id_)


def _leave(overlay: Overlay, _: Generator) -> None:
    overlay.simulator.leave(find_root(overlay.simulator))


def _crash(overlay: Overlay, _: Generator) -> None:
    overlay.simulator.crash(find_root(overlay.simulator))


def _corrupt(overlay: Overlay, rng: Generator) -> None:
    """Make garbage of all memories, and send a garbage message for each peer."""
    living = overlay.simulator.living()
    garbage = Garbage(overlay.simulator, rng)
    for id_ in living:
        garbage.corrupt(id_)
    garbage.send(len(living))


def crash_many(overlay: Overlay, rng: Generator) -> None:
    """Crash a share of the peers at once, the root and other leaders among them."""
    simulator = overlay.simulator
    root, living = find_root(simulator), simulator.living()
    others = choose(rng, [id_ for id_ in living if id_ != root], round(CRASH_SHARE * len(living)))
    for id_ in (root, *others[1:]):
        simulator.crash(id_)


def find_root(simulator: Simulator) -> PeerId:
    """Find the root of a legal overlay."""
    return next(id_ for id_, peer in simulator.peers.items() if peer.state.is_root)


ROOT_CRASHES, MANY = "the root crashes", "30 % crash at once"
HARMS: Mapping[str, tuple[Callable[[Overlay, Generator], None], str, str]] = {
    "one peer joins": (_join, "3.2", "O(log_m N)"),
    "a node becomes poor": (_impoverish, "3.3", "O(N log_m N)"),
    "the root leaves": (_leave, "3.4", "O(N log_m N)"),
    ROOT_CRASHES: (_crash, "3.5", "O(N log_m N)"),
    "all memories garbage": (_corrupt, "3.6", "finite"),
    MANY: (crash_many, "3.5", "O(N log_m N)"),
}


def _print(run: DrtreeRun, found: Rounds) -> None:
    sizes = run.plan.harmed
    table = Table(
        run.reporter,
        [
            Column("lemma"),
            Column("harm", width_min=20, is_text=True),
            Column("steps, says the paper", is_text=True),
            Column("", width_min=13, is_text=True),
            *(Column(f"{count:,}", "rounds, ours, at N =", width_min=8) for count in sizes),
        ],
    )
    for harm, (_, lemma, bound) in HARMS.items():
        for variant in VARIANTS:
            cells = [_write(found[variant, harm, count]) for count in sizes]
            table.add(lemma, harm, bound, variant, *cells)
    say_prose(
        run.reporter,
        "A round is the time in which every living peer runs every check once; the paper's steps "
        "are those of single peers, one after another. A peer that is silent is given up after "
        f"{VARIANTS[PLAIN].patience} rounds. Here whole subtrees find a new place, where the paper "
        "re-inserts every leaf; the root is always among those that leave or crash. Every harm "
        "befalls a copy of the same tree at rest. Lemma 3.3 (compaction): leaves leave in good "
        "order until a node of level 1 has m - 1 children, which its siblings must take.",
    )


def _write(rounds: list[int]) -> str:
    return f"{median(rounds):g} ({max(rounds)})"


def _draw(run: DrtreeRun, found: Rounds) -> None:
    sizes = run.plan.harmed
    bound = [bound_height(count, VARIANTS[PLAIN].m) for count in sizes]
    levels = Series("⌈log_m N⌉", sizes, bound, 5, "dashed", marker="", is_quoted=True)
    names = {float(count): f"{count:,}" for count in sizes}
    panels = []
    for variant in VARIANTS:
        series = [
            Series(
                harm,
                sizes,
                [median(found[variant, harm, count]) for count in sizes],
                colour,
                marker="os^DvP"[colour],
            )
            for colour, harm in enumerate(HARMS)
        ]
        panels.append(Panel([*series, levels], variant, names=names, is_x_log=True))
    run.draw(
        "lemmas-3.2-3.6-healing.png",
        panels,
        title="Lemmas 3.2 to 3.6: rounds until legal again",
        note="Median of the seeds; m is the least number of a node's children.",
        seeds=run.plan.harm_seeds,
        x_label="peers N",
        y_label="rounds",
    )
