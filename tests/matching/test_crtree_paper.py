"""The CR-tree paper's own examples and tables, and a counter-example for each correction."""

import pytest
import shapely
from shapely import Polygon
from shapely.geometry.base import BaseGeometry

from contrada import InvalidInput, Matcher, Relation, relate
from contrada.kernels.discretising import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    MEETS,
    OVERLAPS,
    find_relation,
)
from contrada.language import make_predicate, read
from contrada.matching.engine import Index
from contrada.matching.forwarding import ForwardingIndex, effort_of
from contrada.matching.simplify import simplify
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.expression import Attribute, Literal, Spatial
from contrada.model.relation import RELATIONS
from contrada.model.subscription import Constraint, Filter, Predicate, Subscription
from strategies import build, place, seeded_pick

# Figure 1, with the rest of the region that the paper does not print.
LEAK = {
    "warning": "hazardous leak",
    "area": "POLYGON((23.1 10.9, 30.3 27.0, 48.0 19.0, 40.0 8.0, 23.1 10.9))",
    "concentration": 172,
    "hazard": 4,
}
SQUARE = shapely.box(0, 0, 4, 4)
DISK, PLUG = shapely.box(0, 0, 4, 4), shapely.box(1, 1, 3, 3)
ANNULUS = Polygon(DISK.exterior, [PLUG.exterior])
# Table 1, in the order of its columns: a pair for each relation, and the paper's four intersections
# (boundary/boundary, boundary/interior, interior/boundary, boundary/exterior).
TABLE_1 = [
    (DISJOINT, shapely.box(6, 0, 8, 2), (0, 0, 0, 1)),
    (MEETS, shapely.box(4, 0, 6, 4), (1, 0, 0, 1)),
    (OVERLAPS, shapely.box(2, 2, 6, 6), (1, 1, 1, 1)),
    (EQUALS, shapely.box(0, 0, 4, 4), (1, 0, 0, 0)),
    (INSIDE, shapely.box(1, 1, 3, 3), (0, 1, 0, 0)),
    (CONTAINS, shapely.box(-1, -1, 5, 5), (0, 0, 1, 1)),
    (COVERS, shapely.box(0, 0, 5, 5), (1, 0, 1, 1)),
    (COVERED_BY, shapely.box(0, 0, 2, 2), (1, 1, 0, 0)),
]
NAMES = "disjoint meets overlaps equals inside contains covers coveredBy".split()


