"""A real broker and Spark's real connector: whatever is sent becomes a row, or several do one."""

import json
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import shapely

import contrada.spark
from contrada.errors import InvalidInput, MissingPackage
from contrada.limits import MESSAGE_BYTES_MAX
from contrada.spark.kafka_messages import as_messages
from kafka_broker import KafkaBroker
from kafka_cases import BAD, CLOUD_HEADERS, WKB, Sent, cloud_event, feature, send
from kafka_topics import KafkaTopics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

GOOD = [
    send(feature(id="feature")),
    send(cloud_event(feature(), id="structured")),
    Sent(json.dumps(feature()).encode(), CLOUD_HEADERS),
    Sent(WKB, {"wind": "12.5", "id": "wkb"}),
    send(feature()),
]
SECRETS: dict[str, Any] = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": 'a.Module required username="hush" password="hush";',
    "kafka.ssl.keystore.key": "hush",
    "kafka.ssl.key.password": "hush",
}


@pytest.fixture(scope="module")
def topics(spark: "SparkSession", kafka: KafkaBroker) -> KafkaTopics:
    return KafkaTopics(spark, kafka)


@pytest.fixture(scope="module")
def mixed(topics: KafkaTopics) -> str:
    """A topic with good messages of every format, and bad ones of every kind."""
    topics.put("mixed", [*GOOD, *(message for message, *_ in BAD)])
    return topics.uri("mixed")


def run(frame: "DataFrame", folder: Path) -> list[Any]:
    """Run a stream over all that there is, and collect what it yields."""
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    return frame.sparkSession.read.parquet(str(folder / "out")).collect()


def test_a_stream_has_a_row_for_every_message_good_or_bad(
    spark: "SparkSession", mixed: str, topics: KafkaTopics, tmp_path: Path
) -> None:
    frame = contrada.spark.read_kafka(
        spark, mixed, schema="wind double", place="place", time="time", maxOffsetsPerTrigger=20
    )
    assert frame.schema["geometry"].metadata == {"crs": "OGC:CRS84"}
    assert frame.schema["__fault"].metadata == {"contrada.fault": True}
    rows = {row["place"]: row for row in run(frame, tmp_path)}
    sent = topics.take("mixed")
    assert len(rows) == len(sent) == len(GOOD) + len(BAD)
    by_value = {(s["value"] and bytes(s["value"]), *s["headers"].items()): s for s in sent}
    ids = []
    for message in GOOD:
        found = by_value[message.value, *_headers(message)]
        place = f"mixed/{found['partition']}/{found['offset']}"
        row = rows.pop(place)
        assert row["__fault"] is None
        assert row["wind"] == 12.5
        assert shapely.from_wkb(bytes(row["geometry"])) == shapely.Point(1.5, 2.5)
        assert row["time"] == found["timestamp"]
        ids.append("place" if row["id"] == place else row["id"])
    assert ids == ["feature", "structured", "binary-1", "wkb", "place"]
    for message, code, said, inside in BAD:
        found = by_value[message.value, *_headers(message)]
        place = f"mixed/{found['partition']}/{found['offset']}"
        fault, original = rows[place]["__fault"], rows[place]["__message"]
        assert (fault["code"], fault["place"]) == (code, place + inside)
        assert fault["message"].startswith(said)
        assert original["value"] == message.value
        assert (original["topic"], original["offset"]) == ("mixed", found["offset"])


def _headers(message: Sent) -> list[tuple[str, bytes]]:
    return [(header["key"], header["value"]) for header in message.header_list() or []]


@pytest.mark.parametrize(("format", "good"), [("geojson", 3), ("cloudevents", 2), ("wkb", 1)])
def test_a_batch_in_one_format_has_a_row_for_every_message_too(
    spark: "SparkSession", mixed: str, format: str, good: int
) -> None:
    frame = contrada.spark.read_kafka(
        spark, mixed, schema="wind double NOT NULL", format=format, batch=True
    )
    assert frame.schema["geometry"].metadata.get("crs") == (
        None if format == "wkb" else "OGC:CRS84"
    )
    faults = [row["__fault"] for row in frame.collect()]
    assert len(faults) == len(GOOD) + len(BAD)
    assert faults.count(None) == good


