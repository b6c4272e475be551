"""Geometries and constraints of an index are no business of the garbage collector."""

import gc
import weakref
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada import Matcher
from contrada.collecting import untrack


def test_what_is_not_tracked_goes_when_nobody_needs_it() -> None:
    point = shapely.Point(1, 1)
    gone = weakref.ref(point)
    assert gc.is_tracked(point)
    untrack([point, 5, "text", point])
    assert not gc.is_tracked(point)
    assert point.equals(shapely.Point(1, 1))
    del point
    assert gone() is None


def test_the_collector_does_not_walk_over_an_index() -> None:
    west: Any = np.arange(3_000)
    boxes: Any = shapely.box(west, 0, west + 1, 1)
    table = pa.table({"geometry": shapely.to_wkb(boxes)})
    del boxes
    gc.collect()
    before = sum(isinstance(each, shapely.Polygon) for each in gc.get_objects())
    matcher = Matcher()
    matcher.add_many(table)
    lines: Any = [shapely.LineString([(i, 0.5), (i + 0.5, 0.6)]) for i in range(60)]
    assert matcher.match_many(pa.table({"geometry": shapely.to_wkb(lines)})).num_rows >= 60
    gc.collect()
    after = sum(isinstance(each, shapely.Polygon) for each in gc.get_objects())
    assert after - before < 100


@pytest.mark.parametrize("engine", ["crtree", "ahs"])
def test_the_collector_does_not_walk_over_constraints(engine: str) -> None:
    west: Any = np.arange(600)
    filters = [
        *(f"S_WITHIN(geometry, BBOX({x}, 0, {x + 1}, 1))" for x in west.tolist()),
        *(f"name = 'n{x}'" for x in west.tolist()),
        *(f"name LIKE 'n{x}%'" for x in west.tolist()),
        *(f"name <> 'n{x}'" for x in west.tolist()),
        *(f"speed > {x}" for x in west.tolist()),
    ]
    matcher = Matcher(engine)
    matcher.add_many(pa.table({"filter": filters}))
    gc.collect()
    before = len(gc.get_objects())
    assert matcher.match({"name": "n7", "speed": 1.5}) != []
    gc.collect()
    assert len(gc.get_objects()) - before < 1_000
