"""The experiments on the DR-tree run, and their numbers are consistent."""

from __future__ import annotations

import os
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contrada.cli import main
from contrada.errors import ContradaError
from contrada.overlay.boxes import Box, covers, meets
from contrada.overlay.messages import PeerId
from contrada.overlay.state import Settings
from contrada.reproduce.drtree import growing
from contrada.reproduce.drtree.accuracy import measure_false_positives
from contrada.reproduce.drtree.comparators import (
    CONTAINMENT,
    DIMENSIONS,
    compare_organisations,
    publish_in,
)
from contrada.reproduce.drtree.containment import measure_containment
from contrada.reproduce.drtree.experiments import reproduce
from contrada.reproduce.drtree.gallery import (
    ALL,
    MOVING,
    RSTAR,
    RSTAR_CELLS,
    Events,
    Gallery,
    ignore_cells,
)
from contrada.reproduce.drtree.growing import OverlayFailed, await_legal, grow, plain
from contrada.reproduce.drtree.links import count_departures, list_links, share_in_largest
from contrada.reproduce.drtree.memory import measure_memory
from contrada.reproduce.drtree.organisations import (
    ROOT,
    ContainmentTree,
    TreePerDimension,
    as_array,
)
from contrada.reproduce.drtree.outage import measure_outage
from contrada.reproduce.drtree.paper import bound_connection, bound_height
from contrada.reproduce.drtree.plan import QUICK, DrtreePlan, DrtreeRun
from contrada.reproduce.drtree.sizes import SETTINGS, measure_sizes
from contrada.reproduce.drtree.stabilising import HARMS, VARIANTS, measure_healing
from contrada.reproduce.drtree.tracing import trace_event, trace_join
from contrada.simulation.checker import LevelView, PeerView, find_faults
from contrada.simulation.workloads import UNIT, WORKLOADS
from notes import Notes

TINY = DrtreePlan(
    sizes=(12, 40),
    sizes_ours=(40,),
    trace_count=10,
    harmed=(8, 16),
    harm_seeds=1,
    accuracy_sizes=(40,),
    accuracy_events=20,
    moving_rounds=5,
    churn_size=20,
    churn_seeds=1,
    churn_trials=10,
    churn_rounds=8,
    outage_size=40,
    outage_seeds=2,
    outage_rounds=12,
    outage_events=10,
    bias_size=30,
    bias_seeds=2,
    bias_rounds=8,
    bias_events=10,
)
FIGURES = {
    "lemmas-3.1-3.2-steps.png",
    "lemma-3.1-state.png",
    "lemmas-3.2-3.6-healing.png",
    "false-positives.png",
    "properties-3.1-3.2.png",
    "section-3.1-organisations.png",
    "lemma-3.7.png",
    "churn.png",
    "events-while-healing.png",
    "reorganisation.png",
}
TITLES = (
    "Lemmas 3.1 and 3.2",
    "Lemmas 3.2 to 3.6",
    "False positives",
    "Properties 3.1 and 3.2",
    "Section 3.1",
    "Lemma 3.7",
    "Under churn",
    "Events while it heals",
    "Dynamic reorganisation",
    "Where the paper is wrong",
    "Where it is silent",
)


@pytest.fixture
def run(tmp_path: Path) -> DrtreeRun:
    return DrtreeRun(TINY, tmp_path, Notes(), seed=1)


def make_boxes(seed: int, count: int) -> list[Box]:
    """Boxes on a small lattice, so that many contain, equal and touch each other."""
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.integers(0, 9, (count, 2, 2)), axis=1) / 8
    return [tuple(corner.ravel().tolist()) for corner in corners]


def test_all_tables_are_printed_and_all_figures_drawn(tmp_path: Path) -> None:
    notes = Notes()
    reproduce(tmp_path, TINY, notes)
    for title in TITLES:
        assert any(line.startswith(title) for line in notes.lines), title
    assert notes.made == notes.announced
    assert {path.name for path in tmp_path.iterdir()} == FIGURES
    for stated in ("2 – 3 %", "O(N log_m N)", "O(M log² N / log m) bits"):
        assert stated in notes.text
    assert f"with {os.cpu_count()} cores" in " ".join(notes.lines)
    assert all(len(line) <= 120 for line in notes.lines)


