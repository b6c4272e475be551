"""Geometries that would harm the process, and values that only look like something."""

import struct

import pandas as pd
import pyarrow as pa
import pytest

from contrada import InvalidInput, Matcher


def nested_collections(depth: int) -> bytes:
    collection = b"\x01\x07\x00\x00\x00\x01\x00\x00\x00"
    return collection * depth + b"\x01\x01\x00\x00\x00" + struct.pack("<dd", 1, 1)


def test_collections_nested_beyond_reason_are_refused_and_a_few_levels_are_not() -> None:
    matcher = Matcher()
    matcher.add("all", "S_INTERSECTS(geometry, BBOX(0, 0, 2, 2))")
    with pytest.raises(InvalidInput, match="nested too deep"):
        matcher.match({"geometry": nested_collections(20_000)})
    with pytest.raises(InvalidInput, match="row 0.*nested too deep"):
        matcher.match_many(pa.table({"geometry": [nested_collections(20_000)]}))
    assert matcher.match({"geometry": nested_collections(20)}) == ["all"]


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, None])
def test_the_missing_values_of_pandas_are_null(missing: object) -> None:
    matcher = Matcher()
    matcher.add("null", "x IS NULL")
    matcher.add("not null", "x IS NOT NULL")
    assert matcher.match({"x": missing}) == ["null"]


def test_wkt_may_name_its_reference_system() -> None:
    matcher = Matcher()
    matcher.add("here", geometry="SRID=4326;POLYGON((0 0, 2 0, 2 2, 0 0))")
    assert matcher.match({"geometry": "SRID=4326;POINT(1 0.5)"}) == ["here"]
