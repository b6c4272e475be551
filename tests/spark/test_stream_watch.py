"""What a stream says of itself; the progress is Spark's own, and no Spark runs."""

from __future__ import annotations

import json
import logging
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from contrada.spark import stream_watch
from contrada.spark.match_counts import EventCounts
from contrada.spark.stream_listening import SessionListening
from contrada.spark.stream_watch import BatchReport, StreamWatch, count_behind
from contrada.spark.version_names import number_version

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

STATE: dict[str, Any] = {
    "operatorName": "dedupeWithinWatermark",
    **dict.fromkeys(
        (
            "numRowsTotal",
            "numRowsUpdated",
            "numRowsRemoved",
            "allUpdatesTimeMs",
            "allRemovalsTimeMs",
            "commitTimeMs",
            "memoryUsedBytes",
            "numShufflePartitions",
            "numStateStoreInstances",
        ),
        0,
    ),
    "customMetrics": {},
}
DONE = {"set_aside": 1, "mended": 2, "without_geometry": 0, "version_low": number_version("1-a")}


def progress(
    evaluated: int | None = 4,
    version: str = "1-a",
    sources: list[dict[str, Any]] | None = None,
    late: int = 0,
) -> StreamingQueryProgress:
    """Progress in which five events came in, and what became of them."""
    from pyspark.sql.streaming.listener import StreamingQueryProgress

    observed = {
        "contrada_in_f00d": {"events": 5},
        "contrada_out_f00d": {
            **DONE,
            "evaluated": evaluated,
            "version_high": number_version(version),
        },
        "contrada_written_beef": {"rows": 9},
        "of somebody else": {"events": 7},
    }
    file = {"description": "files", "endOffset": {"logOffset": 3}, "latestOffset": None}
    return StreamingQueryProgress.fromJson(
        {
            "id": "00000000-0000-0000-0000-000000000001",
            "runId": "00000000-0000-0000-0000-000000000002",
            "name": None,
            "timestamp": "2026-11-18T09:10:45.803Z",
            "batchId": 8,
            "batchDuration": 1500,
            "durationMs": {"addBatch": 900},
            "eventTime": {},
            "stateOperators": [{**STATE, "numRowsDroppedByWatermark": late}],
            "sources": [_source(source) for source in ([file] if sources is None else sources)],
            "sink": {"description": "sink", "numOutputRows": -1, "metrics": {}},
            "numInputRows": 5,
            "inputRowsPerSecond": 1.0,
            "processedRowsPerSecond": 10.0,
            "observedMetrics": observed,
        }
    )


def _source(stated: dict[str, Any]) -> dict[str, Any]:
    rates = {"numInputRows": 5, "inputRowsPerSecond": 1.0, "processedRowsPerSecond": 10.0}
    return {"description": "", "startOffset": None, **stated, **rates, "metrics": {}}


def reports_of(*batches: StreamingQueryProgress) -> list[BatchReport]:
    found: list[BatchReport] = []
    watch = StreamWatch(None, found.append)  # type: ignore[arg-type]
    for batch in batches:
        watch.report(batch)
    return found


def test_a_report_has_what_became_of_the_events_of_a_batch() -> None:
    (report,) = reports_of(progress())
    assert report == BatchReport(
        batch=8,
        counts=EventCounts(5, 4, 1, 2, 0),
        rows=9,
        version="1-0000000a",
        seconds=1.5,
        durations_ms={"addBatch": 900},
    )


def test_a_report_says_how_far_behind_a_topic_is() -> None:
    ends = {"positions": {"0": 40, "1": 7}}
    latest = {"positions": {"0": 50, "1": 7}}
    (report,) = reports_of(progress(sources=[{"endOffset": ends, "latestOffset": latest}]))
    assert (report.offsets_behind, report.seconds_behind) == (10, 1.0)
    (report,) = reports_of(progress(sources=[{"endOffset": ends, "latestOffset": ends}]))
    assert (report.offsets_behind, report.seconds_behind) == (0, 0.0)


@pytest.mark.parametrize("latest", [None, "", "7", "null", '{"logOffset": 3}', '{"a": {"0": "b"}}'])
def test_who_does_not_number_what_it_has_is_not_said_to_be_behind(latest: str | None) -> None:
    topic = json.dumps({"positions": {"0": 1}})
    assert count_behind([(topic, topic), (topic, latest)]) is None
    assert count_behind([(topic, topic), (latest, topic)]) is None


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"evaluated": 3}, "batch 8: 5 events came in, and 3 were evaluated and 1 set aside"),
        ({"evaluated": None}, "batch 8: 5 events came in, and 0 were evaluated"),
        (
            {"version": "2-b"},
            "batch 8: its tasks met two versions of the subscriptions, 1-0000000a",
        ),
    ],
)
def test_what_must_not_be_is_logged_as_an_error_whatever_the_sink(
    batch: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        for one in (progress(), progress(**batch)):
            SessionListening().hear(one)
    (record,) = caplog.records
    assert record.getMessage().startswith(message)


def test_a_callback_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: BatchReport) -> None:
        raise ZeroDivisionError

    StreamWatch(None, fail).report(progress())  # type: ignore[arg-type]
    assert "batch 8: on_batch failed" in caplog.text


class StoppedQuery:
    """A query that only knows when it is stopped."""

    runId = "a run"  # noqa: N815

    def __init__(self) -> None:
        self.is_stopped = Event()

    def stop(self) -> None:
        self.is_stopped.set()


def test_a_query_is_stopped_after_a_batch_that_does_not_add_up() -> None:
    query, watch = StoppedQuery(), StreamWatch(None)  # type: ignore[arg-type]
    watch.bind(query)  # type: ignore[arg-type]
    watch.judge(progress())
    assert not query.is_stopped.is_set()
    watch.judge(progress(evaluated=3))
    assert query.is_stopped.wait(60)
    (report,) = reports_of(progress(evaluated=3))
    assert report.fault is not None
    assert report.fault.startswith("5 events came in, and 3 were evaluated")


def test_that_counts_are_not_known_in_time_is_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_watch, "_ask_spark", lambda _: None)
    watch = StreamWatch(None)  # type: ignore[arg-type]
    for number in range(2):
        watch.check(number)
    (record,) = caplog.records
    assert "stops the query only after it was written" in record.getMessage()


def test_rows_that_a_watermark_drops_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    watch = StreamWatch(None)  # type: ignore[arg-type]
    watch.judge(progress())
    assert not caplog.records
    watch.judge(progress(late=12))
    assert "batch 8: 12 rows came later than a watermark allows" in caplog.text
