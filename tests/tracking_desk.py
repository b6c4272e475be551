"""A broker's tracking without a broker: a matcher over numbers, a book, objects, and a database."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

import contrada
from contrada.broker.fence_book import Fence, FenceBook, RowFences
from contrada.broker.incoming_events import IncomingEvents, read_body
from contrada.broker.track_entries import TrackStep
from contrada.broker.track_store import (
    create_track_tables,
    load_tracks,
    store_changes,
    store_settings,
)
from contrada.broker.tracking import FenceChange, FenceVersion, TrackTransaction
from contrada.broker.transition_bodies import FenceTerms, TrackingSettings
from contrada.matcher.inside import freeze


class Seen(NamedTuple):
    """A transition as a test sees it: `event` is the label of the event that it came with."""

    object: Any
    subscription: str
    transition: str
    time: int
    event: Any
    cause: str


def read_features(features: Sequence[dict[str, Any]]) -> IncomingEvents:
    """The events of a request with some Features."""
    body = json.dumps({"type": "FeatureCollection", "features": features}).encode()
    read = read_body(body, "application/geo+json", {}, None)
    assert not read.errors
    return read


@dataclass
class TrackingDesk:
    """Does what the committer does, in its order; `names` has what each number was called."""

    settings: TrackingSettings
    matcher: contrada.Matcher = field(default_factory=contrada.Matcher)
    book: FenceBook = field(default_factory=FenceBook)
    now_us: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        create_track_tables(self.connection)
        store_settings(self.connection, self.settings)
        self.next_number = 1
        self.names: dict[int, str] = {}
        self.living: dict[str, str] = {}  # by key: the name and how often it began
        self.begun: Counter[str] = Counter()
        self.restart()

    def restart(self) -> None:
        self.tracks = load_tracks(self.connection, self.now_us)

    @property
    def version(self) -> FenceVersion:
        return FenceVersion(freeze(self.matcher), self.book)

    def keep(self, work: TrackTransaction) -> None:
        """Commit, as the committer does: first on disk, then in memory."""
        self.connection.execute("BEGIN IMMEDIATE")
        store_changes(self.connection, work.changes())
        self.connection.execute("COMMIT")
        work.commit()

    # Changes

    def put(self, key: str, predicate: str, terms: FenceTerms) -> list[Seen]:
        old = self.book.by_key(key)
        fence = Fence(self.next_number, key, terms)
        self.next_number += 1
        if old is None:
            self.begun[key] += 1
        self.living[key] = self.names[fence.number] = f"{key} {self.begun[key]}"
        rows = [] if old is None else self.take_up([FenceChange(old, fence)])
        if old is not None:
            self.matcher.remove(old.number)
        self.matcher.add(fence.number, predicate)
        self.book.put(fence)
        return rows

    def remove(self, key: str) -> list[Seen]:
        old = self.book.by_key(key)
        assert old is not None
        rows = self.take_up([FenceChange(old)])
        self.matcher.remove(old.number)
        self.book.remove(key)
        del self.living[key]
        return rows

    def take_up(self, changes: list[FenceChange]) -> list[Seen]:
        self.tracks.begin().take_up(changes, self.book)  # abandoned
        work = self.tracks.begin()
        step = work.take_up(changes, self.book)
        self.keep(work)
        return self.read(step)

    def put_rows(self, name: str, predicates: dict[Any, str], terms: FenceTerms) -> list[Seen]:
        """Let a collection have rows, each with a predicate of its own."""
        old = self.book.rows.get(name)
        rows = RowFences(name, self.next_number, pa.array(list(predicates)), terms)
        self.next_number += len(predicates)
        found: list[Seen] = []
        if old is not None:
            work = self.tracks.begin()
            found = self.read(work.take_up_rows(old, rows, self.book))
            self.keep(work)
            for number in range(old.first, old.first + len(old)):
                self.matcher.remove(number)
        for number, (row, predicate) in enumerate(predicates.items(), rows.first):
            self.matcher.add(number, predicate)
            self.names[number] = f"{name} {row}"
        self.book.put_rows(rows)
        return found

    # Events and time

    def follow(self, features: Sequence[dict[str, Any]], *, abandon: bool = False) -> list[Seen]:
        events = read_features(features)
        work = self.tracks.begin()
        step = work.step(events.rows, events.texts, self.version, self.now_us)
        if abandon:
            return []
        self.keep(work)
        return self.read(step, features)

    def advance(self, passed_us: int) -> list[Seen]:
        self.now_us += passed_us
        work = self.tracks.begin()
        step = work.advance(self.now_us, self.version)
        self.keep(work)
        return self.read(step)

    def read(self, step: TrackStep, features: Sequence[dict[str, Any]] = ()) -> list[Seen]:
        """The rows of a step; each kind of entry has the event that it should have."""
        for name in ("applied", "late", "repeated"):
            self.counts[name] += getattr(step.counts, name)
        seen = []
        for row, matches in step.matches.items():
            assert {match.cause for match in matches} == {"position"}
            seen += [self._see(match, features[row]) for match in matches]
        for entry in step.entries:
            is_position = {match.cause == "position" for match in entry.matches}
            assert is_position == {entry.feature is not None}
            assert len({match.object for match in entry.matches}) == 1
            feature = None if entry.feature is None else json.loads(entry.feature)
            seen += [self._see(match, feature) for match in entry.matches]
        return seen

    def _see(self, match: Any, feature: dict[str, Any] | None) -> Seen:
        name = self.names[match.number]
        label = None if feature is None else feature["properties"]["label"]
        return Seen(match.object, name, match.transition, match.time_us, label, match.cause)
