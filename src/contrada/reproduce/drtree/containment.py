"""Properties 3.1 and 3.2: where filters that contain each other stand in legal trees."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from contrada.overlay.messages import PeerId
from contrada.pictures.plots import Panel, Series
from contrada.reproduce.drtree.gallery import ALL, QUADRATIC, Gallery
from contrada.reproduce.drtree.growing import Overlay
from contrada.reproduce.drtree.organisations import as_array, find_containing
from contrada.reproduce.drtree.plan import DrtreeRun
from contrada.reproduce.reporting import Column, Table, say_prose, say_title, write_percent
from contrada.simulation.simulator import Simulator
from contrada.simulation.workloads import WORKLOADS, Array

VARIANTS = (QUADRATIC, ALL)


@dataclass(slots=True)
class Awareness:
    """In how many pairs of a filter and one that contains it, not equal to it, each form holds.

    `reversed`: the containee is an ancestor of the container, against Property 3.1; `reversed_low`:
    it is the parent of its leaf. `strong`: Property 3.2 as printed. `near`: any filter that
    contains the containee is an ancestor or a sibling of it.
    """

    pairs: int = 0
    reversed: int = 0
    reversed_low: int = 0
    strong: int = 0
    near: int = 0


AwarenessOf = dict[tuple[str, str], Awareness]  # of a workload and a variant


def measure_containment(run: DrtreeRun, gallery: Gallery) -> AwarenessOf:
    """Check all pairs of filters that contain each other; print and draw the shares that hold."""
    count = run.plan.accuracy_sizes[0]
    say_title(run.reporter, f"Properties 3.1 and 3.2: containment awareness; N = {count:,}")
    table = Table(
        run.reporter,
        [
            Column("workload", width_min=11, is_text=True),
            Column("tree", width_min=16, is_text=True),
            Column("pairs", format=",", width_min=6),
            Column("holds", "3.1, weak", width_min=8),
            Column("violated", "3.1, weak", ","),
            Column("at level 1", "3.1, weak"),
            Column("as printed", "3.2, strong"),
            Column("any container", "3.2, strong"),
        ],
    )
    found: AwarenessOf = {}
    with run.reporter.watch("Properties 3.1 and 3.2", len(WORKLOADS) * len(VARIANTS)) as step:
        for workload in WORKLOADS:
            for variant in VARIANTS:
                checked = check_containment(gallery.overlay(workload, variant, count))
                found[workload, variant] = checked
                _add_row(table, workload, variant, checked)
                step()
    _explain(run)
    _draw(run, found)
    return found


def check_containment(overlay: Overlay) -> Awareness:
    """Check every pair of filters of which one contains the other."""
    ids = list(overlay.filters)
    boxes = as_array(list(overlay.filters.values()))
    containers = [_find_strict(boxes, number) for number in range(len(ids))]
    numbers = {id_: number for number, id_ in enumerate(ids)}
    family = _Family(overlay.simulator)
    ancestors = [[numbers[a] for a in family.ancestors(id_)] for id_ in ids]
    total = Awareness()
    for inner, outers in enumerate(containers):
        near = {*ancestors[inner], *(numbers[s] for s in family.siblings(ids[inner]))}
        around = near & outers
        for outer in outers:
            total.pairs += 1
            total.near += bool(around)
            total.strong += outer in near or any(
                third not in containers[outer] and outer not in containers[third]
                for third in around
            )
            if inner in ancestors[outer]:
                total.reversed += 1
                total.reversed_low += family.is_leaf_of(ids[outer], ids[inner])
    return total


def _find_strict(boxes: Array, number: int) -> set[int]:
    """List the boxes that contain one and are not equal to it."""
    found = find_containing(boxes, number)
    return set(found[(boxes[found] != boxes[number]).any(1)].tolist())


class _Family:
    """Who stands above and beside whom, by the topmost nodes of the peers of a legal overlay."""

    def __init__(self, simulator: Simulator) -> None:
        self._states = {id_: peer.state for id_, peer in simulator.peers.items()}
        self._below: dict[tuple[PeerId, int], list[PeerId]] = defaultdict(list)
        for id_, state in self._states.items():
            if not state.is_root:
                self._below[state.parent, state.top].append(id_)

    def ancestors(self, id_: PeerId) -> Iterator[PeerId]:
        """Walk up to the root."""
        while not self._states[id_].is_root:
            id_ = self._states[id_].parent
            yield id_

    def siblings(self, id_: PeerId) -> list[PeerId]:
        """List the other topmost nodes below the same node."""
        state = self._states[id_]
        if state.is_root:
            return []
        return [other for other in self._below[state.parent, state.top] if other != id_]

    def is_leaf_of(self, id_: PeerId, parent: PeerId) -> bool:
        """Whether a peer is only a leaf, and below that parent."""
        return self._states[id_].top == 0 and self._states[id_].parent == parent


def _add_row(table: Table, workload: str, variant: str, found: Awareness) -> None:
    pairs = max(1, found.pairs)
    table.add(
        workload,
        variant,
        found.pairs,
        write_percent(1 - found.reversed / pairs, 3),
        found.reversed,
        found.reversed_low,
        write_percent(found.strong / pairs, 1),
        write_percent(found.near / pairs, 1),
    )


def _explain(run: DrtreeRun) -> None:
    say_prose(
        run.reporter,
        "Property 3.1: if S1 lies in S2, the topmost node of S1 is not an ancestor of that of S2. "
        "The paper says that electing the largest box as parent guarantees it. That holds at level "
        "1, where boxes are filters. Above, boxes are those of subtrees: a small filter whose "
        "subtree has grown large is elected over a larger filter whose subtree has not. Equal "
        "filters lie in each other, so that one of them would always violate it: only unequal "
        "pairs count.",
    )
    say_prose(
        run.reporter,
        "Property 3.2: S2 is an ancestor or sibling of S1, or some S3 is that contains S1 and is "
        "comparable with S2 neither way; the paper says “occasionally violated”. As printed, S1 "
        "directly below S3 does not count if S3 lies in S2 as well; the last column counts it.",
    )


def _draw(run: DrtreeRun, found: AwarenessOf) -> None:
    places = list(range(len(WORKLOADS)))
    names: Mapping[float, str] = dict(enumerate(WORKLOADS))
    panels = []
    for variant in VARIANTS:
        rows = [found[workload, variant] for workload in WORKLOADS]
        shares = {
            "3.1: no containee above": [row.pairs - row.reversed for row in rows],
            "3.2: as printed": [row.strong for row in rows],
            "3.2: any container near": [row.near for row in rows],
        }
        series = [
            Series(
                name,
                [place + 0.15 * (colour - 1) for place in places],  # beside each other
                [100 * held / max(1, row.pairs) for held, row in zip(counts, rows, strict=True)],
                colour,
                "none",
                "os^"[colour],
            )
            for colour, (name, counts) in enumerate(shares.items())
        ]
        panels.append(Panel(series, variant, names=names))
    run.draw(
        "properties-3.1-3.2.png",
        panels,
        title="Properties 3.1 and 3.2: pairs of containing filters for which they hold",
        note=f"N = {run.plan.accuracy_sizes[0]:,}; all pairs of unequal filters.",
        y_label="% of pairs",
    )
