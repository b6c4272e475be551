"""Section 3.1: the DR-tree beside the two organisations that it rejects, with the same events."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from contrada.overlay.boxes import Box, meets
from contrada.overlay.messages import PeerId
from contrada.pictures.plots import Panel, Series
from contrada.reproduce.drtree.accuracy import ACCURACY_COLUMNS, Accuracies, list_cells
from contrada.reproduce.drtree.gallery import ALL, QUADRATIC, Accuracy, Events, Gallery
from contrada.reproduce.drtree.organisations import ContainmentTree, TreePerDimension, as_array
from contrada.reproduce.drtree.plan import DrtreeRun
from contrada.reproduce.reporting import Column, Table, compare, say_prose, say_title
from contrada.simulation.publishing import Published, score
from contrada.simulation.workloads import WORKLOADS

CONTAINMENT, DIMENSIONS = "containment tree", "tree per dimension"
_REJECTED: Mapping[str, type[ContainmentTree] | type[TreePerDimension]] = {
    CONTAINMENT: ContainmentTree,
    DIMENSIONS: TreePerDimension,
}
_OURS = {QUADRATIC: "DR-tree, paper's", ALL: "DR-tree, ours"}


@dataclass(frozen=True, slots=True)
class Organisation:
    """One way to organise the subscribers of a workload, and what it costs."""

    workload: str
    name: str
    accuracy: Accuracy
    depth: int
    fanout_of_root: int
    fanout_max: int


def compare_organisations(
    run: DrtreeRun, gallery: Gallery, found: Accuracies
) -> list[Organisation]:
    """Send the events of the DR-tree to what section 3.1 rejects; print and draw all."""
    count = run.plan.accuracy_sizes[0]
    say_title(run.reporter, f"Section 3.1: the organisations that it rejects; N = {count:,}")
    table = Table(
        run.reporter,
        [
            Column("workload", width_min=11, is_text=True),
            Column("organisation", width_min=18, is_text=True),
            *ACCURACY_COLUMNS,
            Column("depth"),
            Column("root", "children of", width_min=5),
            Column("most", "children of"),
        ],
    )
    organisations = []
    with run.reporter.watch("organisations", len(WORKLOADS)) as step:
        for workload in WORKLOADS:
            for row in _measure(run, gallery, found, workload):
                organisations.append(row)
                _add_row(table, row)
            step()
    _compare(run, organisations)
    _draw(run, organisations)
    return organisations


def _measure(
    run: DrtreeRun, gallery: Gallery, found: Accuracies, workload: str
) -> list[Organisation]:
    count = run.plan.accuracy_sizes[0]
    events = gallery.events(workload, count)
    rows = []
    for variant, name in _OURS.items():
        overlay = gallery.overlay(workload, variant, count)
        states = [peer.state for peer in overlay.simulator.peers.values()]
        degrees = [sum(map(len, state.levels)) for state in states]
        root = next(degrees[i] for i, state in enumerate(states) if state.is_root)
        accuracy = found[count, workload, variant]
        rows.append(Organisation(workload, name, accuracy, overlay.height, root, max(degrees)))
    filters = gallery.overlay(workload, QUADRATIC, count).filters
    for name, organise in _REJECTED.items():
        tree = organise(as_array(list(filters.values())))
        accuracy = publish_in(tree, filters, events)
        rows.append(
            Organisation(workload, name, accuracy, tree.depth, tree.fanout_of_root, tree.fanout_max)
        )
    return rows


def publish_in(
    tree: ContainmentTree | TreePerDimension, filters: Mapping[PeerId, Box], events: Events
) -> Accuracy:
    """Publish events in one of the rejected organisations; whoever is visited sees for itself."""
    ids, boxes = list(filters), list(filters.values())
    messages, published = 0, []
    for point, publisher in zip(events.points, events.publishers, strict=True):
        visit = tree.publish(publisher, point)
        messages += visit.messages
        at = (*point, *point)
        received = [ids[number] for number in visit.visited if meets(boxes[number], at)]
        visited = {ids[number] for number in visit.visited}
        published.append(Published(point, ids[publisher], received, visited))
    return Accuracy(score(published, filters), messages, len(ids), len(published))


def _add_row(table: Table, row: Organisation) -> None:
    table.add(
        row.workload,
        row.name,
        *list_cells(row.accuracy),
        row.depth,
        row.fanout_of_root,
        row.fanout_max,
    )


def _compare(run: DrtreeRun, rows: Sequence[Organisation]) -> None:
    direct, single = (
        [row for row in rows if row.name == name] for name in (CONTAINMENT, DIMENSIONS)
    )
    compare(
        run.reporter,
        "section 3.1",
        [
            ("containment tree: a virtual root with", "many children", _range_of_roots(direct)),
            ("containment tree: unbalanced", "heavily", f"depth {_range_of_depths(direct)}"),
            (
                "tree per dimension: flat, high fan-out",
                "yes",
                f"depth {_range_of_depths(single)}, {_range_of_roots(single)}",
            ),
            (
                "tree per dimension: false positives",
                "significant",
                " to ".join(f"{rate:.1f}" for rate in _ends(_rates(single))) + " %",
            ),
        ],
    )
    say_prose(
        run.reporter,
        "Virtual roots are not subscribers and do not count as false positives, but somebody must "
        "keep their lists, and test each event against all of them. An event rises from its "
        "publisher to the root in all organisations; in the containment tree that way is the only "
        "cause of false positives. In the DR-tree a peer's children are those of all its levels.",
    )


def _rates(rows: Sequence[Organisation]) -> list[float]:
    return [row.accuracy.false_positives for row in rows]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _range_of_roots(rows: Sequence[Organisation]) -> str:
    least, most = _ends([row.fanout_of_root for row in rows])
    return f"{least:,.0f} to {most:,.0f} children"


def _range_of_depths(rows: Sequence[Organisation]) -> str:
    least, most = _ends([row.depth for row in rows])
    return f"{least:.0f} to {most:.0f}"


def _draw(run: DrtreeRun, rows: Sequence[Organisation]) -> None:
    names = [*_OURS.values(), *_REJECTED]
    places = list(range(len(WORKLOADS)))
    values: Mapping[str, Callable[[Organisation], float]] = {
        "false positives, %": lambda row: row.accuracy.false_positives,
        "depth": lambda row: float(row.depth),
        "children, most": lambda row: float(row.fanout_max),
    }
    panels = []
    for title, read in values.items():
        series = [
            Series(
                name,
                [place + 0.15 * (i - 1.5) for place in places],  # beside each other
                [read(row) for row in rows if row.name == name],
                i,
                "none",
                "os^D"[i],
            )
            for i, name in enumerate(names)
        ]
        panels.append(Panel(series, title, names=dict(zip(places, WORKLOADS, strict=True))))
    run.draw(
        "section-3.1-organisations.png",
        panels,
        title="Section 3.1: the DR-tree and the organisations that it rejects",
        note=f"N = {run.plan.accuracy_sizes[0]:,}; the same filters and events for all.",
        y_label="%, levels, or children",
        scale="log with zero",
    )
