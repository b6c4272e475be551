"""Messages for Kafka of an answer: a CloudEvent for each row, bad events as they came.

A message is keyed by its event, so that those of one event keep their order; one of a transition by
its object, so that what becomes of an object is read in order. The id of a CloudEvent is made of
what names its row, the event and the subscription, and nothing else: whoever reads a row twice,
because it was written again after a failure, finds the same id. Where an answer has the place of
the message that each event came in (`__place`), that names the event: its own id may be that of a
thing which sends many.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from contrada.errors import InvalidInput
from contrada.files.cloudevents import STRUCTURED, frame_texts
from contrada.files.json_columns import JsonPieces, escape
from contrada.model.event import GEOMETRY
from contrada.spark.answering import TALLY
from contrada.spark.frames import SOURCE_MESSAGE, SOURCE_PLACE, with_wkb
from contrada.spark.handshake import Handshake
from contrada.spark.kafka_headers import unpack_headers
from contrada.spark.kafka_uris import read_topic
from contrada.spark.task_chains import find_answer
from contrada.spark.task_errors import noting_errors
from contrada.spark.transition_answers import TRANSITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CountMessages = Callable[["DataFrame", str | None], "DataFrame"]

MATCH, COUNT, BAD = "contrada.match", "contrada.count", "contrada.error"
TRANSITION_TYPE = "contrada.transition"
ERROR_HEADERS = ("contrada-error-code", "contrada-error-message", "contrada-error-place")
SOURCE_HEADER = "contrada-source"

_EVENT, _SUBSCRIPTION, _ERROR_COLUMN = "event", "subscription", "error"
_NAMES_TRANSITION = ("object", _SUBSCRIPTION, TRANSITION, "time", _EVENT, "version")
_BETWEEN = "|"  # in an id, between what names the row
_MOMENT = "%Y-%m-%dT%H:%M:%SZ"  # seconds have the six digits of microseconds
_CONTENT_TYPE = "content-type"
_CONTENT = f"{STRUCTURED}; charset=UTF-8"
_SCHEMA = "key binary, value binary, headers array<struct<key: string, value: binary>>"
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def as_messages(
    answer: "DataFrame",
    topic: str,
    quarantine_topic: str | None = None,
    *,
    source: str = "",
    count: "CountMessages" = lambda messages, _: messages,
) -> "DataFrame":
    """Make of an answer of `match` the columns that Spark writes to Kafka.

    They are `topic, key, value, headers`. Each row of the answer is a CloudEvent in structured mode
    whose `data` are the columns of the row, with geometries as GeoJSON; its source is `source`, or
    else `/contrada/` and the topic. A bad event goes to the quarantine topic with its error in
    headers: as the message that it came in, or where that is not known as a CloudEvent, too.
    `count` may count the messages: it is told in which column a bad event has something.
    """
    from pyspark.sql import functions

    read_topic(topic)
    has_errors = _ERROR_COLUMN in answer.columns
    if has_errors and quarantine_topic is None:
        raise InvalidInput(
            "the answer has bad events, in its column 'error': name a topic for them"
        )
    if _EVENT not in answer.columns:
        raise InvalidInput(
            f"messages are made of an answer of match, which has a column {_EVENT!r}; there are "
            f"{', '.join(answer.columns)}"
        )
    names = tuple(answer.columns)
    shapes = tuple(field.name for field in answer.schema if _is_geometry(field))
    chosen = with_wkb(answer, names, "the answer")
    # PySpark's mapInArrow takes no column with a dot or a backtick in its name.
    numbered = chosen.toDF(*(f"column{i}" for i in range(len(names))))
    task = EncodeTask(Handshake.here(), names, shapes, source or f"/contrada/{topic}")
    origin = find_answer(answer)
    if origin is None:
        messages = numbered.mapInArrow(task, _SCHEMA)
    else:
        messages = origin.follow(EncodeAnswerTask(task), _SCHEMA)
    messages = count(messages, "headers" if has_errors else None)
    # What is the same in every message is added here: it need not come from Python.
    stated = functions.struct(
        functions.lit(_CONTENT_TYPE).alias("key"),
        functions.lit(_CONTENT).cast("binary").alias("value"),
    )
    headers, target = functions.col("headers"), functions.lit(topic)
    if has_errors:
        bad_topic = functions.lit(read_topic(str(quarantine_topic)))
        target = functions.when(headers.isNull(), target).otherwise(bad_topic)
    return messages.select(
        target.alias("topic"),
        "key",
        "value",
        functions.coalesce(headers, functions.array(stated)).alias("headers"),
    )


def _is_geometry(field: Any) -> bool:
    """Whether a column holds geometries: by its name, or since it states a coordinate system."""
    metadata = field.metadata or {}
    return field.name == GEOMETRY or "crs" in metadata or bool(metadata.get("primary"))


@dataclass(frozen=True, slots=True)
class EncodeTask:
    """The function for `mapInArrow`: rows of an answer to keys, values, and headers of bad ones."""

    handshake: Handshake
    names: tuple[str, ...]
    shapes: tuple[str, ...]
    source: str

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Encode batches; as many messages go out as rows came in."""
        self.handshake.check()
        for numbered in batches:
            yield from self.encode_all(numbered.rename_columns(list(self.names)))

    def encode_all(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Encode rows, those that have no error and those that have one."""
        if _ERROR_COLUMN not in self.names:
            yield self.encode(batch)
            return
        is_bad = batch.column(_ERROR_COLUMN).is_valid()
        good, bad = batch.filter(pc.invert(is_bad)), batch.filter(is_bad)
        if good.num_rows:
            yield self.encode(good)
        if bad.num_rows:
            yield self._quarantine(bad)

    def encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Encode rows that have no error."""
        if TRANSITION in self.names:
            return self._encode_transitions(batch)
        is_pairs = _SUBSCRIPTION in self.names
        events = batch.column(_EVENT).cast(pa.string())
        ids: list[str | pa.Array] = [_escape_event(self._name_events(batch, events))]
        if is_pairs:
            ids += [_BETWEEN, batch.column(_SUBSCRIPTION).cast(pa.string())]
        values = self._write(batch, ids, MATCH if is_pairs else COUNT, self._data(batch))
        return _as_batch(events, values, pa.nulls(batch.num_rows, _HEADERS))

    def _encode_transitions(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ids: list[str | pa.Array] = []
        for name in _NAMES_TRANSITION:
            column = batch.column(name)
            if pa.types.is_timestamp(column.type):
                column = pc.strftime(column.cast(pa.timestamp("us", "UTC")), _MOMENT)
            ids += [_escape_event(column.cast(pa.string())), _BETWEEN]
        values = self._write(batch, ids[:-1], TRANSITION_TYPE, self._data(batch))
        keys = batch.column("object").cast(pa.string())
        return _as_batch(keys, values, pa.nulls(batch.num_rows, _HEADERS))

    def _write(
        self,
        batch: pa.RecordBatch,
        ids: list[str | pa.Array],
        type: str,
        data: list[tuple[str, pa.Array]],
    ) -> pa.Array:
        before, between, after = frame_texts(self.source, type)
        pieces = JsonPieces(batch.num_rows)
        pieces.add_text(f'{before}"')
        for part in ids:
            if isinstance(part, str):
                pieces.add_text(part)
            else:
                pieces.add_raw(escape(pc.fill_null(part, "")))
        pieces.add_text(f'"{between}')
        pieces.add_object(data, self.shapes)
        pieces.add_text(after)
        return pieces.join()

    def _data(self, batch: pa.RecordBatch) -> list[tuple[str, pa.Array]]:
        """Return the columns that make the data: all but those that speak of its source."""
        hidden = (_ERROR_COLUMN, SOURCE_MESSAGE, SOURCE_PLACE)
        return [
            (name, column)
            for name, column in zip(self.names, batch.columns, strict=True)
            if name not in hidden
        ]

    def _quarantine(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Encode bad events: each as it came, if that is known, with its error in headers."""
        events = batch.column(_EVENT).cast(pa.string())
        places = pc.struct_field(batch.column(_ERROR_COLUMN), "place")
        named = pc.coalesce(self._name_events(batch, events), places)
        ids: list[str | pa.Array] = [_escape_event(named), f"{_BETWEEN}{_ERROR_COLUMN}"]
        data = [*self._data(batch), (_ERROR_COLUMN, batch.column(_ERROR_COLUMN))]
        written = self._write(batch, ids, BAD, data).cast(pa.binary())
        rows = zip(
            batch.column(_ERROR_COLUMN).to_pylist(),
            self._messages(batch),
            events.cast(pa.binary()).to_pylist(),
            written.to_pylist(),
            strict=True,
        )
        keys, values, headers = zip(*(_set_aside(*row) for row in rows), strict=True)
        return _as_batch(
            pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(headers, _HEADERS)
        )

    def _name_events(self, batch: pa.RecordBatch, events: pa.Array) -> pa.Array:
        """Return what names each event: the place that it came from, if there is one, or its id."""
        if SOURCE_PLACE not in self.names:
            return events
        return pc.coalesce(batch.column(SOURCE_PLACE), events)

    def _messages(self, batch: pa.RecordBatch) -> list[Any]:
        if SOURCE_MESSAGE not in self.names:
            return [None] * batch.num_rows
        return list(batch.column(SOURCE_MESSAGE).to_pylist())


@dataclass(frozen=True, slots=True)
class EncodeAnswerTask:
    """The same for what a task yields: rows that only count, if there are any, are handed on."""

    encoding: EncodeTask

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Encode batches, each of which has rows of an answer or one row that counts."""
        for batch in batches:
            if TALLY not in batch.schema.names:
                yield from self.encoding.encode_all(batch)
                continue
            tallies = batch.column(TALLY)
            if tallies.null_count < batch.num_rows:
                assert not tallies.null_count, "what a task has done is a batch of its own"
                nothing = pa.nulls(batch.num_rows, pa.binary())
                empty = _as_batch(nothing, nothing, pa.nulls(batch.num_rows, _HEADERS))
                yield empty.append_column(TALLY, tallies)
                continue
            for encoded in self.encoding.encode_all(batch.drop_columns([TALLY])):
                none = pa.nulls(encoded.num_rows, tallies.type)
                yield encoded.append_column(TALLY, none)


def _as_batch(keys: pa.Array, values: pa.Array, headers: pa.Array) -> pa.RecordBatch:
    columns = {"key": keys.cast(pa.binary()), "value": values.cast(pa.binary()), "headers": headers}
    return pa.RecordBatch.from_pydict(columns)


def _escape_event(events: pa.Array) -> pa.Array:
    """Write events so that what follows in an id cannot be taken for a part of them."""
    for letter, written in (("%", "%25"), (_BETWEEN, "%7C")):
        if pc.any(pc.match_substring(events, letter)).as_py():
            events = pc.replace_substring(events, letter, written)
    return events


def _set_aside(
    error: dict[str, str | None], message: Any, event: bytes | None, written: bytes
) -> tuple[bytes | None, bytes | None, list[dict[str, Any]]]:
    """Make key, value and headers of the message that puts a bad event aside."""
    texts = zip(ERROR_HEADERS, (error["code"], error["message"], error["place"]), strict=True)
    told = [{"key": name, "value": (text or "").encode()} for name, text in texts]
    if message is None:
        return event, written, [{"key": _CONTENT_TYPE, "value": _CONTENT.encode()}, *told]
    place = f"{message['topic']}/{message['partition']}/{message['offset']}"
    told.append({"key": SOURCE_HEADER, "value": place.encode()})
    return message["key"], message["value"], [*unpack_headers(message["headers"]), *told]
