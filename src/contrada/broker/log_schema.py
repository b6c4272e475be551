"""The file of a log: its tables, who may open it, and upgrades of older ones.

An *entry* is an event, a change, or what time and changes made of positions that came before. Each
has a number, one more than the one before it. Deliveries are keyed by block of positions, then
subscriber, then position: a commit touches few pages, the next delivery of a subscriber is found by
a seek in each block, and retention drops whole blocks.

One connection writes and checkpoints; all others are read-only, since two that checkpoint could
damage the file in versions of SQLite before 3.51.3.
"""

import sqlite3
from pathlib import Path

from contrada.broker.webhook_tables import WEBHOOK_TABLES
from contrada.errors import InvalidInput, Unavailable

LOG_FORMAT = 1
LOG_FILE = "log.sqlite"
_APPLICATION = 0x436F6E74  # "Cont", in the header of the file
BUSY_MS = 10_000

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE epochs (first INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE entries (
    position INTEGER PRIMARY KEY, kind INTEGER NOT NULL, time_us INTEGER NOT NULL, body BLOB,
    key BLOB, matches INTEGER);
CREATE TABLE deliveries (
    block INTEGER, subscriber INTEGER, position INTEGER, matches,
    PRIMARY KEY (block, subscriber, position)) WITHOUT ROWID;
CREATE TABLE blocks (block INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, lived_us INTEGER NOT NULL);
CREATE TABLE subscribers (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, cursor INTEGER NOT NULL,
    created INTEGER NOT NULL, lost INTEGER NOT NULL DEFAULT 0);
CREATE TABLE subscriptions (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL, subscriber INTEGER NOT NULL, body TEXT NOT NULL,
    created INTEGER NOT NULL, ended INTEGER, expires_us INTEGER);
CREATE UNIQUE INDEX living_subscriptions ON subscriptions (id) WHERE ended IS NULL;
CREATE INDEX subscriptions_of ON subscriptions (subscriber, id) WHERE ended IS NULL;
CREATE INDEX expiring_subscriptions ON subscriptions (expires_us)
    WHERE ended IS NULL AND expires_us IS NOT NULL;
CREATE INDEX ended_subscriptions ON subscriptions (ended) WHERE ended IS NOT NULL;
CREATE TABLE row_ranges (
    first INTEGER PRIMARY KEY, count INTEGER NOT NULL, subscription INTEGER NOT NULL,
    file TEXT NOT NULL, created INTEGER NOT NULL, ended INTEGER);
"""


def open_writing(path: Path, *, is_durable: bool = True) -> sqlite3.Connection:
    """Open the connection that writes; make the file if it is not there, upgrade an older one."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1_000
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'OFF'}")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")
        _settle_format(connection, path)
    except sqlite3.DatabaseError as fault:
        connection.close()
        raise blame_log(path, fault) from fault
    except BaseException:
        connection.close()
        raise
    return connection


def _settle_format(connection: sqlite3.Connection, path: Path) -> None:
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (count,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not count and any((path.parent / "rows").glob("*")):
        raise InvalidInput(f"{path}: is empty, though there are rows of collections beside it")
    if not count:
        script = (
            f"BEGIN IMMEDIATE; {_TABLES} {WEBHOOK_TABLES} PRAGMA application_id = {_APPLICATION};"
        )
        connection.executescript(f"{script} PRAGMA user_version = {LOG_FORMAT}; COMMIT;")
        return
    if application != _APPLICATION:
        raise InvalidInput(f"{path}: is a database, but not the log of a broker")
    if found > LOG_FORMAT:
        raise InvalidInput(
            f"{path}: was written by a newer version, in format {found}; this one reads up to "
            f"{LOG_FORMAT}"
        )


def open_reading(path: Path) -> sqlite3.Connection:
    """Open a connection that only reads."""
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_MS / 1_000,
        )
        connection.execute("PRAGMA query_only = 1")
    except sqlite3.DatabaseError as fault:
        raise blame_log(path, fault) from fault
    return connection


def blame_log(path: Path, fault: sqlite3.DatabaseError) -> InvalidInput | Unavailable:
    """Make an error of ours: damage is the file's, everything else the machine's."""
    if isinstance(fault, sqlite3.OperationalError):
        return Unavailable(f"{path}: cannot be opened: {fault}")
    return InvalidInput(f"{path}: is not a log, or damaged: {fault}; contrada check says more")
