"""A stream whose processes are killed goes on: files have each row once, and Kafka has them all.

Two places are tried in one process, which both have reached when it is killed; all others and
random moments are for `make soak`.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import pytest

import contrada.spark
from boxed_tracks import FIRST, by_object, good, make_batches, make_oracle, subscriptions, watches
from kafka_broker import missing_for_kafka
from kafka_topics import KafkaTopics
from stream_runs import (
    PLACES,
    TOPIC_PLACES,
    StreamRun,
    check_partial,
    check_whole,
    child,
    count_committed,
    expected_ids,
    kill_at,
    kill_at_random,
    let_run,
    prepare,
    read,
    read_by_arrow,
    read_by_duckdb,
    run,
)
from track_runs import add_positions, follow_folder, following, rows_of_batch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kafka_broker import KafkaBroker

pytestmark = pytest.mark.spark

BETWEEN_FOLDERS, AFTER_MESSAGES = "the bad rows are in place", "the messages are written"


@pytest.fixture
def folder(tmp_path: Path, published_zones: Path) -> Path:
    return prepare(tmp_path, published_zones, 2)


class Killed(NamedTuple):
    """Two streams that were killed together; without a broker there is no second one."""

    files: Path
    messages: Path
    topics: KafkaTopics | None


@pytest.fixture(scope="module")
def killed(
    spark: SparkSession,
    published_zones: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Killed:
    files, messages = (tmp_path_factory.mktemp(name) for name in ("files", "messages"))
    runs, topics = [StreamRun(str(files), BETWEEN_FOLDERS)], None
    prepare(files, published_zones, 2)
    if missing_for_kafka() is None:
        topics = KafkaTopics(spark, request.getfixturevalue("kafka"))
        prepare(messages, published_zones, 2)
        runs.append(StreamRun(str(messages), AFTER_MESSAGES, *topics.pair("killed").values()))
    kill_at(*runs)
    return Killed(files, messages, topics)


def test_a_stream_that_is_killed_between_its_two_folders_goes_on(
    killed: Killed, spark: SparkSession
) -> None:
    assert check_partial(*read(killed.files)) == {0}
    run(spark, killed.files)
    check_whole(killed.files, 2)


def test_a_stream_that_is_killed_after_its_messages_were_written_sends_them_again(
    killed: Killed, spark: SparkSession
) -> None:
    if killed.topics is None:
        pytest.skip(str(missing_for_kafka()))
    run(spark, killed.messages, **killed.topics.pair("killed"))
    check_sent(killed.topics, "killed", 2)
    assert len(killed.topics.ids_of("killed")) == 9, "those of batch 1 are there twice"


def check_sent(topics: KafkaTopics, name: str, batches: int) -> None:
    """Check that all messages of some batches are there."""
    found = set(topics.ids_of(name)), set(topics.ids_of(f"{name}-bad"))
    assert found == expected_ids(batches)


@pytest.mark.soak
@pytest.mark.parametrize("place", PLACES)
def test_a_stream_that_is_killed_anywhere_goes_on(
    place: str, folder: Path, spark: SparkSession
) -> None:
    kill_at(StreamRun(str(folder), place))
    assert check_partial(*read(folder)) >= {0}
    run(spark, folder)
    check_whole(folder, 2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_a_stream_that_is_killed_at_random_writes_each_row_once(
    seed: int, tmp_path: Path, published_zones: Path, spark: SparkSession
) -> None:
    batches, generator = 40, random.Random(seed)
    prepare(tmp_path, published_zones, batches)
    for _ in range(4):
        kill_at_random(generator, tmp_path)
        assert check_partial(*read(tmp_path)) >= set(range(count_committed(tmp_path)))
    run(spark, tmp_path)
    check_whole(tmp_path, batches)


@pytest.mark.soak
def test_a_running_stream_shows_whole_batches(tmp_path: Path, published_zones: Path) -> None:
    batches = 20
    prepare(tmp_path, published_zones, batches)
    with child(StreamRun(str(tmp_path), "never")) as process:
        while process.poll() is None:
            if (tmp_path / "bad").exists() and (tmp_path / "matches").exists():
                check_partial(*read_by_arrow(tmp_path))
                check_partial(*read_by_duckdb(tmp_path))
    check_whole(tmp_path, batches)


@pytest.mark.soak
@pytest.mark.parametrize("place", TOPIC_PLACES)
def test_a_stream_to_kafka_that_is_killed_goes_on(
    place: str, spark: SparkSession, kafka: KafkaBroker, folder: Path
) -> None:
    topics, name = KafkaTopics(spark, kafka), f"killed-{place.replace(' ', '-')}"
    kill_at(StreamRun(str(folder), place, *topics.pair(name).values()))
    run(spark, folder, **topics.pair(name))
    check_sent(topics, name, 2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_a_stream_to_kafka_that_is_killed_at_random_loses_nothing(
    seed: int, spark: SparkSession, kafka: KafkaBroker, tmp_path: Path, published_zones: Path
) -> None:
    batches, generator = 40, random.Random(seed)
    topics, name = KafkaTopics(spark, kafka), f"random-{seed}"
    prepare(tmp_path, published_zones, batches)
    for _ in range(4):
        kill_at_random(generator, tmp_path, *topics.pair(name).values())
    run(spark, tmp_path, **topics.pair(name))
    check_sent(topics, name, batches)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_a_stream_of_transitions_that_is_killed_at_random_applies_each_position_once(
    seed: int, tmp_path: Path, spark: SparkSession
) -> None:
    count, generator = 24, random.Random(seed)
    version = contrada.spark.publish(subscriptions(spark, FIRST), tmp_path / "set", lead=0)
    oracle, expected = make_oracle(), []
    for number, rows in enumerate(make_batches(seed, count)):
        add_positions(tmp_path, number, rows)
        expected.append(oracle.follow(good(rows), watches(FIRST), version))
    for _ in range(4):
        wanted = count_committed(tmp_path) + generator.randrange(1, 5)
        with following(tmp_path) as process:
            while count_committed(tmp_path) < wanted:
                let_run(process, 0.02)
            let_run(process, generator.uniform(0, 1))
    follow_folder(spark, tmp_path)
    for number, answer in enumerate(expected):
        assert by_object(rows_of_batch(tmp_path, number)) == by_object(answer), number
