"""`contrada stream`: match events as they come, for ever, against subscriptions that may change."""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrada.cli.interrupting import asked_to_stop
from contrada.cli.progress import require_tqdm
from contrada.cli.spark_start import check_master, our_errors, our_log, read_conf, start
from contrada.cli.stream_errors import explaining_damage
from contrada.cli.stream_options import add_stream_options
from contrada.cli.stream_publishing import SubscriptionPublisher
from contrada.cli.stream_report import StreamReport, check_metrics
from contrada.cli.stream_sources import (
    OpenedEvents,
    PassedOverFiles,
    check_topics,
    is_topic,
    open_events,
    read_kafka_options,
)
from contrada.cli.stream_state import StreamState
from contrada.cli.terminal import STDOUT, complain, say, show
from contrada.cli.track_options import check_stream_track_options, transition_options
from contrada.errors import ContradaError, InvalidInput, RowsLost, read_line
from contrada.spark_options import SparkOptions, read_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from contrada.spark.stream_watch import BatchReport

_POLL_S = 0.02
_REPORTS_S = 30.0  # how long Spark may take to say what the last batch did
_PAUSE_S = 0.2  # until a signal is noticed
_LOOK_S = 1.0  # how often the file of subscriptions is looked at
_STOP_S = 60.0  # how long the batch under way may take when the command is told to stop
_MORE_S = 5.0  # how long after it there may be no pause, before a batch is cut off
_QUARANTINE = "-quarantine"  # what follows the name of a topic


def add_parser(commands: Any, summary: str) -> None:
    """Describe the command."""
    add_stream_options(commands, summary).set_defaults(run=run, output=STDOUT)


def run(options: argparse.Namespace) -> int:
    """Run a stream until it is told to stop, or with `--once` until it has caught up."""
    require_tqdm()
    check_stream_track_options(options)
    check_master("--spark", options.spark)
    check_topics(options)
    every_us = _check_numbers(options)
    if options.metrics is not None:
        check_metrics(Path(options.metrics))
    config, kafka = read_conf(options.conf), read_kafka_options(options)
    report = StreamReport()
    places = {"events": options.events, "to": options.to}
    with StreamState.open(options.state, places) as state, our_errors(), our_log():
        say(f"starting Spark on {options.spark}")
        spark = start(options.spark, config, "starting Spark")
        _write_metrics(report, options.metrics)  # what is there is of the run before
        passed_over = PassedOverFiles(options.events)
        passed_over.look()
        events = open_events(spark, options, state, kafka)
        subscriptions, publisher = _open_subscriptions(spark, options, state)
        with explaining_damage(options.state):
            query = _start(events, subscriptions, options, state, report, every_us / 1e6, kafka)
            is_stopped = _wait(query, publisher, passed_over)
        _await_reports(query, report)
    report.show(sys.stderr, is_last=True)
    if report.fault is not None:
        raise RowsLost(report.fault)
    if is_stopped:
        say(f"stopped; the same --state {options.state} goes on from here")
    if options.json:
        show(json.dumps(report.as_json()))
    return 0


def _check_numbers(options: argparse.Namespace) -> int:
    """Refuse numbers that cannot be, before anything starts; return microseconds of a batch."""
    for option in ("files", "partitions"):
        number = getattr(options, option)
        if number is not None and number < 1:
            raise InvalidInput(f"--{option} must be a number >= 1, not {number}")
    if options.once and options.every is not None:
        raise InvalidInput(
            f"--every {options.every} and --once exclude each other: with --once the stream ends "
            "when it has caught up"
        )
    return read_duration("1 s" if options.every is None else options.every, "--every")


def _open_subscriptions(
    spark: "SparkSession", options: argparse.Namespace, state: StreamState
) -> tuple[str, SubscriptionPublisher | None]:
    """Publish the file of subscriptions, unless they are a set that somebody else publishes."""
    from contrada.spark.published_sets import split_uri
    from contrada.spark.version_names import walk_versions

    text = options.subscriptions
    is_published = "://" in text or ("#" in text and not Path(text).exists())
    if is_published or (Path(text).is_dir() and any(walk_versions(split_uri(text)[0]))):
        return text, None
    publisher = SubscriptionPublisher(spark, options, state.subscriptions)
    publisher.begin()
    return state.subscriptions, publisher


def _start(
    events: OpenedEvents,
    subscriptions: str,
    options: argparse.Namespace,
    state: StreamState,
    report: StreamReport,
    every_s: float,
    kafka: Mapping[str, Any],
) -> "StreamingQuery":
    import contrada.spark

    if options.transitions:
        answer = contrada.spark.transitions(
            events.frame,
            subscriptions,
            quarantine=True,
            event_id=events.id_column,
            **transition_options(options),
        )
    else:
        answer = contrada.spark.match(
            events.frame,
            subscriptions,
            plan=options.plan or SparkOptions().plan,
            quarantine=True,
            repair=options.repair,
            strict=options.strict,
            keep=[*(options.keep or ()), *events.kept],
            event_id=events.id_column,
        )

    def take(batch: "BatchReport") -> None:
        report.add(batch)
        report.show(sys.stderr)
        _write_metrics(report, options.metrics)

    has_topic = is_topic(options.to)
    return contrada.spark.write_stream(
        answer,
        options.to,
        checkpoint=state.checkpoint,
        quarantine=options.to + _QUARANTINE if has_topic else state.quarantine,
        every=None if options.once else every_s,
        once=options.once,
        on_batch=take,
        **(kafka if has_topic else {}),
    )


def _write_metrics(report: StreamReport, path: str | None) -> None:
    if path is not None:
        try:
            report.write_metrics(Path(path))
        except (OSError, ContradaError) as fault:
            complain(f"--metrics {fault}")


def _wait(
    query: "StreamingQuery", publisher: SubscriptionPublisher | None, passed_over: PassedOverFiles
) -> bool:
    """Wait for the end, and publish what changes; return whether somebody stopped it before."""
    next_look = 0.0
    with asked_to_stop() as asked:
        while not query.awaitTermination(_PAUSE_S):  # type: ignore[arg-type]
            if asked.is_set():
                _stop(query)
                return True
            passed_over.look()
            if publisher is not None and time.monotonic() >= next_look:
                publisher.look()
                next_look = time.monotonic() + _LOOK_S
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
    batch = _find_batch(query)
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < limit:
        if _find_batch(query) != batch:  # and the next one has begun, since more is waiting
            limit = min(limit, time.monotonic() + _MORE_S)
        time.sleep(_POLL_S)
    query.stop()
    fault = query.exception()
    if fault is not None:  # of the batch, and not of the signal, which is all that is said else
        complain(read_line(str(fault)) or str(fault).partition("\n")[0])
        raise fault


def _find_batch(query: "StreamingQuery") -> int | None:
    """Return the number of the last batch that ended."""
    progress = query.lastProgress
    return None if progress is None else progress.batchId
