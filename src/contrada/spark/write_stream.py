"""`contrada.spark.write_stream`: the answer of a match on a stream, to folders or to Kafka."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from contrada.errors import InvalidInput
from contrada.flags import check_flags
from contrada.showing import brief, brief_text
from contrada.spark.folder_sink import ERROR, FolderSink, check_columns
from contrada.spark.kafka_uris import is_kafka_uri, read_kafka_uri
from contrada.spark.stream_checkpoints import CheckpointHold, StreamCheckpoint
from contrada.spark.stream_folders import StreamFolder
from contrada.spark.stream_watch import BatchReport, StreamWatch, count_written
from contrada.spark.topic_sink import write_topics
from contrada.spark.uris import as_uri, name_place
from contrada.spark_options import read_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_EVERY = "1 s"  # without an interval an idle stream asks its sources all the time
_ERROR_FIELDS = ["code", "message", "place"]

_Place = str | os.PathLike[str]
Sink = Callable[["DataFrame", int], None]


def write_stream(
    answer: "DataFrame",
    to: _Place,
    *,
    checkpoint: _Place,
    quarantine: _Place | None = None,
    every: str | float | None = None,
    once: bool = False,
    name: str | None = None,
    on_batch: Callable[[BatchReport], object] | None = None,
    **options: Any,
) -> "StreamingQuery":
    """Start a query that writes the answer of a match on a stream, and return it.

    `to` is a folder, or a topic as `kafka://host:port/topic`. Unlike Spark's file sink, whose
    folder only Spark reads rightly, a folder written here can be read at any moment by anything
    that reads Parquet: each batch with rows is a subfolder `batch=N`, which appears whole, once,
    and never changes. That holds where the file system renames folders (local, mounted, HDFS); in
    object stores the files of a batch come one by one, and `_SUCCESS` last. The files are
    GeoParquet where a column is a geometry: the one that states it is the primary one, else the
    first that states a coordinate system, else one of WKB named `geometry`. A row goes to Kafka as
    a CloudEvent, at least once, and doubles have the same `id`.

    `checkpoint` is a folder that the query keeps what it needs in to go on where it stopped, as
    this function does if it is called again with the same folders. Bad events, which
    `match(…, quarantine=True)` has with their `error`, go to `quarantine`, another folder or topic.

    Batches begin every second, or as often as `every` has it, a text such as "10 s" or a number of
    seconds; with `once` the query ends when it has written what is there now. Where the counts of a
    batch do not add up, or its tasks met two versions of the subscriptions, the query fails, before
    anything of the batch is in a folder. `on_batch` is called with a `BatchReport` soon after a
    batch was committed. `options` are those of Kafka's clients, with `kafka.` before them.

    Raises `InvalidInput` for an answer that is not a stream, for arguments that do not fit it or
    each other, for a folder or checkpoint of another query, and for a checkpoint on which a query
    runs. What goes wrong later ends the query, and `awaitTermination` raises it.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> spark.range(18, 20).selectExpr("id", "id AS wind").write.parquet(f"{folder}/in")
    >>> winds = spark.createDataFrame([("gale", "wind > 18")], "id string, filter string")
    >>> version = contrada.spark.publish(winds, f"{folder}/winds")
    >>> events = spark.readStream.schema("id long, wind long").parquet(f"{folder}/in")
    >>> answer = contrada.spark.match(events, f"{folder}/winds")
    >>> query = contrada.spark.write_stream(
    ...     answer, f"{folder}/out", checkpoint=f"{folder}/checkpoint", once=True
    ... )
    >>> query.awaitTermination()
    >>> spark.read.parquet(f"{folder}/out").select("event", "subscription").collect()
    [Row(event=19, subscription='gale')]
    """
    check_flags(once=once)
    for place in (to, quarantine):
        if is_kafka_uri(place):
            read_kafka_uri(str(place))  # no message shows a URI that has a password
    _check_answer(answer, to, quarantine)
    if not is_kafka_uri(to):
        check_columns(answer, as_uri(to))
        for option in options:
            raise InvalidInput(f"write_stream has no option {brief_text(option)!r} for folders")
    trigger = _read_trigger(every, once)
    checkpoint_uri = as_uri(checkpoint).rstrip("/")
    _refuse_nesting(checkpoint_uri, to, quarantine)
    hold = CheckpointHold.take(checkpoint_uri)
    watch = StreamWatch(answer.sparkSession, on_batch, hold.release)
    try:
        opened = StreamCheckpoint.open(checkpoint_uri)
        stream, sink = _prepare(answer, to, quarantine, opened, watch, options)
        writer = stream.writeStream.foreachBatch(sink).trigger(**trigger)
        writer = writer.option("checkpointLocation", checkpoint_uri)
        hold.query = _start(writer if name is None else writer.queryName(name), watch)
    except BaseException:
        hold.release()
        raise
    return hold.query


def _start(writer: "DataStreamWriter", watch: StreamWatch) -> "StreamingQuery":
    query = None
    watch.attach()
    try:
        query = writer.start()
    finally:
        watch.bind(query)
    return query


def _prepare(
    answer: "DataFrame",
    to: _Place,
    quarantine: _Place | None,
    checkpoint: StreamCheckpoint,
    watch: StreamWatch,
    options: dict[str, Any],
) -> tuple["DataFrame", Sink]:
    """Make the stream that is written, and what writes a batch of it."""
    if is_kafka_uri(to):
        bad_topic = None if quarantine is None else os.fspath(quarantine)
        return write_topics(answer, str(to), bad_topic, watch, options)
    counted = count_written(answer, ERROR if quarantine is not None else None)
    uri = as_uri(to).rstrip("/")
    matches = StreamFolder.claim(uri, checkpoint, can_be_new=not checkpoint.has_begun)
    bad = None
    if quarantine is not None:
        bad = StreamFolder.claim(as_uri(quarantine).rstrip("/"), checkpoint, can_be_new=True)
    sink = FolderSink(checkpoint, matches, bad, watch)
    sink.recover()
    return sink.lines(counted), sink


def _check_answer(answer: object, to: _Place, quarantine: _Place | None) -> None:
    """Refuse what is not a stream, and bad events that nothing is said of."""
    if not hasattr(answer, "isStreaming"):
        raise InvalidInput(f"only a DataFrame can be written, not {type(answer).__name__}")
    if not answer.isStreaming:
        raise InvalidInput(
            "the answer is not a stream; write_geoparquet writes one that is there as a whole"
        )
    if not hasattr(answer, "_jdf"):
        raise InvalidInput(
            "write_stream does not run over Spark Connect; write the answer with writeStream, to a "
            "sink of Spark's own"
        )
    frame: Any = answer
    has_errors = _has_errors(frame)
    if has_errors and quarantine is None:
        where = "kafka://…" if is_kafka_uri(to) else "a folder"
        raise InvalidInput(
            f"the answer has bad events, in its column {ERROR!r}: quarantine={where} is where they "
            "go; without quarantine=True of match a bad event fails the query"
        )
    if quarantine is not None and not has_errors:
        raise InvalidInput(
            f"nothing would go to the quarantine {brief(os.fspath(quarantine))}: the answer has no "
            f"column {ERROR!r} of bad events, as match(…, quarantine=True) makes"
        )
    if quarantine is not None and is_kafka_uri(quarantine) and not is_kafka_uri(to):
        raise InvalidInput(
            f"quarantine {brief(os.fspath(quarantine))} is a topic, and {brief(os.fspath(to))} a "
            "folder; give two folders, or two topics"
        )


def _has_errors(answer: "DataFrame") -> bool:
    """Whether an answer has bad events, by the column that `match` makes for them."""
    if ERROR not in answer.columns:
        return False
    return getattr(answer.schema[ERROR].dataType, "names", None) == _ERROR_FIELDS


def _read_trigger(every: str | float | None, once: bool) -> dict[str, Any]:
    if once and every is not None:
        raise InvalidInput(f"every={every!r} and once=True: give one or the other, not both")
    if once:
        return {"availableNow": True}
    milliseconds = read_duration(_EVERY if every is None else every, "every") // 1000
    return {"processingTime": f"{milliseconds} milliseconds"}


def _refuse_nesting(checkpoint: str, to: _Place, quarantine: _Place | None) -> None:
    """Refuse folders of which one lies in the other, where its files would be read along."""
    places = {"checkpoint": checkpoint}
    if not is_kafka_uri(to):
        places["to"] = as_uri(to)
        places |= {} if quarantine is None else {"quarantine": as_uri(quarantine)}
    for role, inner in places.items():
        for other, outer in places.items():
            if role != other and f"{name_place(inner)}/".startswith(f"{name_place(outer)}/"):
                raise InvalidInput(
                    f"{role} {inner} lies in {other} {outer}: give folders of their own"
                )
