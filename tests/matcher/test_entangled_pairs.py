"""Two geometries that meet at very many places are not related, by any engine; others are."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from shapely import LineString, Polygon
from shapely.geometry.base import BaseGeometry

import contrada
from contrada import InvalidInput, Matcher
from contrada.limits import PAIR_CONTACTS_MAX
from contrada.matching import meeting_trees
from contrada.matching.strtree import anchor_trees
from contrada.model import contact, crossings
from contrada.model.crossings import are_entangled
from contrada.model.geometry import as_array

ENGINES = ["scan", "strtree", "crtree"]
SECONDS = 20  # the combs take minutes without a limit


def comb(teeth: int, *, is_turned: bool = False) -> Polygon:
    """A valid polygon with long teeth; two of them, one turned, cross at every tooth."""
    sides = ((0, 0), (0, teeth + 1), (0.5, teeth + 1), (0.5, 0))
    xy = [(x + step, y) for x in range(teeth) for step, y in sides]
    outline = np.array([(-1, 0), *xy, (teeth, 0), (teeth, -1), (-1, -1)], float)
    return Polygon(outline[:, ::-1] - 0.25 if is_turned else outline)


def zigzag(vertices: int) -> LineString:
    return LineString([(i % 2 * 10, 0) for i in range(vertices)])


PAIRS = {
    "combs": (comb(1_000), comb(1_000, is_turned=True)),
    "zigzags": (zigzag(500), zigzag(501)),
}


def answers(engine: str, relation: str, one: Any, other: Any) -> list[list[Any]]:
    """What is found of an event: alone, negated, in a table, and of two attributes."""
    matcher = Matcher(engine)
    matcher.add("plain", geometry=one, relation=relation.removeprefix("s_"))
    literal = {"op": relation, "args": [{"property": "geometry"}, shapely.geometry.mapping(one)]}
    matcher.add("not", {"op": "not", "args": [literal]})
    matcher.add("two", {"op": relation, "args": [{"property": "a"}, {"property": "b"}]})
    event = {"geometry": other, "a": other, "b": one}
    table = pa.table({name: [shape.wkb] for name, shape in event.items()})
    return [matcher.match(event), matcher.match_many(table).column("subscription").to_pylist()]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("engine", ENGINES)
def test_no_relation_of_an_entangled_pair_costs_much_or_differs(engine: str, pair: str) -> None:
    one, other = PAIRS[pair]
    names = {"combs": ["s_overlaps", "ehOverlap"], "zigzags": ["s_touches"]}
    started = time.monotonic()
    for relation in names[pair]:
        assert answers(engine, relation, one, other) == [[], []]
    assert answers(engine, "s_intersects", one, other) == [["plain", "two"]] * 2
    assert time.monotonic() - started < SECONDS


def test_why_and_relate_say_what_they_can() -> None:
    one, other = PAIRS["combs"]
    matcher = Matcher()
    matcher.add("s", geometry=one, relation="overlaps")
    matcher.add("not", f"NOT ({matcher.get('s').text})")
    for key in ("s", "not"):
        why = matcher.why(key, {"geometry": other})
        assert why.value is None
        assert "DE-9IM" not in str(why)
        assert "not decided: PAIR_CONTACTS_MAX, PAIR_BOXES_MAX, PAIR_PARTS_MAX" in str(why)
        assert "PAIR_CONTACTS_MAX" in why._repr_html_()
    with pytest.raises(InvalidInput, match=r"200,000 or 8,000,000 times \(PAIR_CONTACTS_MAX"):
        contrada.relate(one, other)


def test_two_outlines_of_one_coast_are_related() -> None:
    angles = np.linspace(0, 2 * np.pi, 60_000, endpoint=False)
    coast = Polygon(np.column_stack([np.cos(angles), np.sin(angles)]))
    assert coast.area > 3
    assert not are_entangled(as_array([coast]), as_array([coast]))[0]
    assert contrada.relate(coast, Polygon(coast)) is contrada.Relation.EQUALS


@pytest.mark.parametrize(("teeth", "is_too_much"), [(60, False), (400, True)])
def test_what_counts_are_contacts(teeth: int, is_too_much: bool) -> None:
    one, other = as_array([comb(teeth)]), as_array([comb(teeth, is_turned=True)])
    assert are_entangled(one, other)[0] == is_too_much
    apart = shapely.transform(other, lambda xy: xy + np.array([2.0 * teeth, 0]))
    assert not are_entangled(one, apart)[0]
    assert teeth**2 * 4 > PAIR_CONTACTS_MAX or not is_too_much


@pytest.mark.parametrize(("lines", "is_too_much"), [(1_000, False), (3_000, True)])
def test_edges_that_only_come_near_count_by_their_boxes(lines: int, is_too_much: bool) -> None:
    def hatch(offset: float) -> shapely.MultiLineString:
        slants = [[(x + offset, 0), (x + offset + lines, lines)] for x in range(lines)]
        return shapely.MultiLineString(slants)

    assert are_entangled(as_array([hatch(0)]), as_array([hatch(0.5)]))[0] == is_too_much


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", [shapely.multipolygons, shapely.geometrycollections])
def test_relations_of_very_many_parts_are_unknown(
    engine: str, make: Callable[..., BaseGeometry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """GEOS compares each part with each; below the limit the relation is decided."""
    x, y = np.divmod(np.arange(900), 30)
    parts = make(shapely.box(2 * x, 2 * y, 2 * x + 1, 2 * y + 1))
    matcher = Matcher(engine)
    for relation in ("equals", "intersects"):
        matcher.add(relation, geometry=parts, relation=relation)
    assert matcher.match({"geometry": parts}) == ["equals", "intersects"]
    for limit in ("PAIR_PARTS_MAX", "PAIR_MEMBERS_MAX"):
        monkeypatch.setattr(crossings, limit, 900 * 900 - 1)
    assert matcher.match({"geometry": parts}) == ["intersects"]
    assert matcher.why("equals", {"geometry": parts}).value is None


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_knows_no_more_of_many_parts_than_whether_they_meet(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crossings, "PAIR_PARTS_MAX", 100)
    x, y = np.divmod(np.arange(400), 20)
    one, other = (
        shapely.multipolygons(shapely.box(x + shift, y + shift, x + shift + 0.2, y + shift + 0.2))
        for shift in (0, 0.5)
    )
    matcher = Matcher(engine)
    texts = {"apart": "ehDisjoint", "not apart": "NOT ehDisjoint", "not meeting": "NOT ehMeet"}
    for name, relation in texts.items():
        matcher.add(name, f"{relation}(g, {shapely.to_wkt(one)})")
    assert matcher.match({"g": other}) == ["apart"]  # which one contact would decide
    assert matcher.match({"g": one}) == ["not apart"]
    assert matcher.match({"g": shapely.box(50, 50, 51, 51)}) == ["apart", "not meeting"]


def circling(shift: float) -> LineString:
    """A line round and round its beginning; the boxes of its slanting edges meet very often."""
    angles = np.arange(400) * np.pi / 2
    away = 10 + np.arange(400) + shift
    return LineString(np.column_stack([away * np.cos(angles), away * np.sin(angles)]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["lines", "areas"])
def test_every_engine_knows_as_little_of_whether_two_large_geometries_meet(
    engine: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one: BaseGeometry = circling(0)
    other: BaseGeometry = circling(2)
    if kind == "areas":
        one, other = (line.buffer(0.1, quad_segs=1) for line in (one, other))
    monkeypatch.setattr(contact, "_are_dense", lambda *_: True)
    for module in (contact, meeting_trees, anchor_trees):
        monkeypatch.setattr(module, "PLAIN_VERTICES_MAX", 1_000)
    for limit, decided in ((2_000_000, True), (1_000, False)):
        monkeypatch.setattr(contact, "CONTACT_PAIRS_MAX", limit)
        for relation, holds in (("s_intersects", False), ("s_disjoint", True)):
            expected = (["plain", "two"] if holds else ["not"]) if decided else []
            assert answers(engine, relation, one, other) == [expected, expected]
    matcher = Matcher(engine)
    matcher.add("s", geometry=one)
    assert "CONTACT_PAIRS_MAX" in str(matcher.why("s", {"geometry": other}))
    assert matcher.match_many([{"geometry": other}] * 40).num_rows == 0
    monkeypatch.undo()
    assert matcher.match_many([{"geometry": one}] * 40).num_rows == 40
