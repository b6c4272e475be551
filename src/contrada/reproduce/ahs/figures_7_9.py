"""Figures 7 to 9: each two kinds of geometry and each relation, end to end (section 5.4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from contrada.matching.grid import Grid
from contrada.model.relation import RELATIONS
from contrada.pictures.plots import Bars
from contrada.reproduce.ahs.pairs import make_events, make_subscriptions
from contrada.reproduce.ahs.paper import (
    OVERHEAD,
    PAPER_LEVEL,
    REPEATS,
    SHARE_OF_INDEX_AND_OVERHEAD,
    UNDER_50_MS,
    UNDER_100_MS,
)
from contrada.reproduce.ahs.plan import AhsRun
from contrada.reproduce.ahs.shapes import SHAPE_KINDS
from contrada.reproduce.ahs.timing import write_us
from contrada.reproduce.ahs.two_workers import Cluster, Stages
from contrada.reproduce.reporting import Column, Table, compare, say_title

STAGES = ("overhead", "index", "match", "determine")
_FIGURES = {"point": 7, "line": 8, "polygon": 9}


@dataclass(frozen=True, slots=True)
class Query:
    """One subscription and one event of these kinds, and the mean time of each stage."""

    subscription: str
    event: str
    relation: str
    stages: Stages


def figures_7_9(run: AhsRun) -> list[Query]:
    """Measure all queries, print them and draw a figure for each kind of subscription."""
    say_title(
        run.reporter,
        f"Figures 7 to 9: end to end with two workers, level {PAPER_LEVEL}; µs, mean of {REPEATS}",
    )
    with run.reporter.watch("Figures 7 to 9", 1) as step:
        queries = list(_measure(run))
        step()
    _print(run, queries)
    _compare(run, queries)
    for kind in SHAPE_KINDS:
        _draw(run, [query for query in queries if query.subscription == kind], kind)
    return queries


def _measure(run: AhsRun) -> Iterator[Query]:
    for kind, subscription in make_subscriptions(run.generator(7)).items():
        cluster = Cluster(Grid(PAPER_LEVEL), subscription)
        for other, events in make_events(subscription).items():
            for name, event in events.items():
                answers = [cluster.ask(event, RELATIONS[name]) for _ in range(REPEATS + 1)][
                    1:
                ]  # the first may compile
                assert all(answer.holds for answer in answers)
                stages = Stages(
                    *(mean(getattr(answer.stages, stage) for answer in answers) for stage in STAGES)
                )
                yield Query(kind, other, name, stages)


def _print(run: AhsRun, queries: Sequence[Query]) -> None:
    table = Table(
        run.reporter,
        [
            Column("subscription", is_text=True),
            Column("event", is_text=True, width_min=7),
            Column("relation", is_text=True, width_min=10),
            *(Column(stage) for stage in STAGES),
            Column("all", width_min=6),
        ],
    )
    for query in queries:
        times = [getattr(query.stages, stage) for stage in STAGES]
        names = (query.subscription, query.event, query.relation)
        table.add(*names, *map(write_us, times), write_us(query.stages.total))


def _compare(run: AhsRun, queries: Sequence[Query]) -> None:
    overheads = [query.stages.overhead for query in queries]
    shares = [(q.stages.overhead + q.stages.index) / q.stages.total for q in queries]
    totals = [query.stages.total for query in queries]
    compare(
        run.reporter,
        f"the text on Figures 7 to 9 (ours: {len(queries)} queries)",
        [
            (
                "overhead of the distributed version",
                OVERHEAD,
                f"{write_us(min(overheads))} to {write_us(max(overheads))} µs, without a network",
            ),
            (
                "share of indexing and overhead",
                SHARE_OF_INDEX_AND_OVERHEAD,
                f"{min(shares):.0%} to {max(shares):.0%}, mean {mean(shares):.0%}",
            ),
            ("queries under 100 ms", UNDER_100_MS, _count_under(totals, 100_000)),
            ("queries under 50 ms", UNDER_50_MS, _count_under(totals, 50_000)),
            ("the longest query", None, f"{write_us(max(totals))} µs"),
        ],
    )


def _count_under(totals: Sequence[float], limit_us: float) -> str:
    count = sum(us < limit_us for us in totals)
    return "all" if count == len(totals) else f"{count / len(totals):.0%}"


def _draw(run: AhsRun, queries: Sequence[Query], kind: str) -> None:
    panels = []
    for other in SHAPE_KINDS:
        shown = [query for query in queries if query.event == other]
        parts = {
            stage: [float(getattr(query.stages, stage)) for query in shown] for stage in STAGES
        }
        panels.append(Bars([query.relation for query in shown], parts, f"{other} as event"))
    run.draw(
        f"figure-{_FIGURES[kind]}.png",
        panels,
        title=f"Figure {_FIGURES[kind]}: end to end, {kind} as subscription, level {PAPER_LEVEL}",
        note="Two workers in one process, without a network; mean of ten.",
        y_label="µs per query",
    )
