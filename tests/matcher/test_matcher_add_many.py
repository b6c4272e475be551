"""Subscriptions from tables and files: one to a row, all or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import geopandas
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from shapely.geometry import LineString, MultiPolygon, Point, Polygon, box

from contrada import InvalidInput, Matcher

SQUARE = box(0, 0, 4, 4)
INSIDE, OUTSIDE = {"geometry": Point(1, 1)}, {"geometry": Point(9, 9)}


def table_of(**columns: list[Any]) -> pa.Table:
    """A table whose geometries, given as Shapely's, become WKB."""
    return pa.table(
        {
            name: [shapely.to_wkb(v) if isinstance(v, shapely.Geometry) else v for v in values]
            for name, values in columns.items()
        }
    )


# Sources


def subscription_frame() -> geopandas.GeoDataFrame:
    shapes = [SQUARE, box(8, 8, 10, 10), LineString([(0, 0), (9, 9)])]
    return geopandas.GeoDataFrame({"id": ["a", "b", "c"]}, geometry=shapes, crs="EPSG:4326")


def make_source(kind: str, folder: Path) -> Any:
    frame = subscription_frame()
    table = pa.table({"id": ["a", "b", "c"], "geometry": shapely.to_wkb(frame.geometry)})
    match kind:
        case "table":
            return table
        case "batch":
            return table.to_batches()[0]
        case "reader":
            return table.to_reader(max_chunksize=2)
        case "capsule":
            return OnlyStream(table)
        case "geodataframe":
            return frame
        case "pandas":
            return pd.DataFrame({"id": ["a", "b", "c"], "geometry": frame.geometry.to_wkt()})
        case "parquet":
            frame.to_parquet(folder / "subscriptions.parquet")
            return folder / "subscriptions.parquet"
        case "geojson":
            frame.to_file(folder / "subscriptions.geojson", driver="GeoJSON")
            return str(folder / "subscriptions.geojson")
        case _:
            raise AssertionError(kind)


