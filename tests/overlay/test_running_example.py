"""The running example of the DR-tree paper: its Figure 1, the tree of Figure 4, and the event a.

The text that we have lacks the figures. It says that S4 lies in both S2 and S3, which do not
contain each other; that S3 is the root and stands at every level; that S2 is the parent of S4 and
a child of S3; and that Figure 4 keeps Properties 3.1 and 3.2. Places and the other four filters
are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from contrada.overlay.boxes import Space, covers, join_all
from contrada.overlay.messages import PeerId
from contrada.overlay.state import Child, Settings
from contrada.reproduce.drtree.containment import check_containment
from contrada.reproduce.drtree.growing import Overlay
from contrada.simulation.simulator import Simulator
from contrada.simulation.workloads import Workload

if TYPE_CHECKING:
    from contrada.overlay.boxes import Box
    from contrada.overlay.messages import Event

FILTERS: list[Box] = [
    (2.0, 2.0, 3.0, 6.0),  # S1, in S3
    (5.0, 3.0, 11.0, 8.0),  # S2
    (1.0, 1.0, 8.0, 7.0),  # S3
    (6.0, 4.0, 7.0, 6.0),  # S4, in S2 and S3
    (12.0, 1.0, 16.0, 5.0),  # S5
    (13.0, 2.0, 14.0, 3.0),  # S6, in S5
    (11.0, 6.0, 16.0, 9.0),  # S7
    (12.0, 7.0, 13.0, 8.0),  # S8, in S7
]
S1, S2, S3, S4, S5, S6, S7, S8 = map(PeerId, range(8))
A = (6.5, 5.0, 6.5, 5.0)
TREE = {  # the children of each peer at levels 1, 2 and 3, as far as it is there
    S3: [{S1}, {S2}, {S5}],
    S2: [{S4}],
    S5: [{S6}, {S7}],
    S7: [{S8}],
}
SETTINGS = Settings(
    Space((0.0, 0.0, 16.0, 10.0)), 2, 4, summaries=False, deputies=False, moving=False
)


def below(id_: PeerId, level: int) -> list[PeerId]:
    """The leaves below a node."""
    lists = TREE.get(id_, [])[:level]
    others = [leaf for i, ids in enumerate(lists) for child in ids for leaf in below(child, i)]
    return [id_, *others]


def box_of(id_: PeerId, level: int) -> Box:
    return join_all(FILTERS[leaf] for leaf in below(id_, level))


@pytest.fixture
def simulator() -> Simulator:
    """The peers with the states of Figure 4, at rest."""
    found = Simulator(SETTINGS, np.random.default_rng(1))
    for filter_ in FILTERS:
        found.add(filter_)
    for id_, lists in TREE.items():
        for level, children in enumerate(lists, 1):
            found.peers[id_].state.levels.append(
                {
                    child: Child(box_of(child, level - 1), 2 if level > 1 else 0, 0.0)
                    for child in children
                }
            )
            for child in children:
                found.peers[child].state.parent = id_
    return found


def test_filters_contain_each_other_as_the_text_says() -> None:
    pairs = {
        (outer, inner)
        for outer, a in enumerate(FILTERS, 1)
        for inner, b in enumerate(FILTERS, 1)
        if a != b and covers(a, b)
    }
    assert pairs == {(3, 1), (2, 4), (3, 4), (5, 6), (7, 8)}
    assert [covers(filter_, A) for filter_ in FILTERS] == [
        False, True, True, True, False, False, False, False
    ]  # fmt: skip


def test_the_tree_of_figure_4_is_legal_and_stays_as_it_is(simulator: Simulator) -> None:
    assert simulator.find_faults() == []
    assert [peer.state.top for peer in simulator.peers.values()] == [0, 1, 3, 0, 2, 0, 1, 0]
    parents = [peer.state.parent for peer in simulator.peers.values()]
    simulator.run_rounds(20)
    assert simulator.find_faults() == []
    assert [peer.state.parent for peer in simulator.peers.values()] == parents


def test_the_tree_of_figure_4_keeps_both_properties(simulator: Simulator) -> None:
    filters = dict(zip(simulator.peers, FILTERS, strict=True))
    workload = Workload("uniform", np.random.default_rng(1))
    found = check_containment(Overlay(simulator, workload, filters, 0, 0.0))
    assert (found.pairs, found.reversed, found.strong) == (5, 0, 5)


def test_event_a_from_s2_reaches_s2_s3_and_s4_alone_with_two_messages(
    simulator: Simulator,
) -> None:
    delivered: list[PeerId] = []
    visited: list[PeerId] = []

    def note_delivery(id_: PeerId, _: Event) -> None:
        delivered.append(id_)

    def note_visit(id_: PeerId, _: Event) -> None:
        visited.append(id_)

    simulator.on_deliver, simulator.on_visit = note_delivery, note_visit
    simulator.publish(S2, A)
    simulator.run_rounds(3)
    assert sorted(delivered) == [S2, S3, S4]
    assert sorted(visited) == [S3, S4]
    assert simulator.traffic.by_kind["Event"] == 2
