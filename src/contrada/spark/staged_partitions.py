"""Partitions of a published set, as a manifest states them: a lookup table, and segments."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from contrada.files.sections import write_sections
from contrada.matching.grouping import starts_of
from contrada.matching.lookup import LookupTable
from contrada.spark.chosen_sets import SetPartitions
from contrada.spark.evaluators import Evaluator
from contrada.spark.staging import StagedPart, StagedSet, fetch, put


@dataclass(frozen=True, slots=True)
class PublishedPartitions:
    """The partitions of one version: `segments[p]` are the parts of partition p.

    `loads` has the weight of each partition when the table was made, and `replication` in how many
    partitions a subscription lies on average.
    """

    table: StagedPart
    segments: tuple[tuple[StagedPart, ...], ...]
    residual: tuple[StagedPart, ...]
    loads: tuple[float, ...]
    replication: float

    @classmethod
    def of(cls, stated: Mapping[str, Any]) -> "PublishedPartitions":
        """Take partitions out of JSON."""
        return cls(
            StagedPart(**stated["table"]),
            tuple(_read_parts(parts) for parts in stated["segments"]),
            _read_parts(stated["residual"]),
            tuple(stated["loads"]),
            stated["replication"],
        )

    def open(self, uri: str, evaluator: Evaluator, version: str) -> SetPartitions:
        """Return the partitions of a version as tasks know them."""

        def stage(parts: tuple[StagedPart, ...]) -> StagedSet | None:
            return StagedSet(uri, parts, evaluator, version) if parts else None

        segments = tuple(stage(parts) for parts in self.segments)
        return SetPartitions(read_table(uri, self.table), segments, stage(self.residual))


def _read_parts(stated: Sequence[Mapping[str, Any]]) -> tuple[StagedPart, ...]:
    return tuple(StagedPart(**part) for part in stated)


def write_table(uri: str, table: LookupTable) -> StagedPart:
    """Write a lookup table beside the parts of a set."""
    counts = np.array([len(chosen) for chosen in table.replicas], np.int64)
    columns = {
        "starts": np.asarray(table.starts, np.int64),
        "levels": np.asarray(table.levels, np.int64),
        "replicas.starts": starts_of(counts),
        "replicas": np.array([number for chosen in table.replicas for number in chosen], np.int64),
    }
    settings = {"universe": list(table.universe), "level": table.level, "outside": table.outside}
    with tempfile.TemporaryDirectory(prefix="contrada-part-") as folder:
        path = Path(folder) / "table"
        write_sections(path, settings, columns)
        return put(uri, path, len(table.starts))


@lru_cache(maxsize=8)
def read_table(uri: str, part: StagedPart) -> LookupTable:
    """Read a lookup table, which a process does once."""
    file = fetch(uri, part)
    columns, settings = file.columns, file.settings
    starts = columns["replicas.starts"].tolist()
    numbers = columns["replicas"].tolist()
    west, south, east, north = settings["universe"]
    return LookupTable(
        (west, south, east, north),
        settings["level"],
        columns["starts"],
        columns["levels"],
        tuple(tuple(numbers[a:b]) for a, b in pairwise(starts)),
        settings["outside"],
    )