def test_a_huge_message_is_read_and_one_beyond_the_limit_is_bad(
    spark: "SparkSession", topics: KafkaTopics
) -> None:
    ring = [[x / 1000, x % 2] for x in range(400_000)]
    line = {"type": "LineString", "coordinates": ring}
    beyond = feature(geometry=None, text="x" * MESSAGE_BYTES_MAX)
    topics.put("huge", [send(feature(geometry=line)), send(beyond), send(feature())])
    frame = contrada.spark.read_kafka(spark, topics.uri("huge"), schema="wind double", batch=True)
    rows = sorted(frame.collect(), key=lambda row: len(row["geometry"] or b""))
    assert [row["wind"] for row in rows] == [None, 12.5, 12.5]
    assert "(MESSAGE_BYTES_MAX)" in rows[0]["__fault"]["message"]
    assert len(rows[0]["__message"]["value"]) > MESSAGE_BYTES_MAX
    assert len(rows[2]["geometry"]) == 9 + 16 * len(ring)
    assert rows[2]["__fault"] is None


def test_reading_begins_at_an_offset_or_a_moment(
    spark: "SparkSession", topics: KafkaTopics
) -> None:
    topics.put("starting", [Sent(json.dumps(feature(n)).encode(), key=b"one") for n in range(4)])
    sent = topics.take("starting")
    (partition,) = {row["partition"] for row in sent}
    offsets = {partition: 3, 1 - partition: -2}

    def winds(**how: Any) -> list[float]:
        uri = topics.uri("starting")
        frame = contrada.spark.read_kafka(spark, uri, schema="wind double", batch=True, **how)
        return sorted(row["wind"] for row in frame.collect())

    assert winds(starting=offsets) == [3.0]
    assert winds(starting="1970-01-01") == [0.0, 1.0, 2.0, 3.0]
    assert winds(starting="2999-01-01") == []
    ending = json.dumps({"starting": {str(partition): 2, str(1 - partition): -1}})
    assert winds(endingOffsets=ending) == [0.0, 1.0]


