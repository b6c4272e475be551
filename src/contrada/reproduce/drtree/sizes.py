"""Lemmas 3.1 and 3.2: height, state, messages at rest, steps of a join and of an event, by N."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import mean

from numpy.random import Generator

from contrada.overlay.state import Settings
from contrada.pictures.plots import Panel, Series
from contrada.reproduce.drtree.growing import Overlay, choose, grow, plain
from contrada.reproduce.drtree.memory import Memory, measure_memory
from contrada.reproduce.drtree.paper import bound_entries, bound_height
from contrada.reproduce.drtree.plan import DrtreeRun
from contrada.reproduce.drtree.tracing import trace_event, trace_join
from contrada.reproduce.reporting import Column, Table, compare, say_prose, say_title
from contrada.simulation.workloads import UNIT

_PLAIN, _OURS = "paper's", "ours"
VARIANTS: Mapping[str, Settings] = {_PLAIN: plain(), _OURS: Settings(UNIT, moving=False)}
SETTINGS = VARIANTS[_PLAIN]
_REST_ROUNDS = 5
_MEMORIES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class SizeRow:
    """What was found at one number of peers; `joins` and `hops` are the steps of each traced."""

    variant: str
    count: int
    height: int
    memories: Sequence[Memory]
    messages_at_rest: float
    joins: Sequence[int]
    hops: Sequence[int]
    rounds: int
    seconds: float

    @property
    def entries_max(self) -> int:
        """The number of entries of the peer with most."""
        return max(memory.entries for memory in self.memories)


def measure_sizes(run: DrtreeRun) -> list[SizeRow]:
    """Build overlays of growing size; print what they need, and draw it against log N."""
    say_title(
        run.reporter,
        f"Lemmas 3.1 and 3.2: growth with N; m = {SETTINGS.m}, M = {SETTINGS.M}, uniform filters",
    )
    wanted = [
        *((_PLAIN, count) for count in run.plan.sizes),
        *((_OURS, count) for count in run.plan.sizes_ours),
    ]
    table = _start_table(run)
    sizes = []
    with run.reporter.watch("Lemmas 3.1 and 3.2", len(wanted)) as step:
        for variant, count in wanted:
            sizes.append(_measure(run, variant, count))
            _add_row(table, sizes[-1])
            step()
    _compare(run, [size for size in sizes if size.variant == _PLAIN])
    _explain_memory(run, sizes)
    _draw_steps(run, [size for size in sizes if size.variant == _PLAIN])
    _draw_state(run, sizes)
    return sizes


def _measure(run: DrtreeRun, variant: str, count: int) -> SizeRow:
    rng = run.generator(1, count)
    overlay = grow(VARIANTS[variant], "uniform", count, rng)
    simulator = overlay.simulator
    height = overlay.height
    said = simulator.traffic.messages
    simulator.run_rounds(_REST_ROUNDS)
    at_rest = (simulator.traffic.messages - said) / _REST_ROUNDS / count
    hops = _trace_events(run, overlay, rng)
    memories = _measure_memories(overlay, run)  # after events, and before peers that just joined
    joins = _trace_joins(run, overlay, rng)
    return SizeRow(
        variant, count, height, memories, at_rest, joins, hops, overlay.rounds, overlay.seconds
    )


def _trace_events(run: DrtreeRun, overlay: Overlay, rng: Generator) -> list[int]:
    """Publish events from random peers; return the longest way of each."""
    hops = []
    for publisher in rng.choice(overlay.simulator.living(), run.plan.trace_count).tolist():
        point = overlay.workload.draw_point()
        hops.append(trace_event(overlay.simulator, publisher, (*point, *point)).path_max)
    return hops


def _trace_joins(run: DrtreeRun, overlay: Overlay, rng: Generator) -> list[int]:
    """Let peers join by way of random others; return the steps of each request."""
    joins = []
    for contact in rng.choice(overlay.simulator.living(), run.plan.trace_count).tolist():
        joiner = overlay.simulator.add(overlay.workload.draw_filter())
        joins.append(trace_join(overlay.simulator, joiner, contact).path_max)
    return joins


def _measure_memories(overlay: Overlay, run: DrtreeRun) -> list[Memory]:
    """Measure some random peers, and the root."""
    peers = overlay.simulator.peers
    chosen = choose(run.generator(1), overlay.simulator.living(), _MEMORIES_MAX)
    root = max(peers, key=lambda id_: peers[id_].state.top)
    return [measure_memory(peers[id_]) for id_ in {*chosen, root}]


def _start_table(run: DrtreeRun) -> Table:
    return Table(
        run.reporter,
        [
            Column("tree", width_min=7, is_text=True),
            Column("N", format=",", width_min=7),
            Column("bound", "height", width_min=5),
            Column("ours", "height"),
            Column("bound", "entries", ".0f"),
            Column("mean", "entries", ".1f", width_min=5),
            Column("most", "entries"),
            Column("mean", "kB", ".1f", width_min=4),
            Column("most", "kB", ".0f"),
            Column("messages", "at rest", ".2f"),
            Column("mean", "join steps", ".1f", width_min=4),
            Column("most", "join steps"),
            Column("mean", "event hops", ".1f", width_min=4),
            Column("most", "event hops"),
            Column("rounds", "to build"),
            Column("peers/s", "to build", ",.0f"),
        ],
    )


def _add_row(table: Table, size: SizeRow) -> None:
    bytes_ = [memory.bytes / 1_000 for memory in size.memories]
    table.add(
        size.variant,
        size.count,
        bound_height(size.count, SETTINGS.m),
        size.height,
        bound_entries(size.count, SETTINGS.m, SETTINGS.M),
        mean(memory.entries for memory in size.memories),
        size.entries_max,
        mean(bytes_),
        max(bytes_),
        size.messages_at_rest,
        mean(size.joins),
        max(size.joins),
        mean(size.hops),
        max(size.hops),
        size.rounds,
        size.count / size.seconds,
    )


def _compare(run: DrtreeRun, sizes: Sequence[SizeRow]) -> None:
    m = SETTINGS.m
    largest = sizes[-1]
    levels = log(largest.count) / log(m)
    are_within = all(size.height <= bound_height(size.count, m) for size in sizes)
    compare(
        run.reporter,
        f"Lemmas 3.1 and 3.2 (ours: N = {largest.count:,}, log_m N = {levels:.1f})",
        [
            (
                "height",
                "O(log_m N); aim: ⌈log_m N⌉ at most",
                f"{largest.height}; within the aim at {'every' if are_within else 'not every'} N",
            ),
            (
                "state of a peer",
                "O(M log² N / log m) bits",
                f"{largest.entries_max} entries at most",
            ),
            (
                "steps of a join",
                "O(log_m N)",
                f"{mean(largest.joins) / levels:.1f} log_m N, at most {max(largest.joins)}",
            ),
            (
                "hops of an event",
                "logarithmic",
                f"{mean(largest.hops) / levels:.1f} log_m N, at most {max(largest.hops)}",
            ),
            ("messages of a peer and round at rest", None, f"{largest.messages_at_rest:.2f}"),
        ],
    )
    say_prose(
        run.reporter,
        "An entry is what a peer remembers of another; the bound counts M of them on each of "
        "log_m N levels. Most peers are leaves and know their parent only; ours, without moving "
        "here, also keep what deputies copy. A join begins at any peer, climbs to the root and "
        "descends; an event goes up and down. Peers join from the root while the tree is built, a "
        "sixth as many in a round as are there; then we wait until all is legal.",
    )


def _explain_memory(run: DrtreeRun, sizes: Sequence[SizeRow]) -> None:
    of_events = {
        variant: max(
            memory.bytes_of_events
            for size in sizes
            if size.variant == variant
            for memory in size.memories
        )
        for variant in VARIANTS
    }
    most = ", ".join(f"{value / 1_000:.0f} ({variant})" for variant, value in of_events.items())
    say_prose(
        run.reporter,
        "The kB are those of Python objects, without what all peers of a process share (settings, "
        "caches) and without what is remembered of events: which were seen, and with deputies also "
        "those of the last rounds, to repeat them. After the "
        f"{run.plan.trace_count} events traced here that is at most, in kB: {most}.",
    )


def _draw_steps(run: DrtreeRun, sizes: Sequence[SizeRow]) -> None:
    counts = [size.count for size in sizes]
    levels = [log(count) / log(SETTINGS.m) for count in counts]
    bound = [bound_height(count, SETTINGS.m) for count in counts]
    lines = [
        Series("log_m N", counts, levels, 5, "dashed", marker=""),
        Series("2 log_m N", counts, [2 * value for value in levels], 5, "dotted", marker=""),
    ]
    panels = [
        Panel(
            [
                Series("⌈log_m N⌉", counts, bound, 5, "none", is_quoted=True),
                lines[0],
                Series("height", counts, [size.height for size in sizes], 2, marker="s"),
            ],
            "height",
            is_x_log=True,
        ),
        Panel(
            [*lines, *_spread(counts, [size.joins for size in sizes])],
            "steps of a join",
            is_x_log=True,
        ),
        Panel(
            [*lines, *_spread(counts, [size.hops for size in sizes])],
            "hops of an event",
            is_x_log=True,
        ),
    ]
    run.draw(
        "lemmas-3.1-3.2-steps.png",
        panels,
        title="Lemmas 3.1 and 3.2: height, steps of a join and of an event",
        note=f"A node has m = {SETTINGS.m} to M = {SETTINGS.M} children; uniform filters with "
        "sides of 0.02 to 0.1.",
        x_label="peers N",
        y_label="levels, or messages one after another",
    )


def _spread(counts: Sequence[int], found: Sequence[Sequence[int]]) -> list[Series]:
    return [
        Series("mean", counts, [mean(steps) for steps in found], 0),
        Series("most", counts, [max(steps) for steps in found], 1, marker="^"),
    ]


def _draw_state(run: DrtreeRun, sizes: Sequence[SizeRow]) -> None:
    entries: list[Series] = []
    kilobytes: list[Series] = []
    messages: list[Series] = []
    for colour, variant in enumerate(VARIANTS):
        rows = [size for size in sizes if size.variant == variant]
        counts = [size.count for size in rows]
        held = [[memory.entries for memory in size.memories] for size in rows]
        bytes_ = [[memory.bytes / 1_000 for memory in size.memories] for size in rows]
        for values, series in ((held, entries), (bytes_, kilobytes)):
            most, means = [max(found) for found in values], [mean(found) for found in values]
            series.append(Series(f"{variant}, most", counts, most, colour, marker="^"))
            series.append(Series(f"{variant}, mean", counts, means, colour, "dotted"))
        at_rest = [size.messages_at_rest for size in rows]
        messages.append(Series(f"{variant}, mean", counts, at_rest, colour, "dotted"))
    counts = [size.count for size in sizes if size.variant == _PLAIN]
    bound = [bound_entries(count, SETTINGS.m, SETTINGS.M) for count in counts]
    entries.append(Series("M log_m N", counts, bound, 5, "dashed", marker=""))
    run.draw(
        "lemma-3.1-state.png",
        [
            Panel(entries, "entries", is_x_log=True),
            Panel(kilobytes, "kB", is_x_log=True),
            Panel(messages, "messages in a round, at rest", is_x_log=True),
        ],
        title="Lemma 3.1: what a peer remembers and says",
        note=f"A node has m = {SETTINGS.m} to M = {SETTINGS.M} children. Bytes as Python "
        "holds them; a round is the time in which each peer checks all once.",
        x_label="peers N",
        y_label="of one peer",
    )
