"""Table 3: what an event costs over real or scattered regions, the paper's beside ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from contrada.matching.indexes.by_tree import ExactEvaluator
from contrada.pictures.plots import Panel, Series
from contrada.reproduce.crtree.measuring import (
    Cost,
    CountingEvaluator,
    index_alone,
    index_pair,
)
from contrada.reproduce.crtree.paper import (
    COLUMNS,
    DATA_SETS,
    DOUBT,
    TABLE_3_DENSITY,
    DataSet,
    Times,
)
from contrada.reproduce.crtree.plan import CrtreeRun
from contrada.reproduce.crtree.rings import RingSet
from contrada.reproduce.reporting import (
    Column,
    Reporter,
    Table,
    say_prose,
    say_title,
    write_ms,
    write_percent,
)
from contrada.reproduce.scenarios import EVENT_KINDS, KINDS_NOTE, Regions, event_region

_PREDICATE_COUNT = 25
_OFFSETS = {"A": -0.24, "B": 0.0, "C": 0.24}


@dataclass(frozen=True, slots=True)
class Table3Row:
    """A row of Table 3. `meeting` counts constraints whose boxes meet the event's; `kept` is the
    share of constraints that the simplifier leaves."""

    data_set: DataSet
    kind: str
    size: int
    scan_ms: float
    tree: Cost
    exact_ms: float
    plain: Cost
    simplified: Cost
    meeting: float
    kept: float

    @property
    def paper(self) -> Times:
        """The paper's times."""
        return self.data_set.times[self.kind]

    @property
    def ours(self) -> Times:
        """Our times with Algorithm 1."""
        return self.scan_ms, self.tree.ms, self.plain.ms, self.simplified.ms


def table_3(run: CrtreeRun, layers: Mapping[str, Regions]) -> list[Table3Row]:
    """Measure both scenarios over all layers; return the rows."""
    say_title(
        run.reporter,
        f"Table 3: ms per event, D = {TABLE_3_DENSITY:,}; "
        f"{run.plan.event_count} events of each type",
    )
    table = Table(run.reporter, list(_columns()))
    rows: list[Table3Row] = []
    rng = run.generator(6)
    steps = sum(min(_PREDICATE_COUNT, len(regions) // 2) + 2 for regions in layers.values())
    with run.reporter.watch("Table 3", steps * len(EVENT_KINDS)) as step:
        for data_set in DATA_SETS:
            regions = layers[data_set.label]
            tree = index_alone(rng, regions, CountingEvaluator(TABLE_3_DENSITY))
            exact = index_alone(rng, regions, ExactEvaluator())
            rings = RingSet(regions)
            for kind in EVENT_KINDS:
                events = [event_region(rng, kind) for _ in range(run.plan.event_count)]
                scan_ms = rings.mean_ms(events, TABLE_3_DENSITY)
                step()
                pair = index_pair(rng, regions, _PREDICATE_COUNT, TABLE_3_DENSITY, step)
                rows.append(
                    Table3Row(
                        data_set,
                        kind,
                        len(regions),
                        scan_ms,
                        tree.cost(events),
                        exact.cost(events).ms,
                        pair.plain.cost(events),
                        pair.simplified.cost(events),
                        float(np.mean([rings.count_meeting(event) for event in events])),
                        pair.kept,
                    )
                )
                _add(table, rows[-1])
                step()
    say_prose(run.reporter, DOUBT, indent="  ")
    _say_relations(run.reporter, rows)
    _draw(run, rows)
    return rows


def _columns() -> Sequence[Column]:
    groups = ("scan", "scenario 1: CR-tree", "scenario 2: plain", "simplified")
    columns = [
        Column("layer", width_min=10, is_text=True),
        Column("N", format=",", width_min=6),
        Column("type"),
    ]
    for group, column in zip(groups, COLUMNS, strict=True):
        columns += [Column("paper", group, width_min=8), Column("ours", group, width_min=6)]
        if column == "CR-tree":
            columns.append(Column("exact", group, width_min=6))
    return columns


def _add(table: Table, row: Table3Row) -> None:
    cells = []
    for column, paper, ours in zip(COLUMNS, row.paper, row.ours, strict=True):
        mark = "?" if column in row.data_set.doubtful else ""
        cells += [f"{paper:,g}{mark}", write_ms(ours)]
        if column == "CR-tree":
            cells.append(write_ms(row.exact_ms))
    table.add(row.data_set.label, row.size, row.kind, *cells)


def _say_relations(reporter: Reporter, rows: Sequence[Table3Row]) -> None:
    """Print how many relations are computed: what the times are made of."""
    say_title(reporter, "Behind Table 3: relations that are computed per event, of N constraints")
    table = Table(
        reporter,
        [
            Column("layer", width_min=10, is_text=True),
            Column("N", format=",", width_min=6),
            Column("type"),
            Column("boxes meet", format=",.0f"),
            Column("CR-tree", "scenario 1", ",.0f"),
            Column("plain", "scenario 2", ",.0f", width_min=11),
            Column("simplified", "scenario 2", ",.0f"),
            Column("constraints kept"),
        ],
    )
    for row in rows:
        counts = row.meeting, row.tree.relations, row.plain.relations, row.simplified.relations
        table.add(row.data_set.label, row.size, row.kind, *counts, write_percent(row.kept))


def _draw(run: CrtreeRun, rows: Sequence[Table3Row]) -> None:
    panels = []
    for data_set in DATA_SETS:
        mine = [row for row in rows if row.data_set is data_set]
        names = {
            float(place): f"{column}\nscenario {1 if place < 2 else 2}"
            for place, column in enumerate(COLUMNS)
        }
        series = []
        for colour, row in enumerate(mine):
            places = [place + _OFFSETS[row.kind] for place in names]
            quoted = Series(
                f"type {row.kind}, paper", places, row.paper, colour, "none", is_quoted=True
            )
            series += [
                quoted,
                Series(f"type {row.kind}, ours", places, row.ours, colour, "none"),
                Series(
                    f"type {row.kind}, ours exact",
                    [places[1] + 0.08],
                    [row.exact_ms],
                    colour,
                    "none",
                    "D",
                ),
            ]
        title = f"{data_set.label}\npaper N = {data_set.size:,}, ours N = {mine[0].size:,}"
        panels.append(Panel(series, title, names=names))
    run.draw(
        "table-3.png",
        panels,
        title="Table 3: matching times, the paper's (2011, C++) and ours",
        note="The paper's numbers and ours are of different N. Natural, plain and simplified: the "
        f"paper's are doubtful (see the table). {KINDS_NOTE} Diamonds: exact relations in place of "
        "Algorithm 1.",
        y_label="ms per event",
        scale="log",
    )
