"""Published sets: what a version holds, which files it shares, and what is refused."""

from __future__ import annotations

import json
import os
import sys
import warnings
from random import Random
from typing import TYPE_CHECKING

import pytest

import contrada
import contrada.spark
from contrada.errors import BadRows, InvalidInput, Unavailable
from contrada.machine import locked
from contrada.spark import published_partitions, version_files
from contrada.spark.crs_metadata import state_crs
from contrada.spark.published_sets import Manifest, digest_content, list_files, read_manifest
from contrada.spark.version_names import list_versions
from contrada.spark.worker_cache import cache_folder
from published import ZONE, pairs_of, points, square, zones

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

THREE = {"a": 0.0, "b": 1.0, "c": 2.0}
HOUR_US = 3_600_000_000


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return (tmp_path / "fences").as_uri()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The publisher's clock, which only the test moves."""
    now = [1_800_000_000_000_000]
    monkeypatch.setattr(version_files, "now_us", lambda: now[0])
    return now


def newest(uri: str) -> Manifest:
    return read_manifest(uri, list_versions(uri)[-1])


def test_the_first_version_holds_at_once_and_names_itself_in_every_match(
    spark: SparkSession, uri: str
) -> None:
    version = contrada.spark.publish(zones(spark, THREE), uri)
    found = contrada.spark.match(points(spark, [0, 2, 7]), uri).collect()
    assert pairs_of(found) == [(0, "a"), (2, "c")]
    assert {(row["subscriber"], row["version"]) for row in found} == {
        ("of a", version),
        ("of c", version),
    }


def test_the_same_subscriptions_in_any_order_are_the_version_that_is_there(
    spark: SparkSession, uri: str
) -> None:
    version = contrada.spark.publish(zones(spark, THREE), uri)
    again = dict(sorted(THREE.items(), reverse=True))
    assert contrada.spark.publish(zones(spark, again, parts=3), uri) == version
    assert len(list_versions(uri)) == 1


def test_a_change_keeps_the_parts_of_rows_that_did_not_change(
    spark: SparkSession, uri: str
) -> None:
    many = {f"z{number}": float(number) for number in range(20)}
    contrada.spark.publish(zones(spark, many), uri)
    (first,) = newest(uri).parts
    changed = many | {"z3": 50.0, "new": 60.0}
    del changed["z7"]
    contrada.spark.publish(zones(spark, changed), uri)
    kept, added = newest(uri).parts
    assert (kept.digest, kept.count) == (first.digest, 18)
    assert added.count == 2


def test_parts_do_not_pile_up(spark: SparkSession, uri: str) -> None:
    held = {f"z{number}": float(number) for number in range(8)}
    for number in range(8, 11):
        contrada.spark.publish(zones(spark, held), uri)
        held[f"z{number}"] = float(number)
    assert len(newest(uri).parts) <= 2


@pytest.mark.parametrize("partitions", [None, 3])
def test_random_versions_answer_as_a_matcher_with_their_subscriptions(
    spark: SparkSession, uri: str, partitions: int | None
) -> None:
    random = Random(7)
    held: dict[str, float] = {}
    events = points(spark, range(12))
    for _ in range(3):
        for _ in range(random.randint(4, 9)):
            held[f"z{random.randrange(12)}"] = random.uniform(-1, 12)
        for name in random.sample(sorted(held), min(len(held) - 1, random.randrange(4))):
            del held[name]
        version = contrada.spark.publish(zones(spark, held), uri, partitions=partitions)
        matcher = contrada.Matcher()
        for name, x in held.items():
            matcher.add(name, geometry=square(x))
        wanted = [
            (i, s) for i in range(12) for s in matcher.match({"geometry": f"POINT({i}.5 .5)"})
        ]
        plans = ["broadcast"] if partitions is None else ["broadcast", "partitioned"]
        for plan in plans:
            found = contrada.spark.match(events, f"{uri}#{version}", plan=plan)
            assert pairs_of(found.collect()) == wanted


def test_a_version_may_have_no_subscriptions(spark: SparkSession, uri: str) -> None:
    contrada.spark.publish(zones(spark, THREE), uri)
    version = contrada.spark.publish(spark.createDataFrame([], ZONE), uri)
    assert contrada.spark.match(points(spark, [0]), f"{uri}#{version}").collect() == []


