"""URIs and options of Kafka: what cannot be used is refused by name, and no secret is shown."""

from datetime import UTC, datetime
from typing import Any

import pytest

from contrada.errors import InvalidInput
from contrada.spark.kafka_options import sink_options, source_options
from contrada.spark.kafka_uris import KafkaTopic, is_kafka_uri, read_kafka_uri

TOPIC = KafkaTopic(("host:9092",), "positions")


def test_a_uri_names_servers_and_a_topic() -> None:
    topic = read_kafka_uri("kafka://a:9092,b.example:9093,[::1]:9094,c/positions.v-1_x")
    assert topic.servers == ("a:9092", "b.example:9093", "[::1]:9094", "c:9092")
    assert topic.topic == "positions.v-1_x"
    assert read_kafka_uri(str(topic)) == topic
    assert topic.sibling("bad") == KafkaTopic(topic.servers, "bad")
    assert is_kafka_uri("KAFKA://x/y")
    assert not is_kafka_uri("/tmp/kafka")
    assert not is_kafka_uri(None)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("http://host/topic", "'http://host/topic' is not a topic of Kafka"),
        (7, "7 is not a topic of Kafka"),
        ("kafka://host:9092", "names no topic"),
        ("kafka://host:9092/", "names no topic"),
        ("kafka:///topic", "'' is not a server: host:port"),
        ("kafka://a,,b/topic", "'' is not a server"),
        ("kafka://host:0/topic", "'host:0' is not a server"),
        ("kafka://host:99999/topic", "'host:99999' is not a server"),
        ("kafka://host:port/topic", "'host:port' is not a server"),
        ("kafka://host/a/b", "'a/b' is not the name of a topic"),
        ("kafka://host/..", "'..' is not the name of a topic"),
        (f"kafka://host/{'x' * 250}", "at most 249 letters"),
        ("kafka://host/topic?group=1", "has no '?' and no '#'"),
    ],
)
def test_a_uri_that_is_none_is_refused(uri: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_kafka_uri(uri)
    assert message in str(refused.value)


def test_a_password_in_a_uri_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInput, match="a Kafka URI has no user and no password") as refused:
        read_kafka_uri("kafka://user:hush@host:9092/topic")
    assert "hush" not in str(refused.value)
    assert "user:" not in str(refused.value)


@pytest.mark.parametrize("mark", ["?", "#"])
def test_options_in_a_uri_are_refused_and_not_shown(mark: str) -> None:
    with pytest.raises(InvalidInput, match="has no '\\?' and no '#'") as refused:
        read_kafka_uri(f"kafka://host:9092/topic{mark}sasl.password=hush")
    assert "'kafka://host:9092/topic'" in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("starting", "expected"),
    [
        ("earliest", {"startingOffsets": "earliest"}),
        ("latest", {"startingOffsets": "latest"}),
        ({0: 5, 1: -2}, {"startingOffsets": '{"positions": {"0": 5, "1": -2}}'}),
        ("2026-11-18T09:00:00Z", {"startingTimestamp": "1794992400000"}),
        (datetime(2026, 11, 18, 9, tzinfo=UTC), {"startingTimestamp": "1794992400000"}),
    ],
)
def test_reading_begins_where_it_is_told_to(starting: Any, expected: dict[str, str]) -> None:
    options = source_options(TOPIC, starting, True, {})
    assert options.items() >= expected.items()


@pytest.mark.parametrize("starting", ["soon", {0: "first"}, 7])
def test_a_start_that_is_none_is_refused(starting: Any) -> None:
    with pytest.raises(InvalidInput, match="starting is 'earliest', 'latest'"):
        source_options(TOPIC, starting, True, {})


def test_options_of_spark_and_kafka_pass_through() -> None:
    given = {
        "maxOffsetsPerTrigger": 10,
        "failondataloss": False,
        "kafka.security.protocol": "SASL_SSL",
    }
    options = source_options(TOPIC, "earliest", False, given)
    assert options == {
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "10",
        "failondataloss": "false",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.bootstrap.servers": "host:9092",
        "subscribe": "positions",
        "includeHeaders": "true",
    }
    assert sink_options(TOPIC, {"kafka.acks": "all"}) == {
        "kafka.acks": "all",
        "kafka.bootstrap.servers": "host:9092",
        "includeHeaders": "true",
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("subscribe", "the option 'subscribe' cannot be given: the URI names the topic"),
        ("Kafka.Bootstrap.Servers", "cannot be given: the URI names the servers"),
        ("startingOffsets", "cannot be given: starting=… says where to begin"),
        ("includeHeaders", "cannot be given: headers are always read"),
        ("maxOffsets", "read_kafka has no option 'maxOffsets'; it has failOnDataLoss, "),
        ("endingOffsets", "read_kafka has no option 'endingOffsets'"),
    ],
)
def test_an_option_that_cannot_be_given_is_refused_by_name_only(name: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        source_options(TOPIC, "earliest", False, {name: "hush"})
    assert message in str(refused.value)
    assert "hush" not in str(refused.value)


def test_a_value_that_is_no_text_or_number_is_not_shown_either() -> None:
    given = {"kafka.sasl.jaas.config": ["hush"]}
    with pytest.raises(InvalidInput, match=r"'kafka.sasl.jaas.config' must be a text") as refused:
        sink_options(TOPIC, given)
    assert "hush" not in str(refused.value)
    with pytest.raises(InvalidInput, match="writing to Kafka has no option 'acks'"):
        sink_options(TOPIC, {"acks": "hush"})
