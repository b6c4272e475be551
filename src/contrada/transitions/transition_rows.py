"""Transitions as rows: what the library, Spark and the broker hand out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.arrays import Integers, SmallIntegers

TRANSITIONS = ("enter", "inside", "exit", "cross", "dwell", "late")  # by code
CAUSES = ("position", "clock", "version")  # by code
TRANSITION_COLUMNS = (
    "object",
    "subscription",
    "subscriber",
    "transition",
    "time",
    "event",
    "version",
    "cause",
)
TIME_TYPE = pa.timestamp("us", "UTC")

RowCodes = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class TransitionRows:
    """Rows in order: by time, object, timers before positions, event id, subscription id.

    `objects`, `subscriptions` and `transitions`, `causes` are codes: places in `object_ids`,
    `subscription_ids` (with `subscribers` beside them), TRANSITIONS and CAUSES. A subscription is
    -1 where a position is late. `events` are the ids of events, null where none caused the row.
    """

    objects: SmallIntegers
    object_ids: pa.Array
    subscriptions: SmallIntegers
    subscription_ids: pa.Array
    subscribers: pa.Array
    transitions: RowCodes
    time_us: Integers
    events: pa.Array
    version: str | None
    causes: RowCodes

    def __len__(self) -> int:
        return len(self.time_us)

    def pieces(self, rows_max: int) -> Iterator["TransitionRows"]:
        """Yield them in pieces of so many rows at most."""
        for start in range(0, len(self), rows_max):
            own = slice(start, start + rows_max)
            yield replace(
                self,
                objects=self.objects[own],
                subscriptions=self.subscriptions[own],
                transitions=self.transitions[own],
                time_us=self.time_us[own],
                events=self.events[own],
                causes=self.causes[own],
            )

    def table(self, *, is_encoded: bool = False) -> pa.Table:
        """Return them as a table, with the columns of TRANSITION_COLUMNS.

        Objects and ids are int64 or strings, `time` is a timestamp of microseconds in UTC. With
        `is_encoded` object, subscription, transition, version and cause are dictionary-encoded,
        which takes far less time and memory.
        """
        kinds, causes = pa.array(TRANSITIONS), pa.array(CAUSES)
        version = pa.array([self.version], pa.string())
        columns = {
            "object": _coded(self.object_ids, self.objects, is_encoded),
            "subscription": _coded(self.subscription_ids, self.subscriptions, is_encoded),
            "subscriber": self.subscribers.take(_places(self.subscriptions)),
            "transition": _coded(kinds, self.transitions, is_encoded),
            "time": pa.array(self.time_us).view(TIME_TYPE),
            "event": _plain(self.events),
            "version": _coded(version, np.zeros(len(self), np.int8), is_encoded),
            "cause": _coded(causes, self.causes, is_encoded),
        }
        return pa.table(columns).select(list(TRANSITION_COLUMNS))


def _places(codes: SmallIntegers | RowCodes) -> pa.Array:
    return pa.array(codes, mask=codes < 0) if (codes < 0).any() else pa.array(codes)


def _plain(ids: pa.Array) -> pa.Array:
    return ids.cast(pa.string()) if pa.types.is_large_string(ids.type) else ids


def _coded(ids: pa.Array, codes: SmallIntegers | RowCodes, is_encoded: bool) -> pa.Array:
    """Return ids by their codes; a dictionary has only those in use, if they are fewer."""
    if not is_encoded:
        return _plain(ids.take(_places(codes)))
    if len(ids) > len(codes):
        is_used = np.zeros(len(ids), bool)
        is_used[codes[codes >= 0]] = True
        codes = np.where(codes < 0, -1, (np.cumsum(is_used) - 1)[codes]).astype(np.int32)
        ids = ids.filter(pa.array(is_used))
    return pa.DictionaryArray.from_arrays(_places(codes), _plain(ids))
