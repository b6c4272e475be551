"""Samples of events, by which the plan "partitioned" divides the map: given, or taken from them.

Only the columns of geometries by which subscriptions are found are read of a sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contrada.errors import InvalidInput
from contrada.model.event import paths_of
from contrada.spark.crs_metadata import stated_primary
from contrada.spark.frames import has_path, with_wkb
from contrada.spark.worker import EventColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FRACTION = 0.02


@dataclass(frozen=True, slots=True)
class EventSample:
    """Some events, with numbered columns, and how to read them."""

    frame: "DataFrame"
    columns: EventColumns


def check_sample(sample: object) -> None:
    """Refuse what is not a DataFrame, and a stream."""
    if not hasattr(sample, "isStreaming"):
        raise InvalidInput(
            f"sample must be a Spark DataFrame, not {type(sample).__module__}."
            f"{type(sample).__name__}"
        )
    if sample.isStreaming:
        raise InvalidInput("sample cannot be a stream; pass a batch DataFrame")


def read_sample(
    sample: "DataFrame", events: "DataFrame", anchored: Sequence[str], columns: EventColumns
) -> EventSample:
    """Make a sample of the one that was given; it must have the geometries that events have."""
    for name in anchored:
        if has_path(events.schema, name) and not has_path(sample.schema, name):
            raise InvalidInput(
                f"sample has no column {name!r}, by which subscriptions are found; "
                f"it has {', '.join(sample.columns)}"
            )
    paths = dict.fromkeys(path for name in anchored for path in paths_of(name))
    chosen = with_wkb(sample, [path for path in paths if path in sample.columns], "sample")
    primary = stated_primary(chosen)
    numbered = chosen.toDF(*(f"column{i}" for i in range(len(chosen.columns))))
    return EventSample(numbered, _read_only(chosen.columns, anchored, primary, columns))


def take_sample(
    events: "DataFrame", columns: EventColumns, anchored: Sequence[str]
) -> EventSample | None:
    """Take a sample of events with numbered columns; None where no place of theirs matters."""
    if events.isStreaming:
        return None
    wanted = {path for name in anchored for path in paths_of(name)}
    at = [i for i, name in enumerate(columns.names) if name in wanted]
    if not at:
        return None
    names = [columns.names[i] for i in at]
    primary = columns.primary if columns.primary in names else None
    frame = events.select(*(events.columns[i] for i in at)).sample(fraction=_FRACTION, seed=1)
    return EventSample(frame, _read_only(names, anchored, primary, columns))


def _read_only(
    names: Sequence[str], anchored: Sequence[str], primary: str | None, columns: EventColumns
) -> EventColumns:
    """Read some columns as the events are read, but for their ids."""
    evaluator, repair = columns.evaluator, columns.repair
    return EventColumns(tuple(names), None, tuple(anchored), repair, evaluator, primary)
