"""Which subscriptions a task meets: those of a set that stays the same, or a version of one.

Whoever chooses is asked with the first events of a task, and answers for all of them.
"""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from contrada.matching.lookup import LookupTable
from contrada.spark.staging import StagedSet


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
    they are found in space. `version` names the version of a published set; `partitions` is None
    in the plan "broadcast".
    """

    staged: StagedSet
    geometries: tuple[str, ...]
    anchored: tuple[str, ...]
    version: str | None = None
    partitions: SetPartitions | None = None

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
