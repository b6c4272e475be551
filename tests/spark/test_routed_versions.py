"""Events in partitions are matched by the version that brought them there, or refused."""

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada.errors import Unavailable
from contrada.matching.lookup import LookupTable
from contrada.spark.answering import TALLY, AnswerShape
from contrada.spark.chosen_sets import ROUTED_VERSION, ChosenSet, FixedSet, SetPartitions
from contrada.spark.handshake import Handshake
from contrada.spark.routing import ROUTE, RouteTask
from contrada.spark.staging import StagedSet
from contrada.spark.version_names import number_version
from contrada.spark.visiting import PartitionTask, Visit
from contrada.spark.worker import EventColumns

TABLE = LookupTable((0.0, 0.0, 8.0, 8.0), 1, np.array([0]), np.array([0]), ((0,),), 1)
COLUMNS = EventColumns(("id", "geometry"), "id", ("geometry",), repair=False)


def choose(number: int) -> FixedSet:
    """A version without subscriptions."""
    placed = SetPartitions(TABLE, (None, None), None)
    staged = StagedSet("file:///nowhere", ())
    geometry = ("geometry",)
    return FixedSet(ChosenSet(staged, geometry, geometry, f"{number}-0", placed, number))


def route(number: int, ids: list[int]) -> pa.RecordBatch:
    """Events as a version brings them to their partition."""
    points = pa.array([shapely.to_wkb(shapely.Point(1, 1))] * len(ids), pa.binary())
    events = pa.record_batch({"column0": pa.array(ids), "column1": points})
    (routed,) = RouteTask(Handshake.here(), choose(number), COLUMNS)(iter([events]))
    return routed


def visit(number: int, *batches: pa.RecordBatch) -> list[pa.RecordBatch]:
    shape = AnswerShape((), False, False, has_whole_ids=True, has_whole_subscribers=False)
    task = PartitionTask(Handshake.here(), choose(number), COLUMNS, shape, Visit)
    return list(task(iter(batches)))


def test_a_route_says_which_version_it_is_by() -> None:
    routed = route(7, [1, 2, 3])
    assert routed.column(ROUTE.index(ROUTED_VERSION)).to_pylist() == [7, 7, 7]
    *_, last = visit(7, routed)
    assert last.column(TALLY)[0].as_py()["version"] == number_version("7-0")


def test_events_that_two_versions_brought_together_are_refused() -> None:
    first, second = route(7, [1]), route(8, [2])
    mixed = pa.Table.from_batches([first, second]).combine_chunks().to_batches()
    for batches in (mixed, [first, second], [replace_numbers(first, 8)]):
        with pytest.raises(Unavailable, match="tasks of one batch met versions 7 and 8"):
            visit(7, *batches)


def replace_numbers(batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
    """The same events, as if another version had brought them."""
    at = ROUTE.index(ROUTED_VERSION)
    numbers = pa.array([number] * batch.num_rows, pa.int32())
    return batch.set_column(at, batch.schema.field(at), numbers)
