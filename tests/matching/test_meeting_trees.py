"""Of a geometry and an event the larger asks; who asks never changes the answer."""

from __future__ import annotations

import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from numpy.typing import NDArray

from contrada import Matcher
from contrada.matching import meeting_trees
from contrada.matching.meeting_trees import EVENTS_MIN, BoxTree, MeetingTrees, meet
from contrada.matching.releasing import GeometryOwner

Geometries = NDArray[Any]


def stars(vertices: list[int], seed: int) -> Geometries:
    """Star-shaped areas, each of so many vertices, scattered over the square of side 10."""
    generator = np.random.default_rng(seed)
    found = []
    for count in vertices:
        angles = np.sort(generator.uniform(0, 2 * np.pi, count))
        radii = generator.uniform(0.3, 1, count)
        centre = generator.uniform(0, 10, 2)
        xy = centre + np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
        found.append(shapely.Polygon(xy))
    return shapely.make_valid(np.array(found, object))


def walks(vertices: list[int], seed: int) -> Geometries:
    """Lines of so many vertices, each a random walk that begins in the square of side 10."""
    generator = np.random.default_rng(seed)
    steps = [generator.uniform(-0.2, 0.2, (count, 2)) for count in vertices]
    starts = generator.uniform(0, 10, (len(vertices), 2))
    walked = [start + np.cumsum(step, 0) for start, step in zip(starts, steps, strict=True)]
    return np.array([shapely.LineString(xy) for xy in walked], object)


def all_kinds(seed: int) -> Geometries:
    """Areas, lines, points and collections of few vertices and of many."""
    sizes = [4, 5, 9, 17, 40, 300, 5000]
    areas, lines = stars(sizes * 6, seed), walks([2, 3, *sizes] * 5, seed + 1)
    points: Any = shapely.points(np.random.default_rng(seed + 2).uniform(0, 10, (20, 2)))
    clouds = shapely.multipoints(list(points), indices=np.repeat(np.arange(4), 5))
    both = [shapely.GeometryCollection([areas[i], lines[-i]]) for i in range(1, 6)]
    return np.concatenate([areas, lines, points, clouds, np.array(both, object)])


def pairs_of(rows: NDArray[Any], ids: NDArray[Any]) -> list[tuple[int, int]]:
    return sorted(zip(rows.tolist(), ids.tolist(), strict=True))


@pytest.mark.parametrize("events_count", [0, 1, EVENTS_MIN, 120])
def test_the_pairs_are_those_of_asking_all_one_by_one(events_count: int) -> None:
    geometries, events = all_kinds(1), all_kinds(10)
    events = np.random.default_rng(3).permutation(events)[:events_count]
    rows, ids, known = MeetingTrees(geometries).find(events)
    assert known.all()
    found = pairs_of(rows, ids)
    meets = shapely.intersects(events[:, None], geometries[None, :])
    assert found == pairs_of(*np.nonzero(meets))
    assert len(found) >= events_count // 2


def test_pairs_meet_as_they_do_one_by_one() -> None:
    geometries, events = all_kinds(1), all_kinds(10)
    generator = np.random.default_rng(4)
    ids = np.concatenate([generator.integers(0, len(geometries), 3000), np.full(500, 6)])
    pairs = events[generator.integers(0, len(events), len(ids))], geometries[ids]
    meets, known = meet(*pairs, ids)
    assert known.all()
    assert meets.tolist() == shapely.intersects(*pairs).tolist()
    assert 0 < meets.sum() < len(ids)
    assert not shapely.is_prepared(geometries).any()


def test_an_area_that_is_asked_of_often_asks_if_it_is_larger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asking: list[Any] = []
    intersects = shapely.intersects

    def watch(a: Any, b: Any) -> Any:
        asking.extend(shapely.get_num_coordinates(a).tolist())
        return intersects(a, b)

    monkeypatch.setattr(shapely, "intersects", watch)
    areas = stars([400, 400], 1)
    ids = np.array([0] * EVENTS_MIN + [1] * (EVENTS_MIN - 1))
    meet(walks([5] * len(ids), 2), areas[ids], ids)
    assert asking == [401] * EVENTS_MIN + [5] * (EVENTS_MIN - 1)


def test_without_geometries_nothing_is_found() -> None:
    rows, ids, _ = MeetingTrees(np.zeros(0, object)).find(walks([3] * 20, 1))
    assert len(rows) == len(ids) == 0


class WatchedTree(shapely.STRtree):
    """A tree that notes how many vertices each geometry has that asks it."""

    asking: list[int] = []  # noqa: RUF012  shared on purpose

    def query(self, geometry: Any, predicate: Any = None, distance: Any = None) -> Any:
        if predicate is not None and len(self):
            self.asking.extend(np.atleast_1d(shapely.get_num_coordinates(geometry)).tolist())
        return super().query(geometry, predicate, distance)


@pytest.mark.parametrize(
    ("area_vertices", "line_vertices", "asking"), [(3000, 30, 3001), (10, 5000, 5000), (8, 20, 9)]
)
def test_the_larger_asks_and_an_area_that_is_little_smaller(
    area_vertices: int, line_vertices: int, asking: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    angles = np.linspace(0, 2 * np.pi, area_vertices, endpoint=False)
    disc = shapely.Polygon(5 + 4 * np.column_stack([np.cos(angles), np.sin(angles)]))
    areas = np.array([disc], object)
    monkeypatch.setattr(meeting_trees, "STRtree", WatchedTree)
    monkeypatch.setattr(WatchedTree, "asking", [])
    trees = MeetingTrees(areas)
    lines = walks([line_vertices] * 20, 1)
    rows, _, _ = trees.find(lines)
    assert set(WatchedTree.asking) == {asking}
    assert len(rows) == shapely.intersects(lines, disc).sum() > 5


def test_a_few_events_ask_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting_trees, "STRtree", WatchedTree)
    monkeypatch.setattr(WatchedTree, "asking", [])
    MeetingTrees(stars([3000], 1)).find(walks([7] * (EVENTS_MIN - 1), 1))
    assert set(WatchedTree.asking) == {7}


