"""Subscriptions as SQL functions of a session: `name(struct(*))` and `name_match(TABLE(events))`.

The struct keeps the names of the columns, which a call with bare columns would lose. Events are
read as `match` reads them; a bad one fails the query.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.flags import check_flags
from contrada.matcher.match_run import MatchedBatch, match_received
from contrada.spark.handshake import Handshake
from contrada.spark.joined_parts import join_parts
from contrada.spark.match import stage_subscriptions
from contrada.spark.open_sets import open_set
from contrada.spark.staging import StagedSet
from contrada.spark.task_errors import raising_noted_errors
from contrada.spark.worker import EventColumns, cut

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EVENT_ID = "id"


def register(
    spark: "SparkSession",
    name: str,
    subscriptions: "DataFrame",
    *,
    subscription_id: str = "id",
    repair: bool = False,
) -> None:
    """Register subscriptions as SQL functions, in place of any that had this name.

    `name(struct(*))` returns the ids that a row satisfies, as an array, and needs no id of the
    event. `name_match(TABLE(events))` returns rows of `event`, the column `id` of the events as
    text, and `subscription`, as `match` does. Unlike `match`, both always use every subscription
    in every worker, as in the plan "broadcast", and count nothing.

    Raises `InvalidInput` for a name that SQL would not take and for bad subscriptions, and
    `Unavailable` if subscriptions cannot be staged. A bad event fails the query.

    >>> winds = spark.createDataFrame([("gale", "wind > 17")], "id string, filter string")
    >>> contrada.spark.register(spark, "winds", winds)
    >>> spark.sql("SELECT wind, winds(struct(*)) AS ids FROM VALUES (12), (20) AS t(wind)").show()
    +----+------+
    |wind|   ids|
    +----+------+
    |  12|    []|
    |  20|[gale]|
    +----+------+
    <BLANKLINE>
    """
    from pyspark.sql import functions

    check_flags(repair=repair)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} is not a name for a function; use letters, digits and underscores"
        )
    with raising_noted_errors():
        judged = stage_subscriptions(subscriptions, subscription_id, repair)
        staged, has_whole_ids = judged.subscribed, judged.has_whole_ids
        whole = join_parts(spark, staged.staged)
    lookup = _Lookup(Handshake.here(), whole, staged.geometries, has_whole_ids, repair)
    kind = "long" if has_whole_ids else "string"

    def find(*rows: pa.Array) -> pa.Array:
        return lookup.find(*rows)

    class FindPairs:
        def eval(self, table: pa.RecordBatch) -> "Iterator[pa.Table]":
            yield lookup.pairs(table)

    find.__annotations__ = {"rows": pa.Array, "return": pa.Array}
    arrow: Any = functions  # whose stubs know neither of the two
    spark.udf.register(name, arrow.arrow_udf(find, f"array<{kind}>"))
    pairs = arrow.arrow_udtf(FindPairs, returnType=f"event string, subscription {kind}")
    spark.udtf.register(f"{name}_match", pairs)


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Finds subscriptions for rows of events, in a worker."""

    handshake: Handshake
    staged: StagedSet
    geometries: tuple[str, ...]
    has_whole_ids: bool
    repair: bool

    def find(self, *arguments: pa.Array) -> pa.Array:
        """Return the ids that each row satisfies; the one argument is a struct of its columns."""
        if len(arguments) != 1 or not isinstance(arguments[0], pa.StructArray):
            given = ", ".join(str(argument.type) for argument in arguments) or "nothing"
            raise InvalidInput(f"the function takes struct(*), the columns of a row, not {given}")
        batch = pa.RecordBatch.from_struct_array(arguments[0])
        found = [self._ids(matched) for matched in self._match(batch, None)]
        kind = pa.list_(pa.int64() if self.has_whole_ids else pa.string())
        return (
            pa.concat_arrays([array.cast(kind) for array in found]) if found else pa.array([], kind)
        )

    def pairs(self, batch: pa.RecordBatch) -> pa.Table:
        """Return the pairs of event and subscription."""
        if _EVENT_ID not in batch.schema.names:
            names = ", ".join(batch.schema.names)
            raise InvalidInput(f"the events have no column {_EVENT_ID!r}; they have {names}")
        tables = []
        ids = open_set(self.staged).ids.cast(pa.int64() if self.has_whole_ids else pa.string())
        for matched in self._match(batch, _EVENT_ID):
            events = matched.events.ids.take(pa.array(matched.rows)).cast(pa.string())
            tables.append(
                pa.table({"event": events, "subscription": ids.take(pa.array(matched.ranks))})
            )
        schema = pa.schema([("event", pa.string()), ("subscription", ids.type)])
        return pa.concat_tables([schema.empty_table(), *tables])

    def _match(self, batch: pa.RecordBatch, event_id: str | None) -> Iterator[MatchedBatch]:
        self.handshake.check()
        subscriptions = open_set(self.staged)
        names = tuple(batch.schema.names)
        columns = EventColumns(names, event_id, self.geometries, self.repair)
        for piece in cut([batch], subscriptions):
            events = columns.receive(piece)
            columns.refuse_bad(piece, events, remedies=())
            yield match_received(events, subscriptions)

    def _ids(self, matched: MatchedBatch) -> pa.ListArray:
        ids = open_set(self.staged).ids.cast(pa.int64() if self.has_whole_ids else pa.string())
        counts = np.bincount(matched.rows, minlength=matched.events.batch.length)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), ids.take(pa.array(matched.ranks)))
