"""Counts that can fail: what came in, and what the tasks say they did with it.

The events are counted as they come from their source, by Spark; each task ends with a row that says
how many it evaluated, set aside and mended, and how many had no geometry, which Spark sums up and
drops. `counts` compares them.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from contrada.errors import InvalidInput, RowsLost
from contrada.spark.answering import DONE, TALLY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

CAME_IN, WAS_DONE = "contrada_in_", "contrada_out_"  # how observations of streams begin
VERSIONS_SEEN = ("version_low", "version_high")
_PATIENCE_S = 30.0
_observations: "WeakKeyDictionary[DataFrame, tuple[Observation, Observation]]" = WeakKeyDictionary()
_streams: "WeakKeyDictionary[DataFrame, str]" = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class EventCounts:
    """What became of the events of a job: events = evaluated + set_aside.

    `mended` counts those among the evaluated that `repair` has mended, `without_geometry` those
    that have no geometry where a subscription reads one.

    >>> contrada.spark.EventCounts(events=3, evaluated=2, set_aside=1).set_aside
    1
    """

    events: int
    evaluated: int
    set_aside: int
    mended: int = 0
    without_geometry: int = 0


@dataclass(frozen=True, slots=True)
class FollowedCounts:
    """What became of the positions of a batch whose objects are followed, and what is remembered.

    `waited` positions were held before the batch, `held` ones are after it; the others were
    `applied`, `late` or `repeated`. After it there are `objects`, which are in so many `visits`,
    and their state takes `state_bytes`.

    >>> contrada.spark.FollowedCounts(applied=7, late=1, objects=3).late
    1
    """

    waited: int = 0
    applied: int = 0
    late: int = 0
    repeated: int = 0
    held: int = 0
    objects: int = 0
    visits: int = 0
    state_bytes: int = 0


def observed(
    events: "DataFrame",
    run: "Callable[[DataFrame], DataFrame]",
    finish: "Callable[[DataFrame], DataFrame]" = lambda answer: answer,
    done: Sequence[str] = DONE,
) -> "DataFrame":
    """Run tasks over events, both counted; `finish` sees no rows that only count.

    `done` are the counts in the rows that only count.

    A stream is counted batch by batch: its progress has the counts, under names of their own.
    """
    from pyspark.sql import Observation, functions

    before: str | Observation
    after: str | Observation
    before, after = _name_observations() if events.isStreaming else (Observation(), Observation())
    answer = run(events.observe(before, functions.count("*").alias("events")))
    tally = functions.col(TALLY)
    versions = functions.min(tally["version"]), functions.max(tally["version"])
    answer = answer.observe(
        after,
        *(functions.sum(tally[name]).alias(name) for name in done),
        *(column.alias(name) for column, name in zip(versions, VERSIONS_SEEN, strict=True)),
    )
    answer = finish(answer.where(tally.isNull()).drop(TALLY))
    if isinstance(before, str) or isinstance(after, str):
        _streams[answer] = str(after)
    else:  # an `Observation`, by PySpark's name; that of Spark Connect is of another class
        _observations[answer] = (before, after)
    return answer


def find_observation(answer: "DataFrame") -> str:
    """Return the name under which the tasks of a match on a stream are counted."""
    return _streams[answer]


def _name_observations() -> tuple[str, str]:
    token = secrets.token_hex(4)
    return CAME_IN + token, WAS_DONE + token


def counts(answer: "DataFrame") -> EventCounts:
    """Count the events that the first action on an answer of `match` has seen.

    Unlike `match(…, output="counts")`, which counts the matches of each event, this counts what
    became of the events. An action that stops early (`limit`, `first`, `show`) cannot be counted,
    nor can those after it: call `match` again.

    Raises `InvalidInput` for what is not an answer of `match` and where nothing was counted, and
    `RowsLost` where the tasks did not account for every event that came in.

    >>> events = spark.createDataFrame([(1, 12), (2, 20)], "id long, wind int")
    >>> winds = spark.createDataFrame([("gale", "wind > 17")], "id string, filter string")
    >>> answer = contrada.spark.match(events, winds)
    >>> len(answer.collect())
    1
    >>> contrada.spark.counts(answer)
    EventCounts(events=2, evaluated=2, set_aside=0, mended=0, without_geometry=0)
    """
    if getattr(answer, "isStreaming", False):
        raise InvalidInput(
            "a stream is counted batch by batch: look at observedMetrics in its progress"
        )
    if answer not in _observations:
        raise InvalidInput("counts takes an answer of contrada.spark.match")
    before, after = _observations[answer]
    came_in = _wait_for(before).get("events")
    if came_in is None:
        raise InvalidInput(
            "the first action on this answer stopped before its end: nothing was counted; "
            "match again, and count after an action that takes all rows"
        )
    done = _wait_for(after)
    found = EventCounts(came_in, *(done.get(name) or 0 for name in DONE))
    if found.events != found.evaluated + found.set_aside:
        raise RowsLost(
            f"{found.events:,} events came in, and {found.evaluated:,} were evaluated and "
            f"{found.set_aside:,} set aside: the answer is not complete, or the first action on it "
            "stopped before its end (limit, first, show); if so, match again"
        )
    return found


def _wait_for(observation: "Observation") -> dict[str, Any]:
    """Return what was observed; Spark would wait for ever where there was no action.

    Spark reports an action some moments after it.
    """
    found: list[dict[str, Any]] = []

    def ask() -> None:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

        try:
            found.append(observation.get)
        except Py4JJavaError:  # a plan that reads no row observes nothing
            found.append({})

    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE_S)
    if not found:
        raise InvalidInput(
            f"nothing was counted within {_PATIENCE_S:.0f} s: counts takes an answer on which an "
            "action has run (write, collect, count)"
        )
    return found[0]
