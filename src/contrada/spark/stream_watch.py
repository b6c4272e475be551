"""What a running stream says of itself: counts of each batch, its version, how far it is behind.

Counts are observed by name (see `match_counts`). They are known when the tasks of a batch have
ended, so that a sink can refuse a batch whose counts do not add up before anyone sees it; with all
else they come in Spark's progress, when the batch is committed.
"""

import contextlib
import json
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from contrada.errors import RowsLost
from contrada.spark.batch_counts import read_metrics, read_observed
from contrada.spark.match_counts import EventCounts, FollowedCounts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

_WRITTEN = "contrada_written_"
_QUERY_ID = "sql.streaming.queryId"
_PATIENCE_S = 60.0
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What became of a batch of a stream.

    `counts` are those of its events, and `version` the version of a published set that they met,
    both None where the stream is not one answer of `match`; `rows` are the rows of the answer that
    were written as matches. It took `seconds`, of which Spark's phases had `durations_ms`. After it
    the sources had `offsets_behind` more, which at its rate take `seconds_behind`; both are None
    where a source does not number what it has, as files do not. `fault` is what must not be, such
    as counts that do not add up: the query is stopped. `followed` has more of an answer of
    `transitions`, whose `counts` are those of positions taken in and set aside.

    >>> report = contrada.spark.BatchReport(7, None, 3, "2-9f1c04aa", 0.8, {"addBatch": 600})
    >>> report.rows, report.version, report.offsets_behind
    (3, '2-9f1c04aa', None)
    """

    batch: int
    counts: EventCounts | None
    rows: int | None
    version: str | None
    seconds: float
    durations_ms: Mapping[str, int]
    offsets_behind: int | None = None
    seconds_behind: float | None = None
    fault: str | None = None
    followed: FollowedCounts | None = None


class StreamWatch:
    """Watches one query: `check` from inside of a batch, `on_batch` when it is committed."""

    def __init__(
        self,
        spark: "SparkSession",
        on_batch: Callable[[BatchReport], object] | None = None,
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        self._spark = spark
        self._on_batch = on_batch
        self._on_end = on_end
        self._run_id: object = None
        self._is_bound = Event()
        self._listener: Any = None
        self._query: StreamingQuery | None = None
        self._is_blind = False

    def check(self, number: int) -> None:
        """Refuse a batch whose counts do not add up, when its tasks have ended."""
        metrics = _ask_spark(self._spark)
        if metrics is None and not self._is_blind:
            self._is_blind = True
            _logger.warning(
                "this Spark does not say what a batch has counted before it is committed: one "
                "that does not add up stops the query only after it was written"
            )
        if (fault := find_fault(metrics or {})) is not None:
            raise RowsLost(f"batch {number}: {fault}")

    def judge(self, progress: "StreamingQueryProgress") -> None:
        """Stop the query after a batch that `check` should have refused; warn of late rows."""
        metrics = {name: row.asDict() for name, row in progress.observedMetrics.items()}
        if find_fault(metrics) is not None and self._query is not None:
            # Not in this thread, which is Spark's: it would wait for itself.
            Thread(target=self._query.stop, daemon=True).start()
        if late := sum(state.numRowsDroppedByWatermark for state in progress.stateOperators):
            _logger.warning(
                "batch %d: %d rows came later than a watermark allows and were dropped; if that "
                "is the one of drop_doubles, the clock of the driver was set back",
                progress.batchId,
                late,
            )

    def attach(self) -> None:
        """Listen to queries, before the one that is meant has started."""
        self._listener = _make_listener(self)
        self._spark.streams.addListener(self._listener)

    def bind(self, query: "StreamingQuery | None") -> None:
        """Watch a query that has started; None where it could not, and nothing is to be watched."""
        self._query = query
        self._run_id = None if query is None else str(query.runId)
        self._is_bound.set()
        if query is None:
            self._spark.streams.removeListener(self._listener)

    def is_ours(self, run_id: object) -> bool:
        """Whether an event is about this query, which its first events may outrun."""
        self._is_bound.wait(_PATIENCE_S)
        return str(run_id) == self._run_id

    def report(self, progress: "StreamingQueryProgress") -> None:
        """Hand on what became of a batch."""
        if self._on_batch is None:
            return
        try:
            self._on_batch(make_report(progress))
        except Exception:  # which would be lost in Java
            _logger.exception("batch %d: on_batch failed", progress.batchId)

    def end(self) -> None:
        """Let go of what belongs to the query, which has ended."""
        with contextlib.suppress(Exception):  # Spark may have ended with it
            self._spark.streams.removeListener(self._listener)
        self._on_end()


def count_written(answer: "DataFrame", error: str | None) -> "DataFrame":
    """Let a stream count the rows that are written as matches, under a name of its own."""
    from pyspark.sql import functions

    is_match = functions.lit(True) if error is None else functions.col(error).isNull()
    counted = functions.count(functions.when(is_match, True)).alias("rows")
    return answer.observe(_WRITTEN + secrets.token_hex(4), counted)


def make_report(progress: "StreamingQueryProgress") -> BatchReport:
    """Make a report of what Spark says of a batch."""
    metrics = read_metrics(progress)
    observed = read_observed(metrics)
    only = observed[0] if len(observed) == 1 else None
    written = [row["rows"] for name, row in metrics.items() if name.startswith(_WRITTEN)]
    behind = count_behind([(s.endOffset, s.latestOffset) for s in progress.sources])
    rate = progress.processedRowsPerSecond
    return BatchReport(
        progress.batchId,
        None if only is None else only.counts,
        written[0] if written else None,
        None if only is None else only.version,
        progress.batchDuration / 1000,
        dict(progress.durationMs),
        behind,
        0.0 if behind == 0 else behind / rate if behind and rate else None,
        find_fault(metrics),
        None if only is None else only.followed,
    )


def count_behind(offsets: Sequence[tuple[str | None, str | None]]) -> int | None:
    """Count what sources have beyond a batch; None where one does not number what it has.

    Kafka's offsets are JSON, a number for each partition of each topic.
    """
    behind = 0
    for end, latest in offsets:
        ends, latests = _read_offsets(end), _read_offsets(latest)
        if ends is None or latests is None:
            return None
        behind += sum(max(0, last - ends.get(key, 0)) for key, last in latests.items())
    return behind


def _read_offsets(text: str | None) -> dict[tuple[str, str], int] | None:
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        topics = json.loads(text or "")
        numbers = {(t, p): n for t, partitions in topics.items() for p, n in partitions.items()}
        if all(isinstance(n, int) for n in numbers.values()):
            return numbers
    return None


def find_fault(metrics: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Describe what must not be in a batch; None where all is well."""
    faults = (observed.find_fault() for observed in read_observed(metrics))
    return next((fault for fault in faults if fault is not None), None)


def _ask_spark(spark: "SparkSession") -> dict[str, dict[str, Any]] | None:
    """Read what was observed in the batch that this thread is running.

    PySpark has no call for it, and other makes of Spark may lack what it stands on: then nothing
    is known before the batch is committed, which is None.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        id_ = spark.sparkContext.getLocalProperty(_QUERY_ID)
        query: Any = spark.streams.get(str(id_))
        pairs = query._jsq.streamingQuery().lastExecution().observedMetrics().iterator()
        found = {}
        while pairs.hasNext():
            pair = pairs.next()
            found[pair._1()] = json.loads(pair._2().json())
    except (Py4JError, AttributeError) as fault:
        _logger.debug("the counts of a batch cannot be read before it is committed: %s", fault)
        return None
    return found


def _make_listener(watch: StreamWatch) -> Any:
    """Make a listener; a class of PySpark's, which is not imported before it is needed."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class WatchListener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            if watch.is_ours(event.progress.runId):
                watch.report(event.progress)
                watch.judge(event.progress)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            if watch.is_ours(event.runId):
                watch.end()

    return WatchListener()
