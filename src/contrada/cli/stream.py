"""`contrada stream`: match events as they come, for ever, against subscriptions that may change."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrada.cli.progress import require_tqdm
from contrada.cli.spark_start import check_master, our_errors, our_log, read_conf, start
from contrada.cli.stream_options import add_stream_options
from contrada.cli.stream_publishing import SubscriptionPublisher
from contrada.cli.stream_report import StreamReport
from contrada.cli.stream_state import StreamState
from contrada.cli.terminal import complain, say, show
from contrada.errors import InvalidInput, Unavailable
from contrada.spark_options import SparkOptions, read_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from contrada.spark.stream_watch import BatchReport

_POLL_S = 0.05
_REPORTS_S = 30.0  # how long Spark may take to say what the last batch did
_LOOK_S = 1.0  # how often the file of subscriptions is looked at
_STOP_S = 60.0  # how long the batch under way may take when the command is told to stop
_QUARANTINE = "-quarantine"  # what follows the name of a topic


def add_parser(commands: Any) -> None:
    """Describe the command."""
    add_stream_options(commands).set_defaults(run=run, output=None)


def run(options: argparse.Namespace) -> int:
    """Run a stream until it is told to stop, or with `--once` until it has caught up."""
    require_tqdm()
    check_master("--spark", options.spark)
    every_us = read_duration(options.every, "--every")
    state = StreamState.open(options.state, {"events": options.events, "to": options.to})
    config = read_conf(options.conf)
    report = StreamReport()
    with our_errors(), our_log():
        say(f"starting Spark on {options.spark}")
        spark = start(options.spark, config, "starting Spark")
        subscriptions, publisher = _open_subscriptions(spark, options, state)
        events = _open_events(spark, options, state)
        query = _start(events, subscriptions, options, state, report, every_us / 1e6)
        is_stopped = _wait(query, publisher)
        _await_reports(query, report)
    report.show(sys.stderr, is_last=True)
    if is_stopped:
        say(f"stopped; the same --state {options.state} goes on from here")
    if options.json:
        show(json.dumps(report.as_json()))
    return 0


def _open_subscriptions(
    spark: "SparkSession", options: argparse.Namespace, state: StreamState
) -> tuple[str, SubscriptionPublisher | None]:
    """Publish the file of subscriptions, unless they are a set that somebody else publishes."""
    from contrada.spark.published_sets import list_versions, split_uri

    text = options.subscriptions
    is_published = "#" in text or "://" in text
    if is_published or (Path(text).is_dir() and list_versions(split_uri(text)[0])):
        return text, None
    publisher = SubscriptionPublisher(spark, options, state.subscriptions)
    publisher.begin()
    return state.subscriptions, publisher


def _open_events(
    spark: "SparkSession", options: argparse.Namespace, state: StreamState
) -> "DataFrame":
    if options.events.startswith("kafka://"):
        return _open_topic(spark, options, state)
    from contrada.spark.event_files import find_first
    from contrada.spark.file_stream import FileColumns, read_file_stream

    if options.schema is not None or options.kafka:
        raise InvalidInput("--schema and --kafka are for events from kafka://…")
    if state.columns is not None:
        columns = FileColumns.of(state.columns)
    else:
        first = find_first(options.events)
        if first is None:
            raise InvalidInput(
                f"--events {options.events}: there is no file yet from which the columns could be "
                "learnt; begin with one, which may have a single row"
            )
        columns = FileColumns.survey(first, options.event_id)
        state.settle(columns.as_json())
    return read_file_stream(spark, options.events, columns, files_max=options.files)


def _open_topic(
    spark: "SparkSession", options: argparse.Namespace, state: StreamState
) -> "DataFrame":
    import contrada.spark

    stated = state.columns or {"schema": options.schema or ""}
    if options.schema is not None and stated["schema"] != options.schema:
        raise InvalidInput(
            f"--schema {options.schema}: the stream began with {stated['schema']}; another one "
            "needs a folder of its own"
        )
    beside: dict[str, Any] = _read_kafka_options(options)
    events = contrada.spark.read_kafka(spark, options.events, schema=stated["schema"], **beside)
    state.settle(stated)
    return events


def _read_kafka_options(options: argparse.Namespace) -> dict[str, str]:
    found = {}
    for setting in options.kafka or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise InvalidInput(f"--kafka {name}: must be KEY=VALUE")
        found[name if name.startswith("kafka.") else f"kafka.{name}"] = value
    return found


def _start(
    events: "DataFrame",
    subscriptions: str,
    options: argparse.Namespace,
    state: StreamState,
    report: StreamReport,
    every_s: float,
) -> "StreamingQuery":
    import contrada.spark

    chosen = SparkOptions()
    answer = contrada.spark.match(
        events,
        subscriptions,
        plan=options.plan or chosen.plan,
        quarantine=True,
        repair=options.repair,
        strict=options.strict,
        keep=options.keep or (),
        event_id=_choose_id(events, options),
    )

    def take(batch: "BatchReport") -> None:
        report.add(batch)
        report.show(sys.stderr)
        if options.metrics is not None:
            try:
                report.write_metrics(Path(options.metrics))
            except (OSError, Unavailable) as fault:
                complain(f"--metrics {options.metrics}: {fault}")

    is_topic = options.to.startswith("kafka://")
    return contrada.spark.write_stream(
        answer,
        options.to,
        checkpoint=state.checkpoint,
        quarantine=options.to + _QUARANTINE if is_topic else state.quarantine,
        every=None if options.once else every_s,
        once=options.once,
        on_batch=take,
        **(_read_kafka_options(options) if is_topic else {}),
    )


def _choose_id(events: "DataFrame", options: argparse.Namespace) -> str:
    stated: str | None = options.event_id
    return stated if stated in events.columns and stated is not None else "id"


def _wait(query: "StreamingQuery", publisher: SubscriptionPublisher | None) -> bool:
    """Wait for the end, and publish what changes; return whether somebody stopped it before."""
    try:
        while not query.awaitTermination(_LOOK_S):  # type: ignore[arg-type]
            if publisher is not None:
                publisher.look()
    except KeyboardInterrupt:
        _stop(query)
        return True
    return False


def _await_reports(query: "StreamingQuery", report: StreamReport) -> None:
    """Wait until the last batch is counted, of which Spark speaks a moment after it."""
    progress = query.lastProgress
    limit = time.monotonic() + _REPORTS_S
    while progress is not None and progress.numInputRows and time.monotonic() < limit:
        if report.last is not None and report.last.batch >= progress.batchId:
            return
        time.sleep(_POLL_S)


def _stop(query: "StreamingQuery") -> None:
    """Let the batch under way end, then stop; a batch that is cut off would be run again."""
    say("stopping after the batch under way")
    limit = time.monotonic() + _STOP_S
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < limit:
        time.sleep(_POLL_S)
    query.stop()