class OnlyStream:
    """Anything with `__arrow_c_stream__` is a table."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


KINDS = "table batch reader capsule geodataframe pandas parquet geojson".split()


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_same_subscriptions(kind: str, tmp_path: Path) -> None:
    matcher = Matcher()
    assert matcher.add_many(make_source(kind, tmp_path)) == 3
    assert list(matcher) == ["a", "b", "c"]
    assert matcher.match(INSIDE) == ["a", "c"]
    assert matcher.match(OUTSIDE) == ["b", "c"]


def test_a_geometry_column_of_another_name_is_found_by_what_the_table_states() -> None:
    frame = subscription_frame().rename_geometry("outline")
    matcher = Matcher()
    matcher.add_many(frame)
    assert matcher.match(INSIDE) == ["a", "c"]


def test_geometries_may_be_wkt_large_dictionary_encoded_or_in_slices() -> None:
    texts = pa.array([SQUARE.wkt, OUTSIDE["geometry"].wkt])
    for geometry in (
        texts,
        texts.cast(pa.large_string()),
        texts.dictionary_encode(),
        pa.array([b"?", SQUARE.wkb, OUTSIDE["geometry"].wkb]).slice(1),
        pa.array([SQUARE.wkb, OUTSIDE["geometry"].wkb], pa.large_binary()),
    ):
        matcher = Matcher()
        matcher.add_many(pa.table({"geometry": geometry}))
        assert matcher.match(INSIDE) == [0]
        assert matcher.match(OUTSIDE) == [1]


# Columns


def test_each_column_has_its_meaning_and_others_have_none() -> None:
    matcher = Matcher()
    matcher.add_many(
        table_of(
            id=["a", "b", "c"],
            filter=["n > 3", None, None],
            geometry=[None, SQUARE, SQUARE],
            relation=[None, "disjoint", None],
            where=[None, None, "n < 3"],
            attribute=[None, "area", None],
            subscriber=["u", None, "w"],
            price=[1, 2, 3],
        )
    )
    assert matcher.match({"n": 4}) == ["a"]
    assert matcher.match({"area": Point(9, 9)}) == ["b"]
    assert matcher.match({"geometry": Point(1, 1), "n": 2}) == ["c"]
    assert matcher.match({"geometry": Point(1, 1), "n": 3}) == []
    assert [matcher.get(id_).subscriber for id_ in matcher] == ["u", None, "w"]


def test_filters_may_be_text_and_json_side_by_side() -> None:
    matcher = Matcher()
    matcher.add_many(pa.table({"filter": ["n > 3", '{"op":"<","args":[{"property":"n"},0]}']}))
    assert matcher.match({"n": 4}) == [0]
    assert matcher.match({"n": -1}) == [1]


def test_texts_may_be_dictionary_encoded() -> None:
    columns = {"id": ["a", "b"], "where": ["n > 3", None], "relation": ["within", "disjoint"]}
    table = pa.table({name: pa.array(v).dictionary_encode() for name, v in columns.items()})
    matcher = Matcher()
    matcher.add_many(table.append_column("geometry", pa.array([SQUARE.wkb] * 2)))
    assert matcher.match({**INSIDE, "n": 4}) == ["a"]
    assert matcher.match(OUTSIDE) == ["b"]


def test_all_eighteen_relations_and_a_pattern_can_stand_in_the_column() -> None:
    names = (
        "intersects disjoint touches crosses within contains overlaps equals covers coveredBy "
        "ehDisjoint ehMeet ehOverlap ehEquals ehInside ehContains ehCoveredBy ehCovers T*F**F***"
    ).split()
    matcher = Matcher()
    matcher.add_many(table_of(id=names, relation=names, geometry=[SQUARE] * len(names)))
    assert matcher.match({"geometry": box(1, 1, 2, 2)}) == sorted(
        ["intersects", "within", "coveredBy", "ehInside", "T*F**F***"]
    )


def test_ids_default_to_the_number_of_the_row_across_batches() -> None:
    matcher = Matcher()
    table = pa.table({"filter": [f"n = {n}" for n in range(70_000, 70_005)]})
    matcher.add_many(table.to_reader(max_chunksize=2))
    assert list(matcher) == [0, 1, 2, 3, 4]
    assert matcher.match({"n": 70_003}) == [3]


def test_another_column_can_be_the_id() -> None:
    table = pa.table({"id": [1, 1], "code": ["x", "y"], "filter": ["n > 0", "n > 1"]})
    matcher = Matcher()
    matcher.add_many(table, id="code")
    assert matcher.match({"n": 2}) == ["x", "y"]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([2**63 - 1, -(2**63)]),
        pa.array([3, 200], pa.uint8()),
        pa.array([3, 4], pa.uint64()),
        pa.array(["é", "e"]).dictionary_encode(),
        pa.array(["a", "b"], pa.large_string()),
        pa.array(["a", "b"], pa.string_view()),
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_are_any_integers_of_64_bits_and_any_texts(ids: pa.Array) -> None:
    matcher = Matcher()
    matcher.add_many(pa.table({"id": ids, "filter": ["n > 0"] * 2}))
    assert list(matcher) == sorted(ids.to_pylist())


def test_a_table_without_rows_adds_nothing() -> None:
    matcher = Matcher()
    assert matcher.add_many(pa.table({"filter": pa.array([], pa.string())})) == 0
    assert len(matcher) == 0


def test_a_long_table_may_be_of_several_batches() -> None:
    count = 70_000
    table = pa.table({"id": range(count), "filter": ["n = 1", "n = 2"] * (count // 2)})
    matcher = Matcher("scan")
    assert matcher.add_many(table) == count
    assert matcher.get(count - 1).predicate == matcher.get(1).predicate


# Replacing


def test_a_table_replaces_by_id_and_leaves_the_rest() -> None:
    matcher = Matcher()
    matcher.add_many(pa.table({"id": ["a", "b"], "filter": ["n > 0"] * 2}))
    added = pa.table({"id": ["b", "c"], "filter": ["n > 5"] * 2})
    with pytest.raises(InvalidInput, match="'b' is already taken"):
        matcher.add_many(added)
    assert matcher.match({"n": 9}) == ["a", "b"]
    assert matcher.add_many(added, replace=True) == 2
    assert matcher.match({"n": 1}) == ["a"]
    assert matcher.match({"n": 9}) == ["a", "b", "c"]


def test_when_replacing_the_last_row_with_an_id_wins() -> None:
    matcher = Matcher()
    matcher.add_many(pa.table({"id": ["a", "a"], "filter": ["n > 0", "n > 5"]}), replace=True)
    assert len(matcher) == 1
    assert matcher.match({"n": 3}) == []
    assert matcher.match({"n": 6}) == ["a"]


# Mending


def test_repair_mends_what_it_can_leaves_out_the_rest_and_says_so() -> None:
    bow_tie = Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    overlapping = MultiPolygon([box(0, 0, 2, 2), box(1, 1, 3, 3)])
    table = table_of(
        id="good bow overlapping empty null infinite truncated curve".split(),
        geometry=[
            SQUARE,
            bow_tie,
            overlapping,
            Polygon(),
            None,
            Point(1, float("nan")),
            SQUARE.wkb[:20],
            shapely.to_wkb(shapely.from_wkt("LINESTRING(0 0, 1 1, 2 0)")).replace(
                b"\x02", b"\x08", 1
            ),
        ],
    )
    matcher, heard = Matcher(), []
    added = matcher.add_many(table, repair=True, on_bad=lambda *bad: heard.append(bad))
    assert added == 3
    assert matcher.match({"geometry": Point(0.25, 1)}) == ["bow", "good", "overlapping"]
    assert matcher.match({"geometry": Point(1, 0.25)}) == ["good", "overlapping"]
    assert [(row, id_) for row, id_, _ in heard] == [
        (1, "bow"),
        (2, "overlapping"),
        (3, "empty"),
        (4, "null"),
        (5, "infinite"),
        (6, "truncated"),
        (7, "curve"),
    ]
    wanted = ["mended: ", "mended: ", "empty", "missing", "non-finite", "cannot read", "curve"]
    assert all(want in reason for want, (_, _, reason) in zip(wanted, heard, strict=True))
    stats = matcher.stats()
    assert (stats["subscriptions_mended"], stats["subscriptions_left_out"]) == (2, 5)


def test_repair_does_not_excuse_anything_but_geometry() -> None:
    matcher = Matcher()
    table = table_of(geometry=[SQUARE], relation=["nope"])
    with pytest.raises(InvalidInput, match="unknown relation 'nope'"):
        matcher.add_many(table, repair=True)
    assert matcher.stats()["subscriptions_left_out"] == 0


def test_one_subscription_can_be_mended_too() -> None:
    matcher = Matcher()
    matcher.add("a", geometry=Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]), repair=True)
    assert matcher.match({"geometry": Point(0.25, 1)}) == ["a"]
    assert matcher.match({"geometry": Point(1, 0.25)}) == []