def test_a_version_without_subscriptions_has_the_kinds_of_that_before(
    spark: SparkSession, uri: str
) -> None:
    stated = state_crs(zones(spark, THREE), {"geometry": "EPSG:4326"})
    contrada.spark.publish(stated, uri)
    kinds = "id long, geometry string, subscriber long"
    empty = state_crs(spark.createDataFrame([], kinds), {"geometry": "EPSG:3857"})
    version = contrada.spark.publish(empty, uri)
    found = newest(uri)
    assert (str(found.version), found.crs) == (version, "EPSG:4326")
    assert (found.has_whole_ids, found.has_whole_subscribers) == (False, False)
    assert contrada.spark.match(points(spark, [0]), f"{uri}#{version}").collect() == []
    contrada.spark.publish(stated, uri)


def test_a_version_can_be_published_again(spark: SparkSession, uri: str) -> None:
    first = contrada.spark.publish(zones(spark, THREE), uri)
    contrada.spark.publish(zones(spark, {"a": 9.0}), uri)
    third = contrada.spark.publish(f"{uri}#{first}", uri)
    assert third not in {first, None}
    found = contrada.spark.match(points(spark, [1]), f"{uri}#{third}").collect()
    assert pairs_of(found) == [(1, "b")]
    with pytest.raises(InvalidInput, match="has no version '7-00000000'"):
        contrada.spark.publish(f"{uri}#7-00000000", uri)


def test_a_later_version_holds_after_its_lead(
    spark: SparkSession, uri: str, clock: list[int]
) -> None:
    first = contrada.spark.publish(zones(spark, THREE), uri)
    second = contrada.spark.publish(zones(spark, {"a": 9.0}), uri, lead="1 h")
    assert newest(uri).moment == clock[0] + HOUR_US
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contrada.spark.meeting.now_us", lambda: clock[0] + HOUR_US - 1)
        (row,) = contrada.spark.match(points(spark, [0]), uri).collect()
        assert row["version"] == first
        patch.setattr("contrada.spark.meeting.now_us", lambda: clock[0] + HOUR_US)
        (row,) = contrada.spark.match(points(spark, [9]), uri).collect()
        assert row["version"] == second


