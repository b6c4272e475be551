"""What is known of objects in the file of a log: tables, how they are read, what a commit stores.

Each function takes the connection that writes and, but for the first two, is called in the
transaction of the events or the change that it belongs to.
"""

import json
import sqlite3
from dataclasses import dataclass

from contrada.broker.object_table import HeldPosition, StateChanges
from contrada.broker.tracking import ObjectTracks
from contrada.broker.transition_bodies import (
    TrackingSettings,
    read_tracking_settings,
    write_tracking_settings,
)

_TABLES = """
CREATE TABLE IF NOT EXISTS objects (key TEXT PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS held_positions (
    number INTEGER PRIMARY KEY, object TEXT NOT NULL, time_us INTEGER NOT NULL, id TEXT NOT NULL,
    x REAL, y REAL, feature BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS tracking (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""
_SETTINGS, _CLOCK, _GIVEN = "settings", "clock_us", "given"


@dataclass(frozen=True, slots=True)
class _StoredFacts:
    settings: TrackingSettings
    clock_us: int | None
    given: int


def create_track_tables(connection: sqlite3.Connection) -> None:
    """Make the tables where they are missing; what is under way is committed before."""
    connection.executescript(_TABLES)


def load_tracks(connection: sqlite3.Connection, now_us: int) -> ObjectTracks:
    """Read all that is known; `now_us` is the broker's clock."""
    facts = _read_facts(connection)
    tracks = ObjectTracks(facts.settings, now_us, clock_us=facts.clock_us, given=facts.given)
    held = connection.execute(
        "SELECT number, object, time_us, id, x, y, feature FROM held_positions ORDER BY number"
    )
    records = connection.execute("SELECT key, state FROM objects")
    tracks.table.load(
        records, ((row[0], _read_held(row)) for row in held), facts.settings.silence_us
    )
    return tracks


def _read_facts(connection: sqlite3.Connection) -> _StoredFacts:
    found = dict(connection.execute("SELECT name, value FROM tracking").fetchall())
    settings = read_tracking_settings(json.loads(found.get(_SETTINGS, "{}")))
    return _StoredFacts(settings, found.get(_CLOCK), found.get(_GIVEN, 0))


def _read_held(row: tuple[int, str, int, str, float | None, float | None, bytes]) -> HeldPosition:
    _, name, time_us, id_, x, y, feature = row
    nowhere = float("nan")  # which SQLite has as null
    place = (nowhere, nowhere) if x is None or y is None else (x, y)
    return HeldPosition(name, time_us, id_, *place, feature)


def store_changes(connection: sqlite3.Connection, changes: StateChanges) -> None:
    """Store what has become of objects, and the clock."""
    gone = [(name,) for name, record in changes.objects.items() if record is None]
    kept = [(n, record) for n, record in sorted(changes.objects.items()) if record is not None]
    connection.executemany("DELETE FROM objects WHERE key = ?", gone)
    connection.executemany("REPLACE INTO objects VALUES (?, ?)", kept)
    connection.executemany(
        "DELETE FROM held_positions WHERE number = ?", [(n,) for n in changes.released]
    )
    connection.executemany(
        "INSERT INTO held_positions VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(number, *position) for number, position in changes.held.items()],
    )
    if changes.clock_us is not None:
        _put(connection, _CLOCK, changes.clock_us)
    _put(connection, _GIVEN, changes.given)


def store_settings(connection: sqlite3.Connection, settings: TrackingSettings) -> None:
    """Store a tenant's settings."""
    _put(connection, _SETTINGS, json.dumps(write_tracking_settings(settings)))


def _put(connection: sqlite3.Connection, name: str, value: int | str) -> None:
    connection.execute("REPLACE INTO tracking VALUES (?, ?)", (name, value))