@pytest.mark.parametrize("engine", ["crtree", "strtree", "scan"])
def test_the_message_of_figure_1_is_forwarded_through_interface_2_of_figure_3(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("f1.1", "stock = 'MTK' AND price < 100", subscriber="I1")
    matcher.add("f1.2", "stock = 'DYS' AND price > 200 AND bubble = TRUE", subscriber="I1")
    matcher.add(
        "f2.1",
        "ehOverlap(cloud, POLYGON((10 5, 7 12, 12 14, 10 5))) AND pressure < 1000",
        subscriber="I2",
    )
    matcher.add(
        "f2.2",
        "warning = 'hazardous leak' AND ehDisjoint(area, POLYGON((3 2, 15 40, 5 30, 3 2))) "
        "AND concentration > 100 AND hazard > 3",
        subscriber="I2",
    )
    assert matcher.match(LEAK) == ["f2.2"]
    assert matcher.subscribers(LEAK) == ["I2"]


@pytest.mark.parametrize(("code", "region", "intersections"), TABLE_1)
def test_table_1_tells_the_relations_apart(
    code: int, region: BaseGeometry, intersections: tuple[int, ...]
) -> None:
    matrix = str(shapely.relate(region, SQUARE))
    assert tuple(int(matrix[i] != "F") for i in (4, 3, 1, 5)) == intersections
    assert str(relate(region, SQUARE)) == NAMES[code]


@pytest.mark.parametrize(("code", "region", "intersections"), TABLE_1)
@pytest.mark.parametrize("density", [5.0, 50.0])
def test_algorithm_1_finds_the_relations_of_table_1_either_way_round(
    code: int, region: BaseGeometry, intersections: tuple[int, ...], density: float
) -> None:
    a, b = (shapely.get_coordinates(shape) for shape in (region, SQUARE))
    assert find_relation(a, b, density, True) == code
    converse = {INSIDE: CONTAINS, CONTAINS: INSIDE, COVERS: COVERED_BY, COVERED_BY: COVERS}
    assert find_relation(b, a, density, True) == converse.get(code, code)


def matches(
    event: BaseGeometry, relation: Relation, region: BaseGeometry, **options: object
) -> bool:
    matcher = Matcher("crtree", **options)  # type: ignore[arg-type]
    matcher.add("it", geometry=region, relation=relation)
    return matcher.match({"geometry": event}) == ["it"]


def test_what_leans_on_the_wall_of_a_notch_is_found_though_its_box_lies_strictly_inside() -> None:
    notched = Polygon([(0, 0), (10, 0), (10, 10), (6, 10), (6, 4), (4, 4), (4, 10), (0, 10)])
    square = shapely.box(2, 5, 4, 7)  # its right side lies on the wall at x = 4
    assert matches(square, Relation.COVERED_BY, notched)
    assert matches(notched, Relation.COVERS, square)


def test_two_pairs_of_opposite_corners_have_equal_boxes_and_are_disjoint() -> None:
    rising = shapely.union_all([shapely.box(0, 0, 1, 1), shapely.box(9, 9, 10, 10)])
    falling = shapely.union_all([shapely.box(0, 9, 1, 10), shapely.box(9, 0, 10, 1)])
    assert rising.bounds == falling.bounds
    assert matches(rising, Relation.DISJOINT, falling)


def test_what_is_covered_by_a_may_be_disjoint_from_b_though_a_overlaps_b() -> None:
    a, b = shapely.box(0, 0, 4, 4), shapely.box(3, 0, 8, 4)
    matcher = Matcher("crtree")
    matcher.add("it", f"ehCoveredBy(geometry, {a.wkt}) AND ehDisjoint(geometry, {b.wkt})")
    assert matcher.match({"geometry": shapely.box(0, 0, 2, 2)}) == ["it"]
    assert matcher.match({"geometry": shapely.box(0, 0, 3.5, 2)}) == []


def test_an_annulus_and_its_plug_meet_and_the_annulus_is_covered_by_the_disk() -> None:
    assert shapely.relate(ANNULUS, PLUG) == "FF2F112F2"  # not the pattern of the meets of disks
    assert relate(ANNULUS, PLUG) is Relation.MEETS
    assert shapely.relate(DISK, ANNULUS) == "212F1FFF2"  # nor that of covers
    assert relate(DISK, ANNULUS) is Relation.COVERS


def test_no_conflict_is_claimed_where_only_these_regions_exclude_each_other() -> None:
    """What meets the plug meets the annulus or more, which no composition of relations tells."""
    predicate = make_predicate(read(f"ehMeet(g, {PLUG.wkt}) AND ehDisjoint(g, {ANNULUS.wkt})"))
    assert simplify(predicate, effort_of) == (predicate, ())
    without_hole = f"ehMeet(g, {PLUG.wkt}) AND ehDisjoint(g, {DISK.wkt})"
    assert simplify(make_predicate(read(without_hole)), effort_of)[0].filters == ()
    for seed in range(300):
        shape = place(build(seeded_pick(seed), "area"), (seed % 5 - 1.0, seed % 7 - 1.0), 1.0)
        if relate(shape, PLUG) is Relation.MEETS:
            assert relate(shape, ANNULUS) is not Relation.DISJOINT


def test_regions_a_hair_apart_meet_for_the_discrete_evaluator_and_are_disjoint_in_truth() -> None:
    low = Polygon([(0, 0), (4, 0), (0, 4)])
    high = Polygon([(4.02, 4.02), (0.02, 4.02), (4.02, 0.02)])  # 0.028 away along the diagonal
    coarse = {"evaluator": "discrete", "universe": (0, 0, 10, 10), "density": 200.0}
    assert matches(high, Relation.DISJOINT, low)
    assert not matches(high, Relation.MEETS, low)
    assert matches(high, Relation.MEETS, low, **coarse)
    assert not matches(high, Relation.DISJOINT, low, **coarse)
    assert matches(high, Relation.DISJOINT, low, **{**coarse, "density": 2_000.0})


def test_a_region_that_covers_a_hole_overlaps_and_the_discrete_evaluator_refuses_holes() -> None:
    ring = Polygon([(0, 0), (10, 0), (10, 10), (0, 10)], [[(4, 4), (6, 4), (6, 6), (4, 6)]])
    patch = shapely.box(3, 3, 7, 7)
    assert matches(patch, Relation.OVERLAPS, ring)
    with pytest.raises(InvalidInput, match="one part without holes"):
        matches(patch, Relation.OVERLAPS, ring, evaluator="discrete")
    with pytest.raises(InvalidInput, match="one part without holes"):
        matches(ring, Relation.OVERLAPS, patch, evaluator="discrete")


def test_the_discrete_evaluator_decides_plain_regions_and_leaves_points_to_the_exact_one() -> None:
    options = {"evaluator": "discrete", "universe": (0, 0, 10, 10), "density": 2_000.0}
    for code, region, _ in TABLE_1:
        assert matches(region, Relation(NAMES[code]), SQUARE, **options)
    matcher = Matcher("crtree", evaluator="discrete")
    matcher.add("in", geometry=SQUARE, relation="within")
    assert matcher.match({"geometry": shapely.Point(1, 1)}) == ["in"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluator": "guess"}, "unknown evaluator 'guess'"),
        ({"split": "linear"}, "unknown split 'linear'"),
        ({"density": -1.0, "evaluator": "discrete"}, "density must be .* not -1"),
        ({"universe": (1, 1, 0, 0), "evaluator": "discrete"}, "universe"),
        ({"sharpness": 3}, "no option 'sharpness'; it has: evaluator"),
    ],
)
def test_an_option_that_the_engine_does_not_have_is_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        Matcher("crtree", **options)  # type: ignore[arg-type]


