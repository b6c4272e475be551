"""Where the events of `contrada stream` come from: files, or a topic of Kafka.

What a stream began with, its columns and what names its events, stands in its state and cannot
change. Options of Kafka's clients may be secret, so that no error shows more than their names.
"""

import argparse
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrada.cli.stream_state import StreamState
from contrada.cli.terminal import complain
from contrada.errors import InvalidInput, blame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLIENT = "kafka."
_LOOK_S = 10.0  # how often a folder is looked at for files that are not read
_TOLD_MAX = 5  # of which so many are named at a time


@dataclass(frozen=True, slots=True)
class OpenedEvents:
    """The events of a stream, the column of their ids, and what `match` keeps beside `--keep`."""

    frame: "DataFrame"
    id_column: str
    kept: tuple[str, ...] = ()


def open_events(
    spark: "SparkSession",
    options: argparse.Namespace,
    state: StreamState,
    kafka: Mapping[str, Any],
) -> OpenedEvents:
    """Open the events as a stream, with the columns that it began with."""
    if is_topic(options.events):
        return _open_topic(spark, options, state, kafka)
    if options.schema is not None:
        raise InvalidInput("--schema is for events from kafka://…; files have their columns")
    return _open_files(spark, options, state)


class PassedOverFiles:
    """Names each file that is not read once, with the reason."""

    def __init__(self, path: str) -> None:
        """Watch a folder, or what a pattern names; of a topic there is nothing to say."""
        self._path = path
        self._told: set[str] = set()
        self._next_look = 0.0

    def look(self) -> None:
        """Name what is new, unless it has looked just now: a folder may have many files."""
        from contrada.spark.event_files import list_passed_over

        if is_topic(self._path) or time.monotonic() < self._next_look:
            return
        with suppress(OSError):  # what cannot be listed is for Spark to say
            found = list_passed_over(self._path)
            new = {file: why for file, why in found.items() if file not in self._told}
            for file, why in list(new.items())[:_TOLD_MAX]:
                complain(f"{file}: is not read: {why}")
            if len(new) > _TOLD_MAX:
                complain(f"{self._path}: {len(new) - _TOLD_MAX:,} more files are not read")
            self._told = set(found)
        self._next_look = time.monotonic() + _LOOK_S


def _open_files(
    spark: "SparkSession", options: argparse.Namespace, state: StreamState
) -> OpenedEvents:
    from contrada.spark.event_files import find_first
    from contrada.spark.file_stream import FileColumns, read_file_stream
    from contrada.spark.frames import DEFAULT_ID

    if state.columns is not None:
        columns = FileColumns.of(state.columns)
        _refuse_another("--event-id", options.event_id, columns.id_column)
    else:
        first = find_first(options.events)
        if first is None:
            raise InvalidInput(
                f"--events {options.events}: there is no file yet from which the columns could be "
                "learnt; begin with one, which may have a single row"
            )
        columns = FileColumns.survey(first, options.event_id)
        state.settle(columns.as_json())
    frame = read_file_stream(spark, options.events, columns, files_max=options.files)
    return OpenedEvents(frame, columns.id_column or DEFAULT_ID)


def _open_topic(
    spark: "SparkSession",
    options: argparse.Namespace,
    state: StreamState,
    kafka: Mapping[str, Any],
) -> OpenedEvents:
    import contrada.spark
    from contrada.spark.frames import DEFAULT_ID, SOURCE_PLACE

    given = {"schema": options.schema or "", "event_id": options.event_id or DEFAULT_ID}
    stated = given if state.columns is None else {**given, **state.columns}
    _refuse_another("--schema", options.schema, stated["schema"])
    _refuse_another("--event-id", options.event_id, stated["event_id"])
    frame = contrada.spark.read_kafka(
        spark, options.events, schema=stated["schema"], place=SOURCE_PLACE, **kafka
    )
    if stated["event_id"] not in frame.columns:
        names = ", ".join(name for name in frame.columns if not name.startswith("__"))
        raise InvalidInput(
            f"--event-id {stated['event_id']}: messages have no such column; --schema declares "
            f"them, and there are {names}"
        )
    if state.columns is None:
        state.settle(stated)
    # Of two messages with the id of one thing, the matches must not look like doubles.
    kept = (SOURCE_PLACE,) if is_topic(options.to) else ()
    return OpenedEvents(frame, stated["event_id"], kept)


def _refuse_another(option: str, given: str | None, stated: str | None) -> None:
    """Refuse what is not as it was when the stream began; what is not given is as it was."""
    if given is not None and given != (stated or ""):
        raise InvalidInput(
            f"{option} {given}: the stream began with {stated or 'none'}; another one needs a "
            "--state of its own"
        )


def is_topic(place: str) -> bool:
    """Whether events come from or matches go to Kafka."""
    return place.lower().startswith("kafka://")


def check_topics(options: argparse.Namespace) -> None:
    """Refuse a topic that is none, before it is written down or shown: it may have a password."""
    from contrada.spark.kafka_uris import read_kafka_uri

    for option in ("events", "to"):
        place = getattr(options, option)
        if is_topic(place):
            try:
                read_kafka_uri(place)
            except InvalidInput as fault:
                raise fault.within(f"--{option}") from None


def read_kafka_options(options: argparse.Namespace) -> dict[str, str]:
    """Read `--kafka-file` and `--kafka`, which goes before it; names get Spark's prefix."""
    found = dict(_read_file(options.kafka_file)) if options.kafka_file is not None else {}
    for number, setting in enumerate(options.kafka or (), 1):
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(
                f"--kafka must be KEY=VALUE; number {number} is not, and not shown, since it may "
                "be secret"
            )
        found[_with_prefix(name)] = value
    if found and not is_topic(options.events) and not is_topic(options.to):
        raise InvalidInput("--kafka and --kafka-file are for events from or matches to kafka://…")
    return found


def _read_file(path: str) -> Iterator[tuple[str, str]]:
    """Read KEY=VALUE lines, as of Java's properties: `#` and `!` begin comments, `\\` goes on."""
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except OSError as fault:
        raise blame(fault, f"--kafka-file {path}: {fault.strerror}") from fault
    except UnicodeDecodeError:
        raise InvalidInput(f"--kafka-file {path}: is not UTF-8") from None
    begun = ""
    for number, line in enumerate(lines, 1):
        begun += line.strip()
        if begun.endswith("\\") and number < len(lines):
            begun = begun[:-1]
            continue
        name, equals, value = begun.partition("=")
        if begun and begun[0] not in "#!":
            if not equals or not name.strip():
                raise InvalidInput(
                    f"--kafka-file {path}, line {number}: must be KEY=VALUE; it is not shown, "
                    "since it may be secret"
                )
            yield _with_prefix(name), value.strip()
        begun = ""


def _with_prefix(name: str) -> str:
    name = name.strip()
    return name if name.startswith(_CLIENT) else _CLIENT + name
