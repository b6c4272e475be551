"""The tasks of `publish`: stage the rows that are new, and settle what a version consists of.

Rows that the version before has too keep their parts. The others are judged and staged by tasks
over the DataFrame; one more task then decides, over columns alone, which rows are gone, which parts
are to be merged, and what planning must know.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.errors import BAD_ROWS_SHOWN_MAX
from contrada.matching.id_columns import are_repeated
from contrada.matching.mismatches import list_expectations
from contrada.model.expression import DistanceWithin, attributes, geometry_attributes
from contrada.model.subscription import Id
from contrada.spark.evaluators import EXACT
from contrada.spark.handshake import Handshake
from contrada.spark.known_parts import (
    HeldPart,
    KnownPart,
    join_known,
    open_known,
    write_held,
)
from contrada.spark.set_descriptions import SetDescription
from contrada.spark.staging import StagedPart
from contrada.spark.subscription_tasks import bounds_of, join_bounds
from contrada.spark.task_errors import noting_errors

SETTLED = "settled string"


@dataclass(frozen=True, slots=True)
class SettledVersion:
    """What a version consists of; `repeated` are ids that several rows have, and how many."""

    parts: tuple[StagedPart, ...]
    description: SetDescription
    repeated: tuple[tuple[Id, int], ...] = ()

    @classmethod
    def of(cls, text: str) -> "SettledVersion":
        """Take what a task has sent."""
        stated = json.loads(text)
        return cls(
            tuple(StagedPart(**part) for part in stated["parts"]),
            SetDescription.of(stated["description"]),
            tuple((id_, count) for id_, count in stated["repeated"]),
        )


@dataclass(frozen=True, slots=True)
class SettleTask:
    """The function for `mapInArrow` that settles a version; it is run once.

    `kept` are the parts of the version before, and `is_seen` which of their rows the new one has,
    as bits; `added` are the parts that were staged.
    """

    handshake: Handshake
    uri: str
    kept: tuple[StagedPart, ...]
    is_seen: bytes
    added: tuple[StagedPart, ...]

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what the version consists of, whatever comes in."""
        self.handshake.check()
        for _ in batches:
            pass
        settled = self._settle()
        yield pa.RecordBatch.from_pydict({"settled": [json.dumps(asdict(settled))]})

    def _settle(self) -> SettledVersion:
        held = self._open_kept()
        if self.added:
            held.append((None, join_known([open_known(self.uri, part) for part in self.added])))
        repeated = _find_repeated([part for _, part in held])
        description = describe([part for _, part in held])
        if repeated:
            return SettledVersion((), description, repeated)
        return SettledVersion(write_held(self.uri, held), description)

    def _open_kept(self) -> list[HeldPart]:
        held: list[HeldPart] = []
        bits = np.unpackbits(np.frombuffer(self.is_seen, np.uint8)).astype(bool)
        first = 0
        for old in self.kept:
            part = open_known(self.uri, old)
            is_seen = bits[first : first + len(part.is_alive)]
            held.append((old, replace(part, is_alive=part.is_alive & is_seen)))
            first += len(part.is_alive)
        return held


def _find_repeated(parts: Sequence[KnownPart]) -> tuple[tuple[Id, int], ...]:
    """Find ids that several living rows have, and how many: the first of them in order."""
    living = [part.columns.ids.array.filter(pa.array(part.is_alive)) for part in parts]
    if not living:
        return ()
    ids = pa.concat_arrays(living)
    again = ids.filter(pa.array(are_repeated(ids)))
    if not len(again):
        return ()
    counted = again.value_counts().to_pylist()
    found = sorted((entry["values"], entry["counts"] + 1) for entry in counted)
    return tuple(found[:BAD_ROWS_SHOWN_MAX])


def describe(parts: Sequence[KnownPart]) -> SetDescription:
    """Describe the living rows of some parts; bounds may have been those of rows that are gone."""
    skeletons = [skeleton for part in parts for skeleton in _living_skeletons(part)]
    tests = [test for p in parts for test in p.columns.table.constraints.tests.skeletons]
    anchors = [EXACT.engine().list_anchors(part.columns) for part in parts]
    geometries = {name for s in skeletons for name in geometry_attributes(s)}
    anchored = {name for found in anchors for name in found.attributes} & geometries
    shapes = [found.shapes for found in anchors if len(found.shapes)]
    kinds = sorted(
        (name, tuple(sorted(kind.name for kind in kinds)))
        for name, kinds in list_expectations(skeletons)
    )
    return SetDescription(
        attributes=tuple(sorted({name for s in skeletons for name in attributes(s)})),
        geometries=tuple(sorted(geometries)),
        anchored=tuple(sorted(anchored)),
        broad=sum(int(a.is_broad[p.is_alive].sum()) for a, p in zip(anchors, parts, strict=True)),
        bounds=join_bounds([box for shape in shapes if (box := bounds_of(shape)) is not None]),
        has_distances=any(isinstance(test, DistanceWithin) for test in tests),
        expectations=tuple(kinds),
    )


def _living_skeletons(part: KnownPart) -> list[Any]:
    expressions = part.columns.expressions
    used = np.unique(expressions.which[part.is_alive])
    return [expressions.skeletons[number] for number in used.tolist()]
