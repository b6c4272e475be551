"""The rows of events as tasks take them: chosen columns, numbered, with what names their batch."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contrada.spark.crs_metadata import stated_primary
from contrada.spark.frames import (
    OF_SOURCES,
    SOURCE_FAULT,
    SOURCE_MESSAGE,
    with_file,
    with_moment,
    with_wkb,
)
from contrada.spark.meeting import MetSubscriptions
from contrada.spark.null_lists import fill_lists
from contrada.spark.task_chains import EventOrigin, find_events
from contrada.spark.worker import EventColumns
from contrada.spark_options import SparkOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class EventRows:
    """Events with numbered columns, and how tasks read them.

    `chosen` has the same columns under their names. `origin` says how events are made where the
    tasks that take them can do it.
    """

    numbered: "DataFrame"
    chosen: "DataFrame"
    columns: EventColumns
    origin: EventOrigin | None

    @property
    def has_messages(self) -> bool:
        """Whether bad events have the message that they came as."""
        return SOURCE_MESSAGE in self.chosen.columns


def choose_rows(
    events: "DataFrame",
    identified: "DataFrame",
    met: MetSubscriptions,
    wanted: Iterable[str],
    options: SparkOptions,
    *,
    row: str | None = None,
    needs_moment: bool,
) -> EventRows:
    """Choose the columns that travel: the id, those that subscriptions read, and those wanted.

    `identified` are the events with ids. `row` is a column of row numbers, by which bad events are
    named. With `needs_moment` each row has the moment at which its batch began.
    """
    columns = list(dict.fromkeys((options.event_id, *met.columns, *wanted)))
    columns += [name for name in OF_SOURCES if name in events.columns]
    chosen = with_wkb(identified, columns, "events")
    if options.quarantine and identified is events and row is None and SOURCE_FAULT not in columns:
        chosen = with_file(chosen)  # else the id, the caller or the fault names the file
    if needs_moment:
        chosen = with_moment(chosen)
    origin = find_events(identified)
    if origin is not None and needs_moment:
        origin = replace(origin, rows=with_moment(origin.rows))
    sent = chosen if origin is not None else fill_lists(chosen)
    # PySpark's mapInArrow takes no column with a dot or a backtick in its name.
    numbered = sent.toDF(*(f"column{i}" for i in range(len(sent.columns))))
    primary = stated_primary(events)
    reading = EventColumns(
        tuple(sent.columns),
        options.event_id,
        met.subscribed.geometries,
        options.repair,
        met.subscribed.staged.evaluator,
        primary if primary in chosen.columns else None,
        row,
    )
    return EventRows(numbered, chosen, reading, origin)
