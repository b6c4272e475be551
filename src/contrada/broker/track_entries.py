"""What a step of following objects has found, sorted for the log.

Rows of a position that came in now belong to its event. All others are entries of their own: what
a position that waited has given, with its Feature; and what time or a change has, without one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from contrada.broker.fence_book import Fence
from contrada.broker.object_table import HeldPosition
from contrada.broker.position_rows import PositionBatch
from contrada.broker.spelt_ids import read_spelt
from contrada.broker.step_states import WAITING_NUMBER
from contrada.model.subscription import Id
from contrada.transitions.deciding import Step
from contrada.transitions.taking_in import Begun, StepCounts
from contrada.transitions.transition_rows import CAUSES, TRANSITIONS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATE = TRANSITIONS.index("late")
_POSITION = CAUSES.index("position")


class TrackMatch(NamedTuple):
    """A transition: the number of the subscription or row, and what happened when."""

    number: int
    transition: str
    object: Id
    time_us: int
    cause: str

    def facts(self) -> dict[str, Any]:
        """Return the members that a match has in a delivery."""
        return {
            "transition": self.transition,
            "object": self.object,
            "time": write_moment(self.time_us),
            "cause": self.cause,
        }


@dataclass(frozen=True, slots=True)
class TrackEntry:
    """What becomes an entry of the log: its Feature as JSON, None where there is none.

    It is to be stored after the first `place` rows of the batch, and before all others.
    """

    feature: bytes | None
    matches: list[TrackMatch]
    place: int


@dataclass(frozen=True, slots=True)
class TrackStep:
    """What a step has found: the matches of rows of the batch, and entries in their order."""

    matches: Mapping[int, list[TrackMatch]]
    entries: list[TrackEntry]
    counts: StepCounts = field(default_factory=StepCounts)

    @classmethod
    def nothing(cls) -> "TrackStep":
        """Return a step in which nothing has happened."""
        return cls({}, [])


def write_moment(time_us: int) -> str:
    """Write a time as RFC 3339, in UTC."""
    moment = _EPOCH + timedelta(microseconds=time_us)
    return moment.replace(tzinfo=None).isoformat() + "Z"


def write_step(
    begun: Begun,
    step: Step,
    fences: Mapping[str, Fence],
    batch: PositionBatch | None,
    held: Mapping[int, HeldPosition],
) -> TrackStep:
    """Sort what a step has found; `fences` has what each key stands for, or stood for."""
    rows = step.rows
    if not len(rows):
        return TrackStep({}, [], step.counts)
    sources = _find_sources(begun, batch)
    keys = [fences.get(key) for key in rows.subscription_ids.to_pylist()]
    matches: dict[int, list[TrackMatch]] = {}
    entries: dict[tuple[Any, ...], TrackEntry] = {}
    places: dict[int, int] = {}
    columns = (rows.objects, rows.subscriptions, rows.transitions, rows.time_us, rows.causes)
    events = rows.events.to_pylist()
    for number, facts in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        owner, subscription, transition, time_us, cause = facts
        fence = None if transition == _LATE else keys[subscription]
        if fence is None:  # late, or a subscription of which nobody knows what it was
            continue
        found = TrackMatch(
            fence.number, TRANSITIONS[transition],
            read_spelt(rows.object_ids[owner].as_py()), time_us, CAUSES[cause],
        )  # fmt: skip
        row, waited = None, None
        if cause == _POSITION:
            row, waited = sources[owner, time_us, events[number]]
        if row is not None:
            matches.setdefault(row, []).append(found)
            places[owner] = max(places.get(owner, 0), row + 1)
            continue
        name = (owner, waited) if cause == _POSITION else (owner, time_us, cause)
        if name not in entries:
            feature = None if waited is None else held[waited].feature
            entries[name] = TrackEntry(feature, [], places.get(owner, 0))
        entries[name].matches.append(found)
    ordered = sorted(entries.values(), key=lambda entry: entry.place)
    return TrackStep(matches, ordered, step.counts)


def _find_sources(
    begun: Begun, batch: PositionBatch | None
) -> dict[tuple[int, int, str], tuple[int | None, int | None]]:
    """Return for each applied position its row in the batch, or its number if it waited."""
    candidates, applied = begun.candidates, begun.applied
    waited = [
        n
        for table in begun.state.held.rows.tables
        for n in table.column(WAITING_NUMBER).to_pylist()
    ]
    ids = candidates.ids.take(pa.array(applied)).to_pylist()
    facts = (applied, candidates.objects[applied], candidates.time_us[applied])
    sources: dict[tuple[int, int, str], tuple[int | None, int | None]] = {}
    for id_, place, owner, time_us in zip(ids, *(column.tolist() for column in facts), strict=True):
        at = place - candidates.held_count
        if at < 0:
            sources[owner, time_us, id_] = None, waited[place]
        else:
            assert batch is not None
            row = int(batch.timed.rows[candidates.batch_rows[at]])
            sources[owner, time_us, id_] = row, None
    return sources
