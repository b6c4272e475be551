"""The engine `ahs`: right where cells decide rightly, and of one opinion everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import InvalidInput, Matcher
from contrada.matching.ahs.by_cells import AreaIndex, CellReader
from contrada.matching.forwarding import ForwardingIndex
from contrada.matching.grid import Grid
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.event import Event
from contrada.model.expression import Attribute, Literal, Spatial
from contrada.model.relation import RELATIONS
from contrada.model.subscription import Constraint, Filter, Predicate, Subscription
from strategies import geometries

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

UNIVERSE = (0, 0, 64, 64)
OPTIONS: dict[str, Any] = {"level": 6, "universe": UNIVERSE}
SQUARE = "POLYGON((10.5 10.5, 30.5 10.5, 30.5 30.5, 10.5 30.5, 10.5 10.5))"
OTHER = "POLYGON((20.5 20.5, 50.5 20.5, 50.5 50.5, 20.5 50.5, 20.5 20.5))"
OGC = [name for name in RELATIONS if not name.startswith("eh")]


def make(engine: str = "ahs", **options: Any) -> Matcher:
    return Matcher(engine, **(OPTIONS if engine == "ahs" else {}), **options)


def matches(filter: str, event: dict[str, Any], engine: str = "ahs") -> bool:
    matcher = make(engine)
    matcher.add("it", filter)
    return matcher.match(event) == ["it"]


# Against the exact answer


def well_separated(rng: np.random.Generator, side: int = 64) -> BaseGeometry:
    """A shape whose outline lies on lines one unit apart, so that cells of 1/16 tell it apart."""
    x, y = (int(place) for place in rng.integers(1, side - 12, 2))
    width, height = (int(size) for size in rng.integers(2, 10, 2))
    box: BaseGeometry = shapely.box(x, y, x + width, y + height)
    match rng.integers(0, 5):
        case 0:
            return shapely.Point(x, y)
        case 1:
            return shapely.MultiPoint([(x, y), (x + width, y + height)])
        case 2:
            return shapely.LineString([(x, y), (x + width, y)])
        case 3:
            shell = shapely.box(x, y, x + width + 2, y + height + 2)
            return shapely.Polygon(
                shell.exterior, [shapely.box(x + 1, y + 1, x + width, y + height).exterior]
            )
        case _:
            return box


def blurred(shape: BaseGeometry, rng: np.random.Generator) -> BaseGeometry:
    """Moved off the borders of cells, but by less than a cell: on the grid it stays what it was."""
    moved: BaseGeometry = shapely.transform(
        shape, lambda xy: xy + 1 / 32 + rng.uniform(-0.01, 0.01)
    )
    return moved


@pytest.mark.parametrize("name", [n for n in OGC if n not in ("crosses", "overlaps")])
def test_shapes_that_are_large_beside_a_cell_are_decided_as_if_exactly(name: str) -> None:
    """Crosses and overlaps of lines count cells, so they are tested on their own."""
    rng = np.random.default_rng(7)
    shapes = [well_separated(rng) for _ in range(120)]
    events = [well_separated(rng) for _ in range(120)] + shapes[:40]
    exact, ahs = Matcher("scan"), Matcher("ahs", level=10, universe=UNIVERSE)
    for number, shape in enumerate(shapes):
        exact.add(number, geometry=shape, relation=name)
        ahs.add(number, geometry=blurred(shape, rng), relation=name)
    found = [ahs.match({"geometry": blurred(event, rng)}) for event in events]
    expected = [exact.match({"geometry": event}) for event in events]
    if name in ("within", "contains"):  # on the grid these are coveredBy and covers
        assert all(set(e) <= set(f) for f, e in zip(found, expected, strict=True))
        assert sum(map(len, found)) < 1.5 * sum(map(len, expected))
    else:
        assert found == expected
    assert sum(map(len, expected)) > 20


def test_points_well_inside_cells_are_decided_exactly() -> None:
    rng = np.random.default_rng(3)
    shapes = [
        shapely.box(x, y, x + w, y + h)
        for x, y, w, h in (rng.integers(1, 20, (200, 4)) + 0.001).tolist()
    ]
    points = [(x + 0.5, y + 0.5) for x, y in rng.integers(0, 40, (300, 2)).tolist()]
    exact, ahs = Matcher("scan"), Matcher("ahs", level=12, universe=UNIVERSE)
    for number, shape in enumerate(shapes):
        for matcher in (exact, ahs):
            matcher.add(number, geometry=shape, relation=("within", "disjoint")[number % 2])
    table = pa.table({"geometry": [shapely.to_wkb(shapely.Point(p)) for p in points]})
    expected = exact.match_many(table).to_pylist()
    assert len(expected) > 10_000
    assert ahs.match_many(table).to_pylist() == expected
    assert ahs.match_many(table, threads=2).to_pylist() == expected


# Three values


@pytest.mark.parametrize("engine", ["ahs", "scan"])
@pytest.mark.parametrize(
    "event",
    [
        {},
        {"geometry": None},
        {"geometry": "POINT EMPTY"},
        {"geometry": 3},
        {"geometry": " "},
    ],
)
@pytest.mark.parametrize("negation", ["", "NOT "])
@pytest.mark.parametrize("name", ["S_DISJOINT", "S_INTERSECTS", "S_WITHIN", "ehDisjoint"])
def test_what_is_unknown_satisfies_neither_a_relation_nor_its_negation(
    engine: str, event: dict[str, Any], negation: str, name: str
) -> None:
    assert not matches(f"{negation}{name}(geometry, {SQUARE})", event, engine)


@pytest.mark.parametrize("engine", ["ahs", "scan"])
@pytest.mark.parametrize("negation", ["", "NOT "])
@pytest.mark.parametrize("name", ["ehDisjoint", "ehInside"])
@pytest.mark.parametrize("event", ["POINT(60 60)", "POINT(20.5 20.5)", "LINESTRING(1 1, 60 60)"])
def test_an_egenhofer_relation_of_what_is_no_area_is_unknown(
    engine: str, negation: str, name: str, event: str
) -> None:
    assert not matches(f"{negation}{name}(geometry, {SQUARE})", {"geometry": event}, engine)
    both = f"S_INTERSECTS(geometry, {SQUARE}) AND {negation}{name}(geometry, {SQUARE})"
    assert not matches(both, {"geometry": event}, engine)


@pytest.mark.parametrize("engine", ["ahs", "scan"])
def test_attributes_negations_and_several_geometries_work_as_in_any_engine(engine: str) -> None:
    matcher = make(engine)
    matcher.add("in", f"S_WITHIN(geometry, {SQUARE}) AND wind > 90")
    matcher.add("out", f"NOT S_INTERSECTS(geometry, {SQUARE}) AND kind = 'tug'")
    matcher.add("either", f"S_WITHIN(geometry, {SQUARE}) OR S_WITHIN(home, {OTHER})")
    matcher.add("both", f"S_WITHIN(geometry, {SQUARE}) AND NOT S_WITHIN(geometry, {OTHER})")
    matcher.add("apart", f"S_DISJOINT(home, {SQUARE})")
    matcher.add("near", "dwithin(geometry, POINT(20.5 20.5), 100000)")
    matcher.add("pattern", f"relate(geometry, {SQUARE}, 'T*F**F***')")
    matcher.add("pair", "S_EQUALS(geometry, home)")
    inside = {"geometry": "POINT(15.5 15.5)", "home": "POINT(45.5 45.5)", "wind": 120}
    assert matcher.match(inside) == ["apart", "both", "either", "in", "pattern"]
    outside = {"geometry": "POINT(5.5 5.5)", "home": "POINT(5.5 5.5)", "kind": "tug"}
    assert matcher.match(outside) == ["apart", "out", "pair"]
    corner = {"geometry": "POINT(20.7 20.7)", "home": None}
    assert matcher.match(corner) == ["either", "near", "pattern"]


# One opinion


THIN = "POLYGON((10.1 20.2, 30.9 20.2, 30.9 20.8, 10.1 20.8, 10.1 20.2))"
MISS = {"geometry": "POINT(30.9 20.5)", "x": 1}  # beside the square, in a cell of its boundary


@pytest.mark.parametrize(
    "filter",
    [
        f"S_WITHIN(geometry, {SQUARE})",
        f"S_WITHIN(geometry, {SQUARE}) AND x = 1",
        f"x = 1 AND NOT S_DISJOINT(geometry, {SQUARE})",
        f"S_INTERSECTS(geometry, {SQUARE}) AND NOT S_DISJOINT(geometry, {SQUARE})",
        f"S_TOUCHES(geometry, {SQUARE}) AND S_WITHIN(geometry, {SQUARE})",
        f"S_TOUCHES(geometry, {THIN}) AND S_WITHIN(geometry, {THIN})",
        f"NOT S_DISJOINT(geometry, {SQUARE})",
    ],
)
def test_a_constraint_has_one_answer_whatever_stands_beside_it(filter: str) -> None:
    """Nothing of it is evaluated exactly, and nothing simplified by exact reasoning."""
    assert matches(filter, MISS)
    assert not matches(filter, MISS, "scan")


@settings(max_examples=60)
@given(geometries(), geometries(), st.sampled_from(sorted(RELATIONS)), st.booleans())
def test_counted_or_evaluated_a_constraint_is_decided_alike(
    event: BaseGeometry, shape: BaseGeometry, name: str, is_negated: bool
) -> None:
    shape = shapely.box(1, 1, 2.5, 3) if name.startswith("eh") else shape
    test = Spatial(RELATIONS[name], Attribute("g"), Literal(shape))
    constraint = Constraint(test, is_negated)
    space = AreaIndex(CellReader(Grid(4, (-1, -1, 5, 5))))
    assert space.take(0, constraint)
    space.freeze()
    subject = Event({"g": event})
    sure, near = space.survey(subject)
    assert not near.size
    counted = 0 in np.concatenate([np.zeros(0, np.int64), *sure]).tolist()
    assert counted == space.is_satisfied(0, constraint, subject)


def test_the_discrete_evaluator_of_crtree_decides_what_is_not_counted_too() -> None:
    region, near = "POLYGON((0 0, 4 0, 0 4, 0 0))", shapely.box(2.05, 2.05, 6, 6)
    options: dict[str, Any] = {"evaluator": "discrete", "universe": (0, 0, 10, 10), "density": 10}
    for filter_ in ("NOT ehDisjoint({0})", "ehMeet({0}) AND NOT ehDisjoint({0})"):
        matcher = Matcher("crtree", simplify=False, **options)
        matcher.add("it", filter_.format(f"geometry, {region}"))
        assert matcher.match({"geometry": near}) == ["it"]
        assert matcher.match({"geometry": shapely.box(4.05, 0, 8, 4)}) == []  # boxes lie apart


# Changes, subscribers, tables


def test_what_is_removed_is_not_found_and_the_others_are() -> None:
    matcher = make()
    for number in range(30):
        relation = ("intersects", "disjoint")[number % 2]
        matcher.add(number, geometry=shapely.box(1.5, 1.5, 3.5 + number, 3.5), relation=relation)
    event = {"geometry": shapely.Point(2.5, 2.5)}
    far = {"geometry": shapely.Point(60.5, 60.5)}
    assert matcher.match(event) == list(range(0, 30, 2))
    assert matcher.match(far) == list(range(1, 30, 2))
    for number in (0, 1, 2, 3, 4):
        matcher.remove(number)
    assert matcher.match(event) == list(range(6, 30, 2))
    assert matcher.match(far) == list(range(5, 30, 2))
    matcher.add(0, geometry=shapely.box(1.5, 1.5, 9.5, 9.5))
    assert matcher.match(event)[0] == 0


def test_a_removal_leaves_the_former_index_as_it_was() -> None:
    shapes = [shapely.box(1.5, 1.5, 3.5 + i, 3.5) for i in range(4)]
    tests = [
        Spatial(RELATIONS[("intersects", "disjoint")[i % 2]], Attribute("g"), Literal(shape))
        for i, shape in enumerate(shapes)
    ]
    subscriptions = [
        Subscription(i, Predicate(test, (Filter((Constraint(test),)),)))
        for i, test in enumerate(tests)
    ]
    index = ForwardingIndex(
        pack_subscriptions(subscriptions), AreaIndex(CellReader(Grid(6, UNIVERSE)))
    )
    fewer = index.without([0, 1])
    for x, expected in ((2.5, [0, 2]), (60.5, [1, 3])):
        event = Event({"g": shapely.Point(x, 2.5)})
        assert sorted(index.find(event, np.arange(4)).tolist()) == expected
        left = fewer.find(event, np.array([-1, -1, 2, 3])).tolist()
        assert left == expected[1:]


def test_subscribers_are_found_once_each() -> None:
    matcher = make()
    for number in range(6):
        matcher.add(
            number, geometry=shapely.box(1.5, 1.5, 20.5, 20.5 + number), subscriber="ab"[number % 2]
        )
    assert matcher.subscribers({"geometry": "POINT(5.5 5.5)"}) == ["a", "b"]
    assert matcher.subscribers({"geometry": "POINT(60.5 60.5)"}) == []


def test_a_table_is_matched_as_its_rows_are() -> None:
    rng = np.random.default_rng(5)
    matcher = make()
    for number in range(50):
        shape = well_separated(rng)
        matcher.add(number, geometry=shape, relation=OGC[number % len(OGC)])
    shapes = [well_separated(rng) for _ in range(60)]
    events = [{"id": i, "geometry": shape} for i, shape in enumerate(shapes)]
    table = pa.table({"geometry": [shapely.to_wkb(shape) for shape in shapes]})
    expected = [(e["id"], s) for e in events for s in matcher.match(e)]
    for found in (matcher.match_many(table), matcher.match_many(events)):
        assert [(row["event"], row["subscription"]) for row in found.to_pylist()] == expected


def test_equal_geometries_are_stored_once_and_stats_count_cells() -> None:
    matcher = make()
    for number in range(20):
        matcher.add(number, f"S_WITHIN(geometry, {SQUARE}) AND x > {number}")
    stats = matcher.stats()
    assert matcher.match({"geometry": "POINT(15.5 15.5)", "x": 3}) == [0, 1, 2]
    assert stats["cells"] == stats["postings"] > 0


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 0}, "level must be a number from 1 to 26, not 0"),
        ({"level": 27}, "not 27"),
        ({"level": "fine"}, "not 'fine'"),
        ({"universe": (1, 1, 0, 0)}, r"universe \(1.0, 1.0, 0.0, 0.0\)"),
        ({"universe": 7}, "universe must be west, south, east, north, not 7"),
        ({"density": 3}, "no option 'density'; it has: level, universe"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_with_its_value(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        Matcher("ahs", **options)


def test_a_subscription_of_too_many_cells_is_refused_and_changes_nothing() -> None:
    matcher = Matcher("ahs", level=26)
    with pytest.raises(InvalidInput, match=r"subscription 'wide'.*cells of level 26.*lower level"):
        matcher.add("wide", geometry="POLYGON((0 0, 90 0, 90 45, 0 45, 0 0))")
    assert len(matcher) == 0
    matcher.add("narrow", geometry="POINT(1 1)")
    with pytest.raises(InvalidInput, match="lower level"):
        matcher.match({"geometry": "POLYGON((0 0, 90 0, 90 45, 0 45, 0 0))"})


def test_an_event_of_too_many_cells_is_a_bad_event_and_named() -> None:
    matcher = Matcher("ahs", level=26)
    matcher.add("a", geometry=shapely.Point(1, 1))
    long = shapely.LineString([(-100, -50), (100, 50)])
    with pytest.raises(InvalidInput, match=r"'geometry'.*runs through about .* cells of level 26"):
        matcher.match({"geometry": long})
    events = pa.table({"id": [7, 8], "geometry": shapely.to_wkb([long, shapely.Point(1, 1)])})
    heard: list[tuple[int, Any, str]] = []
    found = matcher.match_many(events, quarantine=True, on_bad=lambda *bad: heard.append(bad))
    assert found["event"].to_pylist() == [8]
    assert [(row, id_) for row, id_, _ in heard] == [(0, 7)]
    with pytest.raises(InvalidInput, match=r"row 0, column 'geometry'.*runs through"):
        matcher.match_many(events)