def test_removing_a_subscription_deletes_its_constraint_from_the_tree_and_no_other() -> None:
    shapes = [shapely.box(i, i, i + 2, i + 2) for i in range(30)]
    subscriptions = [subscription(i, shape) for i, shape in enumerate([*shapes, shapes[0]])]
    index = ForwardingIndex(pack_subscriptions(subscriptions))
    fewer = index.without([0, 5])
    assert items_of(index) == set(range(30))
    assert items_of(fewer) == set(range(30)) - {5}  # subscription 30 wants the first shape too
    one_fewer = fewer.without([7])  # a single one waits until others go with it
    assert items_of(one_fewer) == set(range(30)) - {5}
    assert items_of(one_fewer.without([9])) == set(range(30)) - {5, 7, 9}


def subscription(number: int, shape: BaseGeometry) -> Subscription:
    test = Spatial(RELATIONS["within"], Attribute("g"), Literal(shape))
    return Subscription(number, Predicate(test, (Filter((Constraint(test),)),)))


def items_of(index: Index) -> set[int]:
    assert isinstance(index, ForwardingIndex)
    (count, level, _, child, _, _), state = index.trees()["g"].arrays
    items, pending = set(), [int(state[0])]
    while pending:
        node = pending.pop()
        entries = child[node, : count[node]].tolist()
        if level[node] == 0:
            items |= set(entries)
        else:
            pending += entries
    return items
