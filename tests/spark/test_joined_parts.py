"""Parts that were staged apart become one file: the same one whenever the same parts are joined."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import shapely

import contrada.spark
from contrada.matcher.column_files import load_columns
from contrada.matching.lookup import Weights, make_lookup_table
from contrada.matching.subscribing import PredicateReader
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.relation import find_relation
from contrada.model.subscription import Subscription
from contrada.spark import joined_parts
from contrada.spark.evaluators import EXACT
from contrada.spark.joined_parts import JoinTask, as_row, read_prefixes
from contrada.spark.partition_tasks import AssignTask, SegmentTask
from contrada.spark.staging import StagedPart, StagedSet, fetch
from contrada.spark.subscription_tasks import write_part

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

UNIVERSE = (0.0, 0.0, 64.0, 64.0)


@pytest.fixture
def staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StagedSet:
    """Boxes along a diagonal by number, in three parts; the last one may be satisfied anywhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    uri = (tmp_path / "staging").as_uri()
    reader, relation = PredicateReader(), find_relation("intersects")
    boxes = [shapely.box(n + 0.1, n + 0.1, n + 2.9, n + 2.9) for n in range(60)]
    predicates = [reader.combine(box, relation, "geometry", None) for box in boxes]
    rows = [Subscription(n, p) for n, p in enumerate([*predicates, reader.parse("wind > 3")])]
    parts = tuple(write_part(uri, pack_subscriptions(rows[n::3])) for n in range(3))
    return StagedSet(uri, parts)


def as_batches(parts: tuple[StagedPart, ...]) -> Any:
    import pyarrow as pa

    return iter([pa.RecordBatch.from_pylist([as_row(part)]) for part in parts])


def test_a_set_is_joined_to_the_same_file_whatever_the_order_of_its_parts(
    staged: StagedSet,
) -> None:
    names = set()
    for parts in (staged.parts, staged.parts[::-1]):
        (row,) = (b.to_pylist()[0] for b in JoinTask(replace(staged, parts=parts))(iter([])))
        names.add(row["digest"])
    assert len(names) == 1
    whole = load_columns(fetch(staged.uri, StagedPart(**row)))
    assert sorted(whole.ids.array.to_pylist()) == list(range(61))
    together = {s.id: s for part in staged.fetch() for s in load_columns(part)}
    assert {subscription.id: subscription for subscription in whole} == together


def test_a_partition_has_the_prefixes_of_its_subscriptions_beside_them(staged: StagedSet) -> None:
    codes = np.arange(4**4)
    table = make_lookup_table(UNIVERSE, Weights(4, codes, np.ones(len(codes))), 5)
    sent = list(AssignTask(staged.uri, table, EXACT)(as_batches(staged.parts)))
    held = 0
    for partition in {batch.column("partition")[0].as_py() for batch in sent}:
        own = [batch for batch in sent if batch.column("partition")[0].as_py() == partition]
        (there,), (back,) = (
            [b.to_pylist()[0] for b in SegmentTask(staged.uri)(iter(batches))]
            for batches in (own, own[::-1])
        )
        assert there == back
        assert there.pop("partition") == partition
        file = fetch(staged.uri, StagedPart(**there))
        subscriptions, lists = load_columns(file), read_prefixes(file)
        held += len(subscriptions)
        for row, id_ in enumerate(subscriptions.ids.array.to_pylist()):
            found = lists.prefixes[lists.list_starts[row] : lists.list_starts[row + 1]].tolist()
            assert found == touched_prefixes(table, id_)
            chosen = {p for prefix in found for p in table.replicas[prefix]}
            assert partition in chosen or (partition == table.partition_count and not found)
    assert held > 61, "some boxes lie in several partitions"


def touched_prefixes(table: Any, number: int) -> list[int]:
    """Look at every prefix, whether its box meets that of a subscription."""
    if number == 60:
        return []
    from contrada.spark.explain import prefix_boxes

    own = shapely.box(number + 0.1, number + 0.1, number + 2.9, number + 2.9)
    boxes = [shapely.box(*box) for box in prefix_boxes(table)]
    return [prefix for prefix, box in enumerate(boxes) if box.intersects(own)]


@pytest.mark.spark
@pytest.mark.parametrize("bytes_min", [0, 2**20])
def test_a_set_in_many_parts_is_joined_once_if_it_is_large(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, bytes_min: int
) -> None:
    monkeypatch.setattr(joined_parts, "_JOIN_BYTES_MIN", bytes_min)
    rows = [(n, f"speed > {n}", f"u{n % 3}") for n in range(40)]
    zones = spark.createDataFrame(rows, "id long, filter string, subscriber string").repartition(3)
    events = spark.createDataFrame([(1, 20.5)], "id long, speed double")
    joined: list[StagedSet] = []

    def join(spark: SparkSession, staged: StagedSet) -> StagedSet:
        joined.append(joined_parts.join_parts(spark, staged))
        return joined[-1]

    monkeypatch.setattr("contrada.spark.jobs.join_parts", join)
    answer = contrada.spark.match(events, zones, plan="broadcast").collect()
    found = sorted((row["subscription"], row["subscriber"]) for row in answer)
    assert found == [(n, f"u{n % 3}") for n in range(21)]
    assert [len(staged.parts) for staged in joined] == [1 if bytes_min == 0 else 3]