@pytest.mark.parametrize(
    "relation", ["intersects", "touches", "crosses", "T*T******", "ehOverlap", "disjoint"]
)
def test_large_areas_match_what_scan_matches(relation: str) -> None:
    areas = np.concatenate([stars([5, 40, 2000] * 4, 5), [shapely.box(2, 2, 8, 8)]])
    edge = shapely.linestrings([[(8, y), (9, y)] for y in range(3, 8)])
    events = np.concatenate([walks([5] * 30, 6), stars([6, 400] * 10, 7), edge])
    rows = {"geometry": shapely.to_wkb(areas), "relation": [relation] * len(areas)}
    table = pa.table({"geometry": shapely.to_wkb(events)})
    answers = []
    for engine in ("scan", "strtree"):
        matcher = Matcher(engine)
        matcher.add_many(pa.table(rows), repair=True)
        answers.append(matcher.match_many(table, repair=True).to_pylist())
    assert answers[0] == answers[1] != []


# In a process of its own, since a mistake here ends the process.
CALL = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np, shapely
from contrada.matching.meeting_trees import MeetingTrees
areas = shapely.buffer(shapely.points(np.arange(300) % 20, np.arange(300) // 20), 0.9, 64)
shapely.prepare(areas)
rng = np.random.default_rng(1)
lines = shapely.linestrings(rng.uniform(0, 20, (4000, 1, 2)) + rng.uniform(-1, 1, (4000, 8, 2)))
trees = MeetingTrees(areas)
for _ in range(4):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: len(trees.find(lines)[0]), range(4)))
    assert len(set(found)) == 1
print("fine")
"""


def test_threads_may_find_at_once() -> None:
    run = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, check=False)
    assert run.stdout == "fine\n", run.stderr[-500:]


# Very many geometries


@pytest.mark.parametrize("predicate", [None, "intersects", "within"])
def test_a_row_of_trees_finds_what_one_tree_does(
    predicate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    corners = rng.uniform(-50, 50, (700, 2))
    (west, south), (east, north) = corners.T, (corners + rng.uniform(0, 9, (700, 2))).T
    wide = shapely.box(-60, -1, 60, 1)
    boxes = np.array(
        [
            *shapely.box(west, south, east, north),
            wide,
            shapely.Point(3, 3),
            shapely.LineString([(-9, -9), (9, 9)]),
        ]
    )
    points: Any = shapely.points(corners[:90])
    events = np.array([*boxes[::7], *points, wide, None, shapely.Point()])
    one = shapely.STRtree(boxes)
    monkeypatch.setattr(meeting_trees, "_TREE_MAX", 100)
    row = BoxTree(boxes)
    for asked in (events, events[:1], events[-1:], events[:0]):
        places, found = row.query(asked, predicate=predicate)
        wanted: Any = one.query(asked, predicate=predicate)
        assert (np.diff(places) >= 0).all()
        assert {*zip(places, found, strict=True)} == {*zip(*wanted, strict=True)}
        assert len(places) == wanted.shape[1]


def test_one_event_asks_only_the_trees_that_it_comes_near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting_trees, "STRtree", WatchedTree)
    monkeypatch.setattr(WatchedTree, "asking", [])
    monkeypatch.setattr(meeting_trees, "_TREE_MAX", 10)
    west: Any = np.arange(100)
    boxes: Any = shapely.box(west, 0, west + 0.5, 1)
    row = BoxTree(boxes)
    places, found = row.query(np.array([shapely.Point(42.2, 0.5)]), predicate="intersects")
    assert (places.tolist(), found.tolist()) == ([0], [42])
    assert WatchedTree.asking == [1]
    events: Any = shapely.points(np.arange(0.2, 100), 0.5)
    _, found = row.query(events, predicate="intersects")
    assert found.tolist() == list(range(100))
    assert len(WatchedTree.asking) == 1 + 100


def test_geometries_go_in_steps_once_no_tree_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting_trees, "_TREE_MAX", 8)
    monkeypatch.setattr(GeometryOwner, "_AT_ONCE", 3)
    gone: list[int] = []
    west: Any = np.arange(20)
    boxes: Any = shapely.box(west, 0, west + 1, 1)
    for number, box in enumerate(boxes):
        weakref.finalize(box, gone.append, number)

    class Watched(np.ndarray[Any, Any]):
        def __setitem__(self, key: Any, value: Any) -> None:
            steps.append(len(gone))
            super().__setitem__(key, value)

    steps: list[int] = []
    tree = BoxTree(boxes.view(Watched))
    del box, boxes
    assert not gone
    del tree
    assert steps == [0, 3, 6, 9, 12, 15, 18]
    assert sorted(gone) == list(range(20))


def test_an_index_that_nobody_needs_goes_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    owned: list[int] = []
    monkeypatch.setattr(GeometryOwner, "__del__", lambda self: owned.append(len(self._geometries)))
    matcher = Matcher()
    for number in range(20):
        shape = shapely.box(number, 0, number + 1, 1)
        matcher.add(number, geometry=shape, where=f"S_DISJOINT(geometry, POINT({number} 5))")
    matcher.match({"geometry": shapely.Point(3, 0.5)})
    del matcher
    assert len(owned) >= 2, "of anchors, and of what is checked"
