"""Which subscriptions a task meets: those of a set that stays the same, or a version of one.

Whoever chooses is asked with the first events of a task, and answers for all of them.
"""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from contrada.errors import Unavailable
from contrada.matching.lookup import LookupTable
from contrada.spark.staging import StagedSet

ROUTED_VERSION = "__version"  # the number of the version by which an event was brought here


@dataclass(frozen=True, slots=True)
class SetPartitions:
    """Subscriptions in their partitions, and how to find those of an event.

    `segments[p]` are the subscriptions of partition p, None where it has none. Those in `residual`
    have no place of their own, and are met by each event once.
    """

    table: LookupTable
    segments: tuple[StagedSet | None, ...]
    residual: StagedSet | None


@dataclass(frozen=True, slots=True)
class ChosenSet:
    """The subscriptions that a task meets.

    `geometries` are the attributes that one of them reads as a geometry, `anchored` those by which
    they are found in space. `version` names the version of a published set, and `number` is its
    number, 0 without one; `partitions` is None in the plan "broadcast".
    """

    staged: StagedSet
    geometries: tuple[str, ...]
    anchored: tuple[str, ...]
    version: str | None = None
    partitions: SetPartitions | None = None
    number: int = 0

    @property
    def placed(self) -> SetPartitions:
        """The partitions, in a plan that has them."""
        assert self.partitions is not None, "the plan has partitions"
        return self.partitions


class SetChoice(Protocol):
    """Chooses the subscriptions that a task meets."""

    def choose(self, batch: pa.RecordBatch) -> ChosenSet:
        """Choose by the first events of a task, with their columns by name."""


@dataclass(frozen=True, slots=True)
class FixedSet:
    """The same subscriptions for all tasks."""

    chosen: ChosenSet

    def choose(self, batch: pa.RecordBatch) -> ChosenSet:  # noqa: ARG002  whatever the events are
        """Return the one set that there is."""
        return self.chosen


def refuse_two_versions(batch: pa.RecordBatch, chosen: ChosenSet) -> None:
    """Refuse events that another version has brought here: some of their matches are elsewhere."""
    met = {chosen.number, *batch.column(ROUTED_VERSION).unique().to_pylist()}
    if len(met) > 1:
        raise Unavailable(
            f"tasks of one batch met versions {min(met)} and {max(met)} of the subscriptions; run "
            "again, it takes one of them. A longer `lead` of publish avoids this, and so do clocks "
            "that agree better"
        )
