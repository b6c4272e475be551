"""All objects of a tenant in memory: a record each, when something is due, and who visits what.

Whatever is asked takes time for what is found, not for all objects. One thread asks and changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from contrada.broker.fence_book import subscription_of
from contrada.broker.object_records import ObjectRecord, find_timers, list_keys
from contrada.broker.object_timers import ObjectTimers
from contrada.kernels.track_walk import ALWAYS_LATER


class HeldPosition(NamedTuple):
    """A position that waits until it is due, with its whole Feature as JSON; ids are spelt."""

    object: str
    time_us: int
    id: str
    x: float
    y: float
    feature: bytes


class ObjectChange(NamedTuple):
    """What an object has become: its record, the numbers of its positions that wait, its timer."""

    record: bytes | None
    keys: frozenset[str]
    held: tuple[int, ...]
    timer_us: int


@dataclass(slots=True)
class StateChanges:
    """What is to be stored of a transaction, in the commit of what caused it."""

    clock_us: int | None = None
    given: int = 0  # how many positions without an id were numbered so far
    objects: dict[str, bytes | None] = field(default_factory=dict)
    held: dict[int, HeldPosition] = field(default_factory=dict)
    released: list[int] = field(default_factory=list)


class ObjectTable:
    """Records of objects by their spelt ids."""

    def __init__(self) -> None:
        """Begin without objects."""
        self._places: dict[str, int] = {}
        self._names: list[str] = []
        self._records: list[bytes | None] = []
        self._free: list[int] = []
        self._timers = ObjectTimers()
        self._visitors: dict[str, set[int]] = {}
        self._keys_of: dict[str, set[str]] = {}  # by subscription, where that is not the key
        self.held: dict[int, HeldPosition] = {}
        self._waiting: dict[str, tuple[int, ...]] = {}
        self.next_number = 0
        self.nbytes = 0  # of records, and of positions that wait

    def __len__(self) -> int:
        return len(self._places)

    def find(self, name: str) -> bytes | None:
        """Return the record of an object, None where nothing is known of it."""
        place = self._places.get(name)
        return None if place is None else self._records[place]

    def find_held(self, name: str) -> tuple[int, ...]:
        """Return the numbers of an object's positions that wait."""
        return self._waiting.get(name, ())

    def find_due(self, due_us: int) -> Iterator[str]:
        """Yield the objects to which something happens by a time, the earliest first."""
        for place in self._timers.find_due(due_us).tolist():
            yield self._names[place]

    def find_next(self) -> int | None:
        """Return the earliest time at which something happens to an object."""
        found = self._timers.find_next()
        return found if found < ALWAYS_LATER else None

    def find_visitors(self, key: str) -> list[str]:
        """List the objects that visit something, or have left or crossed it not long ago."""
        return [self._names[place] for place in self._visitors.get(key, ())]

    def find_keys(self, subscription: str) -> set[str]:
        """Return the keys of a subscription and its rows that objects visit."""
        own = {subscription} if subscription in self._visitors else set()
        return own | self._keys_of.get(subscription, set())

    # Changes

    def hold(self, positions: Mapping[int, HeldPosition]) -> None:
        """Let positions wait, by their numbers."""
        self.held.update(positions)
        self.nbytes += sum(len(position.feature) for position in positions.values())

    def release(self, numbers: Iterable[int]) -> None:
        """Let positions wait no longer."""
        for number in numbers:
            self.nbytes -= len(self.held.pop(number).feature)

    def apply(self, changes: Mapping[str, ObjectChange]) -> None:
        """Let objects be what they have become."""
        places, moments = [], []
        for name, change in changes.items():
            is_gone = change.record is None and not change.held
            place = self._places.get(name)
            if place is None:
                if is_gone:
                    continue
                place = self._take_place(name)
            self._set_visits(place, change.keys)
            self.nbytes += len(change.record or b"") - len(self._records[place] or b"")
            self._records[place] = change.record
            if change.held:
                self._waiting[name] = change.held
            else:
                self._waiting.pop(name, None)
            if is_gone:
                del self._places[name]
                self._names[place] = ""
                self._free.append(place)
            places.append(place)
            moments.append(ALWAYS_LATER if is_gone else change.timer_us)
        self._timers.put(np.array(places, np.int64), np.array(moments, np.int64))

    def _take_place(self, name: str) -> int:
        if self._free:
            place = self._free.pop()
            self._names[place] = name
        else:
            place = len(self._names)
            self._names.append(name)
            self._records.append(None)
        self._places[name] = place
        return place

    def _set_visits(self, place: int, keys: frozenset[str]) -> None:
        record = self._records[place]
        before = frozenset(() if record is None else list_keys(record))
        for key in before - keys:
            visitors = self._visitors[key]
            visitors.discard(place)
            if not visitors:
                del self._visitors[key]
                subscription = subscription_of(key)
                if subscription != key:
                    self._keys_of[subscription].discard(key)
                    if not self._keys_of[subscription]:
                        del self._keys_of[subscription]
        for key in keys - before:
            self._add_visitor(key, place)

    def _add_visitor(self, key: str, place: int) -> None:
        if key not in self._visitors:
            self._visitors[key] = set()
            subscription = subscription_of(key)
            if subscription != key:
                self._keys_of.setdefault(subscription, set()).add(key)
        self._visitors[key].add(place)

    def load(
        self,
        records: Iterable[tuple[str, bytes]],
        held: Iterable[tuple[int, HeldPosition]],
        silence_us: int | None,
    ) -> None:
        """Take in what was stored, into an empty table."""
        waiting: dict[str, list[int]] = {}
        for number, position in held:
            self.hold({number: position})
            waiting.setdefault(position.object, []).append(number)
            self.next_number = max(self.next_number, number + 1)
        self._waiting = {name: tuple(numbers) for name, numbers in waiting.items()}
        for name, data in records:
            place = self._take_place(name)
            self._records[place] = data
            self.nbytes += len(data)
            for key in list_keys(data):
                self._add_visitor(key, place)
        for name in waiting:
            if name not in self._places:
                self._take_place(name)
        self.set_timers(silence_us)

    def set_timers(self, silence_us: int | None) -> None:
        """Set all timers anew, as after a change of settings: it takes time for all objects."""
        places = [place for place, record in enumerate(self._records) if record is not None]
        records = [record for record in self._records if record is not None]
        moments = np.full(len(self._names), ALWAYS_LATER, np.int64)
        moments[places] = find_timers(records, silence_us)
        for position in self.held.values():
            place = self._places[position.object]
            moments[place] = min(moments[place], position.time_us)
        self._timers.put(np.arange(len(moments)), moments)


def keys_of(record: ObjectRecord) -> frozenset[str]:
    """Return the keys of what an object visits, or has left or crossed not long ago."""
    return frozenset(pair.key for pair in record.pairs)


def timer_of(record: ObjectRecord | None, held_us: list[int], silence_us: int | None) -> int:
    """Return the time at which something happens to an object though nothing comes in."""
    own = ALWAYS_LATER if record is None else record.timer_us(silence_us)
    return min([own, *held_us])