def test_a_version_that_is_visible_too_late_is_withdrawn_and_gets_a_later_moment(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contrada.spark.publish(zones(spark, THREE), uri)
    ticks = iter(range(1_900_000_000_000_000, 2_000_000_000_000_000, 3_000_000))
    monkeypatch.setattr(version_files, "now_us", lambda: next(ticks))
    contrada.spark.publish(zones(spark, {"a": 9.0}), uri)
    first, second = list_versions(uri)
    assert (first.number, second.number) == (1, 2)
    assert second.moment > 1_900_000_002_000_000  # the first try would have held from then on


def test_a_publisher_that_is_always_late_says_so_and_leaves_nothing(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contrada.spark.publish(zones(spark, THREE), uri)
    ticks = iter(range(1_900_000_000_000_000, 2_000_000_000_000_000, 60_000_000))
    monkeypatch.setattr(version_files, "now_us", lambda: next(ticks))
    with pytest.raises(Unavailable, match="a longer lead than 2 s may help"):
        contrada.spark.publish(zones(spark, {"a": 9.0}), uri)
    assert len(list_versions(uri)) == 1


def test_one_of_two_publishers_is_refused(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    version = contrada.spark.publish(zones(spark, THREE), uri)
    with locked(tmp_path / "fences" / "versions" / ".lock"):
        with pytest.raises(Unavailable, match="another publisher is adding a version"):
            contrada.spark.publish(zones(spark, {"a": 9.0}), uri)
        assert [str(name) for name in list_versions(uri)] == [version]
    contrada.spark.publish(zones(spark, {"a": 9.0}), uri)
    assert len(list_versions(uri)) == 2


def test_a_publisher_that_another_overtook_is_refused(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contrada.spark.publish(zones(spark, THREE), uri)
    before = newest(uri)
    contrada.spark.publish(zones(spark, {"a": 9.0}), uri)
    publishing = sys.modules["contrada.spark.publish"]  # the function has its name
    monkeypatch.setattr(publishing, "find_newest", lambda _: before)
    with pytest.raises(Unavailable, match="another publisher is adding a version"):
        contrada.spark.publish(zones(spark, {"a": 5.0}), uri)
    assert len(list_versions(uri)) == 2


def test_what_held_too_long_ago_is_gone_and_named(
    spark: SparkSession, uri: str, clock: list[int], tmp_path: Path
) -> None:
    first = contrada.spark.publish(zones(spark, THREE), uri)
    for path in (tmp_path / "fences" / "parts").iterdir():
        os.utime(path, (0, 0))
    clock[0] += HOUR_US
    contrada.spark.publish(zones(spark, {"x": 9.0}), uri, retention="1 day")
    assert len(list_versions(uri)) == 2
    clock[0] += 30 * HOUR_US
    contrada.spark.publish(zones(spark, {"y": 9.0}), uri, retention="1 day")
    assert [name.number for name in list_versions(uri)] == [2, 3]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contrada.spark.meeting.now_us", lambda: 5)
        with pytest.raises(InvalidInput, match=f"version {first}, which held at 1970"):
            contrada.spark.match(points(spark, [0]), uri)


def test_files_that_no_version_has_go_with_time(
    spark: SparkSession, uri: str, clock: list[int], tmp_path: Path
) -> None:
    contrada.spark.publish(zones(spark, THREE), uri)
    first = {path.name for path in (tmp_path / "fences" / "parts").iterdir()}
    for name in first:
        os.utime(tmp_path / "fences" / "parts" / name, (0, 0))
    for name in ("x", "y"):
        clock[0] += 30 * HOUR_US
        contrada.spark.publish(zones(spark, {name: 9.0}), uri, retention="1 s")
    assert not first & {path.name for path in (tmp_path / "fences" / "parts").iterdir()}


def test_a_part_that_an_old_version_has_stays_when_it_is_staged_again(
    spark: SparkSession, uri: str, tmp_path: Path
) -> None:
    many = {f"z{number}": float(number) for number in range(100)}
    few = {f"r{number}": 200.0 + number for number in range(10)}
    others = {f"s{number}": 300.0 + number for number in range(20)}
    contrada.spark.publish(zones(spark, many), uri)
    second = contrada.spark.publish(zones(spark, many | few), uri)
    contrada.spark.publish(zones(spark, many | others), uri)
    contrada.spark.publish(zones(spark, many | others | few), uri)
    parts = {path.name for path in (tmp_path / "fences" / "parts").iterdir()}
    for name in list_versions(uri):
        assert {*list_files(read_manifest(uri, name))} <= parts
    found = contrada.spark.match(points(spark, [200]), f"{uri}#{second}")
    assert pairs_of(found.collect()) == [(200, "r0")]


def test_a_coordinate_system_that_was_stated_once_stays(spark: SparkSession, uri: str) -> None:
    first = contrada.spark.publish(zones(spark, THREE), uri)
    stated = state_crs(zones(spark, {"a": 5.0}), {"geometry": "EPSG:4326"})
    contrada.spark.publish(stated, uri)
    contrada.spark.publish(f"{uri}#{first}", uri)
    moved = state_crs(zones(spark, {"a": 6.0}), {"geometry": "EPSG:3857"})
    with pytest.raises(InvalidInput, match=r"version 3-.* is in EPSG:4326, .* EPSG:3857"):
        contrada.spark.publish(moved, uri)


def test_what_ends_a_task_of_publish_is_raised_as_what_it_was(
    spark: SparkSession, uri: str, tmp_path: Path
) -> None:
    contrada.spark.publish(zones(spark, {"in this test alone": 0.1875}), uri)
    for path in (tmp_path / "fences" / "parts").iterdir():
        path.write_bytes(b"")
        (cache_folder("snapshots") / path.name).unlink(missing_ok=True)
    with pytest.raises(InvalidInput, match=r"parts/.*\.contrada"):
        contrada.spark.publish(zones(spark, {"a": 9.0}), uri)


def test_other_types_of_ids_subscribers_and_systems_are_refused(
    spark: SparkSession, uri: str
) -> None:
    stated = state_crs(zones(spark, THREE), {"geometry": "EPSG:4326"})
    contrada.spark.publish(stated, uri)
    whole = spark.createDataFrame([(1, square(0))], "id long, geometry string")
    with pytest.raises(InvalidInput, match="the ids are strings in version 1-"):
        contrada.spark.publish(whole, uri)
    moved = state_crs(zones(spark, THREE), {"geometry": "EPSG:3857"})
    with pytest.raises(InvalidInput, match="is in EPSG:4326, the subscriptions are in EPSG:3857"):
        contrada.spark.publish(moved, uri)
    owned = zones(spark, THREE).selectExpr("id", "geometry", "1 AS subscriber")
    with pytest.raises(InvalidInput, match=r"column 'subscriber': version 1-.* has strings"):
        contrada.spark.publish(owned, uri)
    assert len(list_versions(uri)) == 1


@pytest.mark.parametrize("parts", [1, 4])
def test_an_id_that_comes_twice_is_refused_however_it_comes(
    spark: SparkSession, uri: str, parts: int
) -> None:
    contrada.spark.publish(zones(spark, THREE), uri)
    both = zones(spark, THREE).union(zones(spark, {"b": 1.0}))
    other = zones(spark, THREE).union(zones(spark, {"b": 5.0}))
    new = zones(spark, {"n": 5.0}).union(zones(spark, {"n": 6.0}))
    for frame, name in ((both, "b"), (other, "b"), (new, "n")):
        with pytest.raises(BadRows, match=f"subscription '{name}': 2 rows have this id"):
            contrada.spark.publish(frame.repartition(parts), uri)
    assert len(list_versions(uri)) == 1


def test_bad_subscriptions_are_refused_and_the_version_stays(spark: SparkSession, uri: str) -> None:
    contrada.spark.publish(zones(spark, THREE), uri)
    bad = spark.createDataFrame([("a", "speed >")], "id string, filter string")
    with pytest.raises(BadRows, match="subscription 'a'"):
        contrada.spark.publish(bad, uri)
    assert len(list_versions(uri)) == 1


def test_an_invalid_row_that_was_mended_is_judged_again_without_repair(
    spark: SparkSession, uri: str
) -> None:
    bow = spark.createDataFrame(
        [("bow", "POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))")], "id string, geometry string"
    )
    contrada.spark.publish(bow, uri, repair=True)
    with pytest.raises(BadRows, match="subscription 'bow'"):
        contrada.spark.publish(bow, uri)


def test_damaged_and_newer_manifests_are_refused_by_name(
    spark: SparkSession, uri: str, tmp_path: Path
) -> None:
    contrada.spark.publish(zones(spark, THREE), uri)
    (path,) = (tmp_path / "fences" / "versions").rglob("*.json")
    stated = json.loads(path.read_text())
    for content, message in (
        ("{", "is not a manifest"),
        ("[]", "is not a manifest"),
        (json.dumps(stated | {"format": 2}), "is in format 2; this version of Contrada reads 1"),
        (json.dumps(stated | {"surprise": 1}), "is not a manifest"),
        ("[" * 100_000, "is not a manifest"),
    ):
        path.unlink()
        name = f"00000001-0-{digest_content(content.encode())}.json"
        path = path.with_name(name)
        path.write_text(content)
        with pytest.raises(InvalidInput, match=message):
            contrada.spark.match(points(spark, [0]), uri)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lead": "soon"}, "lead 'soon' is not a duration"),
        ({"retention": -1}, "retention -1 is not a duration"),
        ({"partitions": 0}, "partitions must be a number >= 1, not 0"),
        ({"subscription_id": "name"}, "no column 'name'"),
        ({"sample": "events"}, "sample must be a Spark DataFrame"),
    ],
)
def test_bad_options_are_refused(
    spark: SparkSession, uri: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        contrada.spark.publish(zones(spark, THREE), uri, **options)  # type: ignore[arg-type]


def test_what_is_not_a_published_set_is_refused(spark: SparkSession, uri: str) -> None:
    with pytest.raises(InvalidInput, match="no subscriptions are published there"):
        contrada.spark.match(points(spark, [0]), uri)
    with pytest.raises(InvalidInput, match="'latest' is not the name of a version"):
        contrada.spark.match(points(spark, [0]), f"{uri}#latest")
    with pytest.raises(InvalidInput, match="names a version; publish to the set, without #"):
        contrada.spark.publish(zones(spark, THREE), f"{uri}#1-12345678")
    with pytest.raises(InvalidInput, match=r"not builtins\.int"):
        contrada.spark.publish(7, uri)  # type: ignore[arg-type]


def test_partitions_are_those_of_the_first_version(spark: SparkSession, uri: str) -> None:
    contrada.spark.publish(zones(spark, THREE), uri, partitions=3)
    first = newest(uri).partitions
    assert first is not None
    contrada.spark.publish(zones(spark, THREE | {"d": 1.5}), uri)
    second = newest(uri).partitions
    assert second is not None
    assert second.table == first.table
    with pytest.raises(InvalidInput, match="the first version has 3 partitions"):
        contrada.spark.publish(zones(spark, THREE), uri, partitions=4)
    with pytest.raises(InvalidInput, match="the first version has 3 partitions"):
        contrada.spark.publish(f"{uri}#{newest(uri).version}", uri, partitions=4)
    contrada.spark.publish(zones(spark, THREE), uri, sample=points(spark, [2] * 50))
    third = newest(uri).partitions
    assert third is not None
    assert third.table != first.table
    assert len(third.segments) == len(first.segments)


def test_only_the_first_version_can_ask_for_partitions(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contrada.spark.publish(zones(spark, THREE), uri)
    with pytest.raises(InvalidInput, match="has no partitions"):
        contrada.spark.publish(zones(spark, {"a": 5.0}), uri, partitions=2)
    with pytest.raises(InvalidInput, match="has no partitions"):
        contrada.spark.publish(f"{uri}#{newest(uri).version}", uri, partitions=2)
    with pytest.raises(InvalidInput, match="published without partitions"):
        contrada.spark.match(points(spark, [0]), uri, plan="partitioned")
    monkeypatch.setattr(published_partitions, "BROADCAST_BYTES_MAX", 10)
    contrada.spark.publish(zones(spark, THREE), f"{uri}-large")
    assert newest(f"{uri}-large").partitions is not None


def test_a_published_set_is_matched_by_area_as_a_whole(spark: SparkSession, uri: str) -> None:
    contrada.spark.publish(zones(spark, THREE), uri)
    areas = spark.createDataFrame([(1, square(0.5))], "id long, geometry string")
    frozen = contrada.spark.match(areas, zones(spark, THREE), evaluator="area").collect()
    found = contrada.spark.match(areas, uri, evaluator="area").collect()
    assert pairs_of(found) == pairs_of(frozen) != []
    with pytest.raises(InvalidInput, match='in the plan "broadcast" only'):
        contrada.spark.match(areas, uri, evaluator="area", plan="partitioned")


def test_columns_that_events_lack_or_hold_otherwise_are_told(spark: SparkSession, uri: str) -> None:
    filters = [("fast", "speed > 'x'"), ("hot", "heat > 3")]
    contrada.spark.publish(spark.createDataFrame(filters, "id string, filter string"), uri)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        contrada.spark.match(points(spark, [0]), uri)
    told = " ".join(str(warning.message) for warning in caught)
    assert "constraints read 'heat', which no event has" in told
    assert "column 'speed' holds numbers" in told
    with pytest.raises(InvalidInput, match="heat"):
        contrada.spark.match(points(spark, [0]), uri, strict=True)


def test_a_table_is_made_anew_only_when_many_lie_beyond_it(spark: SparkSession, uri: str) -> None:
    many = {f"z{number}": float(number) for number in range(30)}
    contrada.spark.publish(zones(spark, many), uri, partitions=2)
    first = newest(uri).partitions
    contrada.spark.publish(zones(spark, many | {"far": 900.0}), uri)
    second = newest(uri)
    assert first is not None
    assert second.partitions is not None
    assert second.partitions.table == first.table
    assert [part.count for part in second.partitions.residual] == [1]
    events = points(spark, [0, 900])
    found = contrada.spark.match(events, f"{uri}#{second.version}", plan="partitioned")
    assert pairs_of(found.collect()) == [(0, "z0"), (900, "far")]
    contrada.spark.publish(zones(spark, {f"n{n}": 900.0 + n for n in range(30)}), uri)
    third = newest(uri).partitions
    assert third is not None
    assert third.table != first.table
    assert third.residual == ()
