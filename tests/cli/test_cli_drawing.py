"""What a map keeps of a run: a sample of events, and no more pairs than it may."""

import pyarrow as pa
import pytest
import shapely

from contrada.cli import drawing
from contrada.cli.drawing import MapSketch
from contrada.matching.columns import read_geometries


def make_sketch(ids: pa.Array, expected_count: int | None = None) -> MapSketch:
    sketch = MapSketch(expected_count)
    points = shapely.to_wkb(shapely.points([(i, i) for i in range(len(ids))]))
    column = read_geometries(pa.array(points, pa.binary()), repair=False)
    sketch.add_events(ids, 0, column)
    return sketch


@pytest.mark.parametrize("ids", [["x", "y", "x", "z"], [2**60, 2**60 + 1, 2**60, 5]])
def test_a_pair_is_kept_with_the_first_row_of_its_event(ids: list[str | int]) -> None:
    x, y, _, z = ids
    sketch = make_sketch(pa.array(ids))
    subscriptions = pa.array(["a", "b", "c"]).dictionary_encode()
    sketch.add_pairs(pa.array([z, x, y]), subscriptions)
    assert sketch._pairs == [(3, "a"), (0, "b"), (1, "c")]


def test_pairs_of_events_outside_the_sample_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "EVENTS_MAX", 5)
    sketch = make_sketch(pa.array(range(10)), 10)
    sketch.add_pairs(pa.array([0, 1, 2, 3, 4, 99]), pa.array(range(6)))
    assert sketch._pairs == [(0, 0), (1, 2), (2, 4)]


def test_no_batch_brings_more_pairs_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "_PAIRS_MAX", 7)
    sketch = make_sketch(pa.array(range(3)))
    for _ in range(3):
        sketch.add_pairs(pa.array([9, 0, 1, 2, 0]), pa.array(["v", "w", "x", "y", "z"]))
    assert sketch._pairs == [
        *[(0, "w"), (1, "x"), (2, "y"), (0, "z")],
        *[(0, "w"), (1, "x"), (2, "y")],
    ]
