"""What is said of every query over a match on a stream, whatever its sink.

One listener for each session looks at the progress of its queries. It logs a batch whose counts do
not add up, or whose tasks met two versions, as an error; and once for each version that one reads
a column which the stream lacks, or states another coordinate system, as a warning: nobody could say
so before it was published.
"""

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from contrada.errors import ContradaError
from contrada.showing import listed
from contrada.spark.batch_counts import ObservedMatch, read_metrics, read_observed
from contrada.spark.match_counts import find_observation
from contrada.spark.published_sets import (
    Manifest,
    PublishedChoice,
    find_lacking,
    read_manifest,
)
from contrada.spark.set_descriptions import StreamEvents
from contrada.spark.version_files import now_us
from contrada.spark.version_names import VersionName, walk_versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.types import StructType

_logger = logging.getLogger(__name__)
_KNOWN_MAX = 1_000


@dataclass(slots=True)
class LiveSet:
    """A published set that a stream meets, and what is known of its versions.

    Those up to `newest` have been compared with `schema`, the columns of the stream. By `events`
    it passes over some of them.
    """

    uri: str
    schema: "StructType"
    events: StreamEvents | None = None
    newest: VersionName | None = None

    def look(self, met: str | None) -> list[str]:
        """Describe versions that hold and are not for the stream, each once.

        A stream that passes over none meets every version, so that those which it has met tell all.
        """
        if self.events is None and met == str(self.newest):
            return []
        new = list(takewhile(lambda name: name != self.newest, walk_versions(self.uri, now_us())))
        self.newest = new[0] if new else self.newest
        return [line for name in reversed(new) for line in self._compare(name)]

    def _compare(self, name: VersionName) -> list[str]:
        manifest = read_manifest(self.uri, name)
        found = [f"{self.uri}: {line}: it is passed over" for line in self._find_unfit(manifest)]
        lacking = find_lacking(manifest, self.schema)
        if lacking:
            is_strict = self.events is not None and self.events.is_strict
            outcome = "it is passed over" if is_strict else "tests of that are never true"
            found.append(
                f"{self.uri}: version {name} reads {', '.join(map(repr, lacking))}, which no event "
                f"of the stream has: {outcome}; events have {listed(self.schema.names)}"
            )
        return found

    def _find_unfit(self, manifest: Manifest) -> list[str]:
        """Describe why a version is passed over, but for the columns that events lack."""
        if self.events is None:
            return []
        return self.events.find_unfit(manifest.description, manifest.crs, manifest.version)


class SessionListening:
    """Looks at the progress of all queries of a session, by the names of what they observe.

    An answer may be started again after its query has ended, so that none is forgotten for that;
    but of more than `known_max` those are that have not been heard of for longest.
    """

    def __init__(self, known_max: int = _KNOWN_MAX) -> None:
        """Know no match yet."""
        self._known: OrderedDict[str, LiveSet] = OrderedDict()
        self._known_max = known_max
        self._lock = threading.Lock()  # batches end while others start

    def know(self, name: str, live: LiveSet) -> None:
        """Look at versions of a set from now on, when batches of a match end."""
        with self._lock:
            self._known[name] = live
            if len(self._known) > self._known_max:
                self._known.popitem(last=False)

    def hear(self, progress: "StreamingQueryProgress") -> None:
        """Log what must not be in a batch, and what should be known of its subscriptions."""
        for observed in read_observed(read_metrics(progress)):
            if (fault := observed.find_fault()) is not None:
                _logger.error("batch %d: %s", progress.batchId, fault)
            self._look(observed)

    def _look(self, observed: ObservedMatch) -> None:
        with self._lock:
            live = self._known.get(observed.name)
            if live is None:
                return
            self._known.move_to_end(observed.name)
        try:
            for line in live.look(observed.version):
                _logger.warning("%s", line)
        except ContradaError as error:  # tasks, which need it, say so and fail
            _logger.debug("the versions cannot be looked at: %s", error)


_sessions: "WeakKeyDictionary[SparkSession, SessionListening]" = WeakKeyDictionary()


def listen_to(answer: "DataFrame", published: PublishedChoice | None, schema: "StructType") -> None:
    """Look at the batches of a match on a stream, of events with a schema, from now on."""
    if not hasattr(answer, "_jdf"):
        return  # over Spark Connect
    session = answer.sparkSession
    if session not in _sessions:
        _sessions[session] = SessionListening()
        session.streams.addListener(_make_listener(_sessions[session]))
    if published is not None and published.fixed is None:
        newest = next(walk_versions(published.uri, now_us()), None)  # `match` has compared these
        live = LiveSet(published.uri, schema, published.events, newest)
        _sessions[session].know(find_observation(answer), live)


def _make_listener(listening: SessionListening) -> Any:
    """Make a listener; a class of PySpark's, which is not imported before it is needed."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class SessionListener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            listening.hear(event.progress)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            pass

    return SessionListener()
