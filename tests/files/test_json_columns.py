"""Objects written column by column are those that Python would write."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.files.json_columns import JsonPieces


def write(columns: dict[str, pa.Array], *shapes: str) -> list[Any]:
    pieces = JsonPieces(len(next(iter(columns.values()))))
    pieces.add_object(columns.items(), shapes)
    return [json.loads(text) for text in pieces.join().to_pylist()]


def test_every_type_is_written_as_json_has_it() -> None:
    moment = datetime(2026, 11, 18, 8, 0, 0, 250_000, UTC)
    columns = {
        "text": pa.array(["a", None]),
        "coded": pa.array(["a", None]).dictionary_encode(),
        "whole": pa.array([2**63 - 1, None]),
        "number": pa.array([0.1, float("nan")]),
        "single": pa.array([0.5, None], pa.float32()),
        "truth": pa.array([True, None]),
        "moment": pa.array([moment, None], pa.timestamp("us", "UTC")),
        "day": pa.array([date(2026, 11, 18), None]),
        "decimal": pa.array([Decimal("1.50"), None]),
        "list": pa.array([[1, None], None]),
        "struct": pa.array([{"a": 1.5}, None]),
        "bytes": pa.array([b"\0\xff", None]),
        "nothing": pa.nulls(2),
    }
    full, empty = write(columns)
    assert full == {
        "text": "a",
        "coded": "a",
        "whole": 2**63 - 1,
        "number": 0.1,
        "single": 0.5,
        "truth": True,
        "moment": "2026-11-18T08:00:00.250000Z",
        "day": "2026-11-18",
        "decimal": 1.5,
        "list": [1, None],
        "struct": {"a": 1.5},
        "bytes": "00ff",
        "nothing": None,
    }
    assert empty == dict.fromkeys(columns)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"])) | st.none(),
            st.integers(-(2**63), 2**63 - 1) | st.none(),
            st.floats(allow_infinity=False, allow_nan=False) | st.none(),
        ),
        min_size=1,
    ),
    st.text('a"\\\n\0é', max_size=3),
)
def test_texts_and_numbers_come_back_as_they_were(
    rows: list[tuple[str | None, int | None, float | None]], name: str
) -> None:
    texts, wholes, numbers = zip(*rows, strict=True)
    columns = {
        f"text{name}": pa.array(texts, pa.string()),
        "whole": pa.array(wholes, pa.int64()),
        "number": pa.array(numbers, pa.float64()),
    }
    expected = [dict(zip(columns, row, strict=True)) for row in rows]
    assert write(columns) == expected
    sliced = {key: column[1:] for key, column in columns.items()}
    if len(rows) > 1:
        assert write(sliced) == expected[1:]


@pytest.mark.parametrize("has_others", [False, True])
def test_geometries_are_geojson(has_others: bool) -> None:
    shapes: list[shapely.Geometry] = [shapely.Point(1.5, -2), shapely.Point(0.1, 1e22)]
    if has_others:
        shapes += [shapely.box(0, 0, 1, 1), shapely.Point()]
    column = pa.array([shapely.to_wkb(shape) for shape in shapes])
    written = [row["geometry"] for row in write({"geometry": column}, "geometry")]
    assert shapely.from_geojson([json.dumps(value) for value in written]).tolist() == shapes


def test_what_is_not_a_geometry_stays_what_it_was() -> None:
    wkb = pa.array([shapely.to_wkb(shapely.Point(1, 2)), b"\1\2", None])
    assert [row["g"] for row in write({"g": wkb}, "g")] == [
        {"type": "Point", "coordinates": [1.0, 2.0]},
        "0102",
        None,
    ]
    texts = pa.array(["POINT(1 2)", "somewhere", None])
    assert [row["g"] for row in write({"g": texts}, "g")] == [
        {"type": "Point", "coordinates": [1.0, 2.0]},
        "somewhere",
        None,
    ]
    assert write({"g": pa.array([7])}, "g") == [{"g": 7}]


def test_an_object_without_columns_is_empty() -> None:
    pieces = JsonPieces(2)
    pieces.add_object([], ())
    assert pieces.join().to_pylist() == ["{}", "{}"]


def test_many_points_are_written_as_few_are() -> None:
    xy = np.random.default_rng(1).uniform(-180, 180, (1000, 2))
    column = pa.array(shapely.to_wkb(shapely.points(xy)))
    written = [row["g"]["coordinates"] for row in write({"g": column}, "g")]
    assert written == xy.tolist()
