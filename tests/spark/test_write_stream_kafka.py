"""`write_stream` to topics of Kafka: nothing is lost, and doubles have the same id."""

from __future__ import annotations

import runpy
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pytest

import contrada.spark
from contrada.errors import InvalidInput
from documents import ROOT
from kafka_cases import Sent, feature, send
from kafka_topics import KafkaTopics
from stream_runs import TOPIC_PLACES, answer, expected_ids, fail_at, prepare, run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from contrada.spark import BatchReport
    from kafka_broker import KafkaBroker

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def topics(spark: SparkSession, kafka: KafkaBroker) -> KafkaTopics:
    return KafkaTopics(spark, kafka)


@pytest.fixture
def folder(tmp_path: Path, published_zones: Path) -> Path:
    """A folder with a published set and the events of two batches."""
    return prepare(tmp_path, published_zones, 2)


def test_matches_go_to_a_topic_and_bad_messages_as_they_came_to_another(
    spark: SparkSession, topics: KafkaTopics, folder: Path
) -> None:
    good = feature(id="good", geometry={"type": "Point", "coordinates": [0.5, 0.5]})
    topics.put("raw", [send(good), Sent(b"no message", {"trace": "7"})])
    events = contrada.spark.read_kafka(spark, topics.uri("raw"), schema="wind double")
    found = contrada.spark.match(events, str(folder / "zones"), quarantine=True, keep=["wind"])
    told: SimpleQueue[BatchReport] = SimpleQueue()
    options: dict[str, Any] = {"kafka.linger.ms": 1}
    contrada.spark.write_stream(
        found,
        topics.uri("found"),
        checkpoint=folder / "checkpoint",
        quarantine="set-aside",
        once=True,
        on_batch=told.put,
        **options,
    ).awaitTermination()
    assert topics.ids_of("found") == ["good|zone 1", "good|zone 2"]
    (bad,) = topics.take("set-aside")
    assert bytes(bad["value"]) == b"no message"
    assert bad["headers"]["trace"] == b"7"
    assert "contrada-error-message" in bad["headers"]
    report = told.get(timeout=60)  # it comes when the query has ended
    assert (report.rows, report.offsets_behind) == (2, 0)


def test_the_example_of_a_job_from_topic_to_topic_runs(
    topics: KafkaTopics, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = feature(id="inside", geometry={"type": "Point", "coordinates": [1.5, 0.5]})
    topics.put("job-in", [send(inside), Sent(b"no message")])
    places = [topics.uri("job-in"), topics.uri("job-out"), folder / "zones", folder / "checkpoint"]
    words = ["stream_job.py", *map(str, places), "--quarantine", "job-bad", "--once"]
    monkeypatch.setattr("sys.argv", words)
    runpy.run_path(str(ROOT / "examples" / "stream_job.py"))
    assert topics.ids_of("job-out") == ["inside|zone 2"]
    assert len(topics.take("job-bad")) == 1


@pytest.mark.parametrize("place", TOPIC_PLACES)
def test_a_batch_that_failed_comes_again_with_the_same_ids(
    place: str,
    spark: SparkSession,
    topics: KafkaTopics,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = place.replace(" ", "-")
    places = topics.pair(name)
    fail_at(place, spark, folder, monkeypatch, **places)
    run(spark, folder, **places)
    matches, bad = topics.ids_of(name), topics.ids_of(f"{name}-bad")
    assert (set(matches), set(bad)) == expected_ids(2)
    is_twice = place == "the messages are written"
    assert (len(matches), len(bad)) == ((9, 3) if is_twice else (6, 2))
    back = contrada.spark.read_kafka(
        spark,
        places["to"],
        schema="event long, subscription string, version string",
        format="cloudevents",
        batch=True,
        drop_doubles="1 hour",
    )
    assert sorted(row["id"] for row in back.collect()) == sorted(set(matches))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": "kafka://localhost:9092"}, "'kafka://localhost:9092' names no topic"),
        ({"quarantine": None}, r"in its column 'error': quarantine=kafka://… is where they go"),
        ({"quarantine": "kafka://another:1/bad"}, "kafka://another:1/bad: the servers are not"),
        ({"quarantine": "two words"}, "'two words' is not the name of a topic"),
        ({"topic": "other"}, "the option 'topic' cannot be given: the URI names the topic"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_name(
    options: dict[str, Any], message: str, spark: SparkSession, folder: Path
) -> None:
    given = {"to": "kafka://localhost:9092/out", "quarantine": "bad", "once": True, **options}
    with pytest.raises(InvalidInput, match=message):
        contrada.spark.write_stream(
            answer(spark, folder), checkpoint=folder / "checkpoint", **given
        )