def test_an_overlay_that_does_not_become_legal_says_how_it_was_made_and_how_to_see_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "ROUNDS_MAX", 0)
    told = (
        r"an overlay \(N = 100, uniform filters, quadratic splits, nothing beyond the paper, "
        r"random numbers of \[3, 1, 100\]\) is not legal after 0 rounds; \d+ faults: .+; "
        r"to see it again: contrada reproduce drtree --quick --seed 3"
    )
    with pytest.raises(ContradaError) as error:
        reproduce(tmp_path, QUICK, Notes(), seed=3)
    assert re.fullmatch(told, str(error.value))


def test_an_overlay_that_is_never_legal_again_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    overlay = grow(Settings(UNIT), "clustered", 20, np.random.default_rng([1, 5]))
    monkeypatch.setattr(overlay.simulator, "find_faults", lambda: ["1 is a ring"])
    told = "clustered filters, rstar splits, with summaries, deputies, moving, .* 1 is a ring"
    with pytest.raises(OverlayFailed, match=told):
        await_legal(overlay)


def test_the_same_seed_gives_the_same_numbers_whatever_ran_before(tmp_path: Path) -> None:
    said = []
    for seed in (1, 1, 2):
        notes = Notes()
        measure_outage(DrtreeRun(TINY, tmp_path, notes, seed))
        said.append(notes.lines)
    assert said[0] == said[1]
    assert said[0] != said[2]


def test_trees_are_as_low_as_the_lemma_says_and_every_join_and_event_ends(run: DrtreeRun) -> None:
    for size in measure_sizes(run):
        assert 1 <= size.height <= bound_height(size.count, SETTINGS.m)
        assert all(1 <= steps <= 4 * size.height + 2 for steps in size.joins)
        assert all(0 <= hops <= 2 * size.height for hops in size.hops)
        assert size.messages_at_rest > 1
        assert all(memory.bytes > 100 for memory in size.memories)


def test_every_kind_of_harm_is_healed_at_every_size(run: DrtreeRun) -> None:
    found = measure_healing(run)
    assert set(found) == {(v, h, n) for v in VARIANTS for h in HARMS for n in TINY.harmed}
    assert all(len(rounds) == TINY.harm_seeds for rounds in found.values())


def test_a_node_that_becomes_poor_is_the_only_fault_of_a_copy() -> None:
    overlay = grow(plain(), "uniform", 60, np.random.default_rng(7))
    before = [peer.state.parent for peer in overlay.simulator.peers.values()]
    copy = deepcopy(overlay)
    do_harm, lemma, _ = HARMS["a node becomes poor"]
    do_harm(copy, np.random.default_rng(7))
    assert lemma == "3.3"
    living = copy.simulator.peers.keys()
    counts = [
        1 + len(peer.state.levels[1].keys() & living)
        for peer in copy.simulator.peers.values()
        if peer.state.top > 0
    ]
    assert [count for count in counts if count < SETTINGS.m] == [SETTINGS.m - 1]
    assert await_legal(copy) > 0
    assert [peer.state.parent for peer in overlay.simulator.peers.values()] == before


@pytest.mark.parametrize("variant", [plain("rstar"), Settings(UNIT)])
def test_a_traced_event_reaches_just_whom_the_filters_say(variant: Settings) -> None:
    rng = np.random.default_rng(3)
    overlay = grow(variant, "containment", 60, rng)
    for publisher in range(0, 60, 5):
        x, y = overlay.workload.draw_point()
        trace = trace_event(overlay.simulator, PeerId(publisher), (x, y, x, y))
        wanted = [id_ for id_, box in overlay.filters.items() if meets(box, (x, y, x, y))]
        assert sorted(trace.received) == wanted
        assert trace.visited >= set(wanted)
        assert len(trace.visited) - 1 <= trace.messages
        assert trace.path_max <= trace.messages


def test_a_traced_join_ends_below_a_parent() -> None:
    overlay = grow(plain(), "uniform", 30, np.random.default_rng(4))
    joiner = overlay.simulator.add((0.1, 0.1, 0.2, 0.2))
    trace = trace_join(overlay.simulator, joiner, PeerId(7))
    assert 1 <= trace.path_max <= 2 * overlay.height + 1
    assert not overlay.simulator.peers[joiner].state.is_root


