"""A broker that asks who one is: a stream logs in to read and to write, and tells nobody how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import contrada.spark
from kafka_broker import PASSWORD, KafkaBroker, log_in
from kafka_cases import feature, send
from kafka_topics import KafkaTopics
from stream_desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_stream_logs_in_and_its_password_is_neither_shown_nor_written(
    spark: SparkSession,
    kafka: KafkaBroker,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    topics = KafkaTopics(spark, kafka)
    place = {"type": "Point", "coordinates": [0.5, 0.5]}
    topics.put("guarded", [send(feature(id="one", geometry=place)), send("bad")])
    words = ["--events", kafka.guarded_uri("guarded"), "--to", kafka.guarded_uri("guarded-out")]
    client = tmp_path / "client.properties"
    client.write_text("".join(f"{name} = {value}\n" for name, value in log_in().items()))
    words += ["--kafka-file", str(client), "--kafka", "request.timeout.ms=20000"]
    assert Desk(tmp_path).run(*words, "--schema", "wind double", "--json") == 0
    (found,) = topics.take("guarded-out")
    assert b'"event":"one","subscription":"a"' in bytes(found["value"])
    assert len(topics.take("guarded-out-quarantine")) == 1
    said = capfd.readouterr()
    assert PASSWORD not in said.out + said.err + caplog.text
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]


def test_who_is_not_let_in_is_told_so_without_the_password(
    spark: SparkSession, kafka: KafkaBroker, capfd: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {f"kafka.{k}": v for k, v in log_in("wrong-9").items()}
    options["fetchOffset.numRetries"] = 1
    events = contrada.spark.read_kafka(
        spark, kafka.guarded_uri("guarded"), schema="wind double", batch=True, **options
    )
    with pytest.raises(Exception, match="Authentication failed") as refused:
        events.collect()
    said = capfd.readouterr()
    plan = events._jdf.queryExecution().analyzed().toString()
    assert "wrong-9" not in f"{refused.value}{said.out}{said.err}{events!r}{plan}"
