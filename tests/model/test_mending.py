"""Invalid geometries made valid, or left alone where that would take too long."""

import numpy as np
import pytest
import shapely
from shapely.geometry.base import BaseGeometry

from contrada import InvalidInput, Matcher
from contrada.model.geometry import Fault, find_faults
from contrada.model.mending import mend


def square(x: float, y: float, side: float) -> shapely.Polygon:
    return shapely.box(x, y, x + side, y + side)


def tangle(vertices: int) -> shapely.Polygon:
    return shapely.Polygon(np.random.default_rng(7).random((vertices, 2)))


def message_of(shape: BaseGeometry) -> str:
    fault = mend(shape)
    assert isinstance(fault, Fault)
    assert fault.code == "unmendable"
    return fault.message


def test_a_ring_that_crosses_itself_too_often_is_not_mended() -> None:
    for vertices in (700, 20_000):
        assert message_of(tangle(vertices)) == (
            "invalid Polygon, and too complex to repair: it has more than 1,000 crossings of its "
            "edges (MEND_CROSSINGS_MAX)"
        )
    assert isinstance(mend(tangle(40)), shapely.MultiPolygon)


def test_a_ring_that_touches_itself_too_often_is_not_mended() -> None:
    random = np.random.default_rng(3)
    line = shapely.Polygon(np.stack([random.random(800), np.zeros(800)], axis=1))
    turns = np.linspace(0, 2 * np.pi, 2_000, endpoint=False)
    tips = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    petals = shapely.Polygon(np.insert(tips, np.arange(0, 2_000, 2), 0.0, axis=0))
    for shape in (line, petals):
        assert message_of(shape).endswith("50,000 contacts of its edges (MEND_CONTACTS_MAX)")
    tiles = [square(i % 30, i // 30, 1) for i in range(500)]
    assert isinstance(mend(shapely.MultiPolygon(tiles)), BaseGeometry)
    spike = shapely.Polygon([(0, 0), (4, 0), (4, 4), (4, 8), (4, 4), (0, 4)])
    assert isinstance(mend(spike), BaseGeometry)


def test_parts_that_lie_in_each_other_too_often_are_not_mended() -> None:
    for step in (0, 1):
        parts = [square(step * i, step * i, 4000 - 2 * step * i) for i in range(1_000)]
        assert message_of(shapely.MultiPolygon(parts)) == (
            "invalid MultiPolygon, and too complex to repair: it has more than 200,000 pairs of "
            "rings that may lie inside each other (MEND_NESTINGS_MAX)"
        )


def test_edges_that_may_cross_too_often_are_not_looked_at_for_ever() -> None:
    teeth = np.arange(4_000)
    comb = np.stack([teeth % 2 + teeth * 1e-6, teeth % 2 - teeth * 1e-6], axis=1)
    assert message_of(shapely.Polygon([*comb, (5, 0), (5, 5), (0, 0)])).endswith(
        "pairs of edges that may cross (MEND_PAIRS_MAX)"
    )


def test_many_islands_and_many_holes_are_mended() -> None:
    islands = [square(2 * (i % 70), 2 * (i // 70), 1) for i in range(3_000)]
    sea = shapely.MultiPolygon([*islands, square(0.5, 0.5, 1)])
    lakes = shapely.Polygon(square(-1, -1, 200).exterior, [p.exterior for p in sea.geoms])
    for shape in (sea, lakes):
        mended = mend(shape)
        assert not isinstance(mended, Fault)
        assert not find_faults(np.array([mended], object))


def test_a_polygon_that_falls_into_too_many_faces_is_not_mended() -> None:
    board = [square(i % 80, i // 80, 1).exterior for i in range(6_400) if (i + i // 80) % 2]
    outside = [square(100 + 2 * i, 0, 1).exterior for i in range(3_000)]
    inside = [square(2 * (i % 110), 2 * (i // 110), 1).exterior for i in range(11_000)]
    shell = square(-1, -1, 300).exterior
    shapes = {
        "MEND_TOUCHES_MAX": shapely.Polygon(square(0, 0, 80).exterior, board),
        "MEND_STRAYS_MAX": shapely.Polygon(square(0, 0, 80).exterior, outside),
        "MEND_RINGS_MAX": shapely.Polygon(shell, [*inside, square(0.5, 0.5, 1).exterior]),
    }
    for limit, shape in shapes.items():
        far = square(1e5, 1e5, 1)
        for whole in (shape, shapely.MultiPolygon([far, shape])):
            assert message_of(whole).endswith(f"({limit})")


def test_what_is_not_mended_is_set_aside_with_the_reason() -> None:
    matcher = Matcher()
    matcher.add("here", "S_INTERSECTS(geometry, BBOX(0, 0, 1, 1))")
    with pytest.raises(InvalidInput, match=r"attribute .geometry.: .*MEND_CROSSINGS_MAX"):
        matcher.match({"geometry": tangle(700)}, repair=True)
    bad: list[tuple[int, str]] = []
    events = [{"geometry": tangle(700).wkt}, {"geometry": "POINT(0.5 0.5)"}]
    found = matcher.match_many(
        events, repair=True, on_bad=lambda row, _, reason: bad.append((row, reason))
    )
    assert found.column("event").to_pylist() == [1]
    assert [row for row, _ in bad] == [0]
    assert "MEND_CROSSINGS_MAX" in bad[0][1]