def test_no_organisation_misses_a_receiver_and_all_see_the_same_events(run: DrtreeRun) -> None:
    gallery = Gallery(run)
    found = measure_false_positives(run, gallery)
    assert all(accuracy.score.missed == 0 for accuracy in found.values())
    rows = compare_organisations(run, gallery, found)
    assert all(row.accuracy.score.missed == row.accuracy.score.doubled == 0 for row in rows)
    for workload in WORKLOADS:
        same = [row for row in rows if row.workload == workload]
        assert len({row.accuracy.score.matches for row in same}) == 1
        rates = {row.name: row.accuracy.false_positives for row in same}
        assert rates[DIMENSIONS] >= rates[CONTAINMENT]


def test_summaries_spare_visits_and_cost_no_receiver_of_one_tree(tmp_path: Path) -> None:
    gallery = Gallery(DrtreeRun(replace(TINY, accuracy_events=200), tmp_path, Notes(), seed=1))
    for plain_one, summarised in ((RSTAR, RSTAR_CELLS), (MOVING, ALL)):
        overlay = gallery.overlay("uniform", plain_one, 150)
        assert gallery.overlay("uniform", summarised, 150) is overlay
        wide, narrow, again = (
            gallery.measure("uniform", variant, 150)
            for variant in (plain_one, summarised, plain_one)
        )
        assert wide == again
        assert wide.score.matches == narrow.score.matches
        assert wide.score.missed == narrow.score.missed == 0
        assert wide.score.visits > narrow.score.visits
        assert wide.messages > narrow.messages


def test_cells_are_ignored_only_for_a_while() -> None:
    simulator = grow(Settings(UNIT), "uniform", 60, np.random.default_rng(8)).simulator
    children = [c for p in simulator.peers.values() for level in p.state.levels for c in level]

    def see() -> list[object]:
        states = [peer.state for peer in simulator.peers.values()]
        return [c.cells for state in states for level in state.levels for c in level.values()]

    before = see()
    assert any(cells is not None for cells in before)
    with ignore_cells(simulator):
        assert see() == [None] * len(children)
    assert see() == before


@pytest.mark.parametrize("seed", range(5))
def test_each_subscriber_is_below_the_smallest_filter_that_contains_its_own(seed: int) -> None:
    boxes = make_boxes(seed, 40)
    tree = ContainmentTree(as_array(boxes))
    for number, box in enumerate(boxes):
        above = int(tree.parents[number])
        others = [b for b in boxes if b != box and covers(b, box)]
        if above == ROOT:
            assert not others
            assert box not in boxes[:number]
        else:
            assert covers(boxes[above], box)
            assert not any(covers(boxes[above], b) and b != boxes[above] for b in others)


@pytest.mark.parametrize("seed", range(5))
def test_rejected_organisations_visit_just_whom_they_must(seed: int) -> None:
    boxes = make_boxes(seed, 40)
    rng = np.random.default_rng(seed)
    filters = {PeerId(number): box for number, box in enumerate(boxes)}
    points = [tuple((rng.integers(0, 17, 2) / 16).tolist()) for _ in range(30)]
    events = Events(points, rng.integers(40, size=30).tolist())
    tree, trees = ContainmentTree(as_array(boxes)), TreePerDimension(as_array(boxes))
    for organisation in (tree, trees):
        found = publish_in(organisation, filters, events).score
        assert found.missed == found.doubled == found.unwanted == 0
    for point, publisher in zip(events.points, events.publishers, strict=True):
        climbed = {publisher}
        while (above := int(tree.parents[min(climbed, key=lambda n: depth(tree, n))])) != ROOT:
            climbed.add(above)
        at = (*point, *point)
        matching = {number for number, box in enumerate(boxes) if meets(box, at)}
        assert tree.publish(publisher, point).visited == matching | climbed


def depth(tree: ContainmentTree, number: int) -> int:
    steps = 0
    while number != ROOT:
        number, steps = int(tree.parents[number]), steps + 1
    return steps


def test_containment_is_counted_in_pairs_and_never_reversed_over_leaves(run: DrtreeRun) -> None:
    gallery = Gallery(run)
    found = measure_containment(run, gallery)
    for (workload, variant), awareness in found.items():
        filters = list(gallery.overlay(workload, variant, 40).filters.values())
        pairs = sum(a != b and covers(b, a) for a in filters for b in filters)
        assert awareness.pairs == pairs
        assert awareness.reversed_low == 0
        assert awareness.near <= pairs
        assert awareness.strong <= pairs