def test_doubles_of_a_cloud_event_are_dropped_and_nothing_else(
    spark: "SparkSession", topics: KafkaTopics, tmp_path: Path
) -> None:
    messages = [
        send(cloud_event({"wind": 1}, id="1")),
        send(cloud_event({"wind": 1}, id="1")),
        send(cloud_event({"wind": 2}, id="1", source="/other")),
        send(cloud_event({"wind": "bad"}, id="2")),
        send(cloud_event({"wind": "bad"}, id="2")),
        Sent(None),
        Sent(None),
        send(feature(id="same")),
        send(feature(id="same")),
    ]
    topics.put("doubled", messages)

    def read(**how: Any) -> "DataFrame":
        return contrada.spark.read_kafka(
            spark, topics.uri("doubled"), schema="wind double", drop_doubles="10 minutes", **how
        )

    in_batch = read(batch=True)
    assert "__name" not in in_batch.columns
    assert in_batch.count() == len(messages) - 1
    assert len(run(read(), tmp_path)) == len(messages) - 1
    topics.put("doubled", messages)  # in a batch of their own, after a restart
    rows = run(read(), tmp_path)
    assert len(rows) == 2 * (len(messages) - 1) - 2
    assert Counter(row["wind"] for row in rows if row["__fault"] is None) == {1: 1, 2: 1, 12.5: 4}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"drop_doubles": "ten minutes"}, "drop_doubles is a span such as '10 minutes'"),
        ({"drop_doubles": 10}, "drop_doubles is a span such as '10 minutes', not 10"),
        ({"drop_doubles": "1 hour", "format": "wkb"}, "drop_doubles needs CloudEvents"),
        ({"format": "avro"}, "format 'avro' is unknown; there are auto, geojson"),
        ({"schema": "wind"}, "schema 'wind' is not DDL"),
        ({"schema": "double"}, "schema 'double' names no attributes"),
        ({"schema": 7}, "schema is DDL or a StructType, not 7"),
        ({"schema": "geometry binary"}, "'geometry' cannot be in the schema"),
        ({"schema": "__wind double"}, "'__wind' cannot be an attribute"),
        ({"schema": "wind double, Wind int"}, "two columns are named 'Wind'"),
        ({"schema": "wind double", "place": "WIND"}, "two columns are named 'WIND'"),
        ({"schema": "wind double", "time": "id"}, "two columns are named 'id'"),
        ({"schema": "wait interval"}, "column 'wait': no message has values of type interval"),
        ({"schema": "m map<int, int>"}, "column 'm': no message has values of type map<int,int>"),
        ({"schema": "id double"}, "column 'id': an id is a string or a bigint, not double"),
        ({"crs": "EPSG:0"}, "crs: unknown coordinate system"),
        ({"maxOffsets": 10}, "read_kafka has no option 'maxOffsets'"),
        ({"starting": "soon"}, "starting is 'earliest'"),
    ],
)
@pytest.mark.usefixtures("kafka")
def test_what_cannot_be_read_is_refused_by_name(
    spark: "SparkSession", how: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        contrada.spark.read_kafka(spark, "kafka://localhost/topic", **how)
    assert message in str(refused.value)


def test_every_type_that_a_schema_may_have_comes_through_spark(
    spark: "SparkSession", topics: KafkaTopics
) -> None:
    schema = (
        "truth boolean, small tinyint, single float, exact decimal(9, 3), day date, "
        "moment timestamp, local timestamp_ntz, tags array<string>, inner struct<a: int NOT NULL>, "
        "numbers map<string, double>, area binary"
    )
    properties = {
        "truth": True,
        "small": -1,
        "single": 0.5,
        "exact": 1.125,
        "day": "2026-11-18",
        "moment": "2026-11-18T09:00:00+01:00",
        "local": "2026-11-18T09:00:00",
        "tags": ["a", None],
        "inner": {"a": 1},
        "numbers": {"n": 1},
        "area": {"type": "Point", "coordinates": [1, 2]},
    }
    topics.put("typed", [send({**feature(), "properties": properties}), Sent(None)])
    frame = contrada.spark.read_kafka(spark, topics.uri("typed"), schema=schema, batch=True)
    assert "array" not in frame.schema["__message"].dataType.simpleString()  # see `kafka_headers`
    good, bad = sorted(frame.collect(), key=lambda row: row["__fault"] is not None)
    assert bad["tags"] is None
    assert good["__fault"] is None
    expected = {
        "truth": True,
        "small": -1,
        "single": 0.5,
        "exact": Decimal("1.125"),
        "day": date(2026, 11, 18),
        "moment": datetime(2026, 11, 18, 8),  # noqa: DTZ001  in the zone of the session, UTC
        "local": datetime(2026, 11, 18, 9),  # noqa: DTZ001
        "tags": ["a", None],
        "inner": {"a": 1},
        "numbers": {"n": 1.0},
        "area": bytearray(shapely.to_wkb(shapely.Point(1, 2))),
    }
    assert expected.items() <= good.asDict(recursive=True).items()


@pytest.mark.usefixtures("kafka")
def test_ids_and_systems_are_as_declared(spark: "SparkSession") -> None:
    frame = contrada.spark.read_kafka(
        spark, "kafka://localhost/topic", schema="wind double, id int", crs="EPSG:2154", batch=True
    )
    assert frame.columns == ["id", "wind", "geometry", "__fault", "__message"]
    assert frame.schema["id"].dataType.simpleString() == "bigint"
    assert frame.schema["geometry"].metadata == {"crs": "EPSG:2154"}


@pytest.mark.usefixtures("kafka")
@pytest.mark.parametrize(("format", "crs"), [("geojson", "OGC:CRS84"), ("wkb", None)])
def test_a_geometry_that_the_schema_declares_states_its_system_or_that_it_is_unknown(
    spark: "SparkSession", format: str, crs: str | None
) -> None:
    frame = contrada.spark.read_kafka(
        spark, "kafka://localhost/topic", schema="wind double, area binary", format=format
    )
    assert frame.schema["area"].metadata == {"crs": crs}
    assert frame.schema["wind"].metadata == {}


def test_security_options_reach_kafka_and_are_never_shown(
    spark: "SparkSession",
    topics: KafkaTopics,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    uri = topics.uri("secret")
    stream = contrada.spark.read_kafka(spark, uri, **SECRETS)
    stream.explain(extended=True)
    once = {"fetchOffset.numRetries": 1, **SECRETS}
    batch = contrada.spark.read_kafka(spark, uri, batch=True, **once)
    with pytest.raises(Exception, match="Failed to create new KafkaAdminClient") as refused:
        batch.collect()
    shown = "".join(capfd.readouterr()) + caplog.text + repr(stream) + repr(batch)
    assert "kafka.sasl.jaas.config" in shown
    assert "hush" not in shown + str(refused.value)


@pytest.mark.usefixtures("kafka")
@pytest.mark.parametrize("batch", [True, False])
def test_a_session_without_the_connector_says_how_to_get_it(
    spark: "SparkSession", batch: bool
) -> None:
    assert spark._jvm is not None
    thread = spark._jvm.java.lang.Thread.currentThread()
    loader = thread.getContextClassLoader()
    thread.setContextClassLoader(loader.getParent())  # which knows no jars but Spark's own
    try:
        with pytest.raises(MissingPackage) as refused:
            contrada.spark.read_kafka(spark, "kafka://localhost/topic", batch=batch)
    finally:
        thread.setContextClassLoader(loader)
    coordinate = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
    assert f"spark.jars.packages={coordinate}" in str(refused.value)
    assert "make kafka" in str(refused.value)


def test_a_stream_of_answers_goes_out_and_comes_back_and_bad_events_are_put_aside(
    spark: "SparkSession", mixed: str, topics: KafkaTopics, tmp_path: Path
) -> None:
    events = contrada.spark.read_kafka(spark, mixed, schema="wind double")
    answer = events.selectExpr(
        "id AS event",
        "IF(__fault IS NULL, 'fence', NULL) AS subscription",
        "wind",
        "geometry",
        "__fault AS error",
        "__message",
    )
    query = (
        as_messages(answer, "matches", "quarantine")
        .writeStream.format("kafka")
        .options(**topics.writing())
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    back = contrada.spark.read_kafka(
        spark,
        topics.uri("matches"),
        schema="event string, subscription string, wind double",
        format="cloudevents",
        batch=True,
    ).collect()
    assert [row["__fault"] for row in back] == [None] * len(GOOD)
    assert {(row["subscription"], row["wind"]) for row in back} == {("fence", 12.5)}
    assert {row["id"] for row in back} == {f"{row['event']}|fence" for row in back}
    assert {shapely.from_wkb(bytes(row["geometry"])).wkt for row in back} == {"POINT (1.5 2.5)"}
    keys = {bytes(row["key"]).decode() for row in topics.take("matches")}
    assert keys == {row["event"] for row in back}
    aside = topics.take("quarantine")
    assert len(aside) == len(BAD)
    originals = Counter(message.value for message, *_ in BAD)
    assert Counter(row["value"] and bytes(row["value"]) for row in aside) == originals
    for row in aside:
        assert row["headers"]["contrada-source"].startswith(b"mixed/")
        assert row["headers"]["contrada-error-place"].startswith(row["headers"]["contrada-source"])


def test_events_from_kafka_are_matched(spark: "SparkSession", topics: KafkaTopics) -> None:
    inside, outside = feature(id="in"), feature(geometry=None, id="out")
    topics.put("events", [send(inside), send(outside)])
    events = contrada.spark.read_kafka(
        spark, topics.uri("events"), schema="wind double", batch=True
    )
    area = [("area", "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))")]
    areas = spark.createDataFrame(area, "id string, geometry string")
    found = contrada.spark.match(events, areas, keep=["wind"]).collect()
    assert [(row["event"], row["subscription"], row["wind"]) for row in found] == [
        ("in", "area", 12.5)
    ]
