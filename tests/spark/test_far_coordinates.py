"""Where events and subscriptions go that lie farther away than products of numbers reach."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

from contrada import Matcher
from contrada.matcher.inside import freeze
from contrada.matching.anchors import find_anchors, list_anchors
from contrada.matching.columns import read_geometries
from contrada.matching.grid import Grid
from contrada.matching.lookup import LookupTable, Weights, make_lookup_table
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.geometry import as_array
from contrada.spark.evaluators import EXACT
from contrada.spark.partition_tasks import CellCountTask, select_prefixes
from contrada.spark.partitioned import PARTITION_LEVEL, choose_universe
from contrada.spark.routing import Router

FAR = [1e-320, 1e-200, 1e-9, 1.0, 180.0, 1e7, 1e20, 1e98, 1e100, 1e150, 1e200, 1e300, 1.7e308]
COORDINATES = [0.0, *FAR, *(-x for x in FAR)]
places = st.tuples(st.sampled_from(COORDINATES), st.sampled_from(COORDINATES))


@st.composite
def shapes(draw: st.DrawFn) -> BaseGeometry:
    """A point, a line, a box or a triangle between places near and far."""
    corners = sorted(set(draw(st.lists(places, min_size=1, max_size=3))))
    if len(corners) == 1:
        return shapely.Point(corners[0])
    if len(corners) == 2:
        (west, south), (east, north) = corners
        is_box = west < east and south != north and draw(st.booleans())
        return shapely.box(west, south, east, north) if is_box else shapely.LineString(corners)
    with np.errstate(all="ignore"):
        triangle = shapely.Polygon(corners)
        return triangle if triangle.is_valid else shapely.LineString(corners)


def divide(matcher: Matcher) -> LookupTable:
    """Divide space as the plan does, as finely as it can."""
    anchors = [shape for s in freeze(matcher) for _, shape in find_anchors(s) or ()]
    bounds = shapely.total_bounds(as_array(anchors)).tolist() if anchors else None
    universe = choose_universe(bounds)
    task = CellCountTask("", PARTITION_LEVEL, universe, EXACT)
    counted = task._count(as_array(anchors)).to_pydict()
    codes, counts = np.array(counted["code"], np.int64), np.array(counted["n"], float)
    return make_lookup_table(universe, Weights(PARTITION_LEVEL, codes, counts), 8, theta=0.5)


def lists(starts: Any, values: Any) -> list[set[int]]:
    return [set(values[start:end].tolist()) for start, end in pairwise(starts.tolist())]


@settings(max_examples=40)
@given(st.lists(shapes(), min_size=1, max_size=4), st.lists(shapes(), min_size=1, max_size=4))
def test_what_matches_has_a_prefix_in_common_however_far_it_lies(
    subscribed: list[BaseGeometry], published: list[BaseGeometry]
) -> None:
    matcher = Matcher()
    for number, shape in enumerate(subscribed):
        matcher.add(number, geometry=shape)
    table = divide(matcher)
    ordered = pack_subscriptions(sorted(freeze(matcher), key=lambda s: s.id))
    anchors = list_anchors(ordered)
    held = select_prefixes(anchors, table, len(ordered))
    column = read_geometries(pa.array([shape.wkb for shape in published]))
    router = Router(table, is_bounded=False)
    owners, prefixes = router.prefixes(column, np.arange(len(published)))
    visited = [set(prefixes[owners == row].tolist()) for row in range(len(published))]
    homes = lists(held.list_starts, held.prefixes)
    anchored = {s.id for s in freeze(matcher) if find_anchors(s) is not None}
    for row, shape in enumerate(published):
        for id_ in matcher.match({"geometry": shape}):
            assert id_ not in anchored or visited[row] & homes[int(id_)]


@pytest.mark.parametrize(
    "bounds",
    [
        (1e300, 1e300, 1e300, 1e300),
        (-1e308, -1e308, 1e308, 1e308),
        (0, 0, 1e-300, 1e-300),
        (5, 5, 5, 5),
        (1e17, 0, 1e17, 10),
        None,
    ],
)
def test_any_bounds_have_a_universe(bounds: tuple[float, float, float, float] | None) -> None:
    west, south, east, north = choose_universe(bounds)
    assert west < east
    assert south < north
    Grid(PARTITION_LEVEL, (west, south, east, north))  # which refuses what it cannot divide