def test_a_legal_tree_may_have_a_containee_above_its_container() -> None:
    inner, outer = (4.0, 4.0, 5.0, 5.0), (3.0, 3.0, 6.0, 6.0)
    far, near = (9.0, 9.0, 9.5, 9.5), (3.5, 3.5, 4.0, 4.0)
    wide = (4.0, 4.0, 9.5, 9.5)
    views = [
        PeerView(
            PeerId(0),
            inner,
            (
                LevelView(PeerId(0), (), inner),
                LevelView(PeerId(0), (PeerId(0), PeerId(1)), wide),
                LevelView(PeerId(0), (PeerId(0), PeerId(2)), (3.0, 3.0, 9.5, 9.5)),
            ),
        ),
        PeerView(PeerId(1), far, (LevelView(PeerId(0), (), far),)),
        PeerView(
            PeerId(2),
            outer,
            (
                LevelView(PeerId(2), (), outer),
                LevelView(PeerId(0), (PeerId(2), PeerId(3)), outer),
            ),
        ),
        PeerView(PeerId(3), near, (LevelView(PeerId(2), (), near),)),
    ]
    assert find_faults({view.id: view for view in views}, 2, 4, (0.0, 0.0, 10.0, 10.0)) == []
    assert covers(outer, inner)


def test_departures_are_counted_until_the_living_fall_apart() -> None:
    chain = [{1}, {0, 2}, {1, 3}, {2, 4}, {3}]
    links = {PeerId(id_): set(map(PeerId, others)) for id_, others in enumerate(chain)}

    def count(*order: int) -> int:
        return count_departures(links, list(map(PeerId, order)))

    assert count(2, 0, 1, 3, 4) == 1
    assert count(0, 4, 2, 1, 3) == 3
    assert count(0, 1, 2, 3, 4) == 4


def test_a_legal_overlay_is_one_tree_and_its_links_connect_all() -> None:
    overlay = grow(Settings(UNIT), "uniform", 40, np.random.default_rng(5))
    simulator = overlay.simulator
    assert share_in_largest(simulator) == 1
    links = list_links(simulator)
    assert all(links[id_] >= {peer.state.parent} - {id_} for id_, peer in simulator.peers.items())
    root = next(id_ for id_, peer in simulator.peers.items() if peer.state.is_root)
    simulator.crash(root)
    assert share_in_largest(simulator) < 1


def test_memory_counts_entries_and_grows_with_them() -> None:
    overlay = grow(plain(), "uniform", 40, np.random.default_rng(6))
    peers = overlay.simulator.peers.values()
    for peer in peers:
        assert measure_memory(peer).entries == sum(map(len, peer.state.levels)) + len(
            peer.state.leaving
        )
    leaf = next(peer for peer in peers if peer.state.top == 0)
    root = next(peer for peer in peers if peer.state.is_root)
    assert measure_memory(root).bytes > measure_memory(leaf).bytes


def test_memory_tells_what_events_take_from_what_the_tree_takes() -> None:
    overlay = grow(Settings(UNIT), "uniform", 40, np.random.default_rng(6))
    peer = next(peer for peer in overlay.simulator.peers.values() if peer.state.is_root)
    before = measure_memory(peer)
    for number in range(20):
        trace_event(overlay.simulator, PeerId(number), (0.5, 0.5, 0.5, 0.5))
    after = measure_memory(peer)
    assert after.entries == before.entries
    assert after.bytes == pytest.approx(before.bytes, abs=500)  # refusals are counted
    assert after.bytes_of_events > before.bytes_of_events + 20 * 250  # seen, and kept whole


def test_the_bounds_are_those_of_the_lemmas() -> None:
    assert [bound_height(count, 4) for count in (4, 5, 16, 64, 65, 100_000)] == [1, 2, 2, 3, 4, 9]
    assert bound_connection(100, 100) == pytest.approx(0.01)
    assert bound_connection(100, 50) == pytest.approx(np.exp(12.5) / 100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["drtree", "--data", "."], "--data .: reproduce drtree makes its own geometries"),
        (["drtree", "--spark", "local[2]"], "--spark local[2]: reproduce drtree uses no Spark"),
    ],
)
def test_what_it_does_not_take_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments]) == 2
    assert message in capsys.readouterr().err
