"""What must hold in the log of a tenant, looked at from outside; a broker may be running on it.

The file is read as it is at one moment. Each fault that is found is one line.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from contrada.broker.log_schema import LOG_FILE, LOG_FORMAT, open_reading
from contrada.broker.match_lists import unpack
from contrada.broker.restoring import ROWS_FOLDER
from contrada.broker.retention import BLOCK_BITS, BLOCK_POSITIONS
from contrada.errors import ContradaError, InvalidInput
from contrada.matcher.packed_rows import PackedRows

_FAULTS_MAX = 20  # that are shown of each kind


def find_log_faults(folder: Path) -> list[str]:
    """Find what is wrong with a tenant's log; nothing in a sound one."""
    path = folder / LOG_FILE
    if not path.is_file():
        raise InvalidInput(f"{path}: is not there")
    with closing(open_reading(path)) as connection:
        try:
            (found,) = connection.execute("PRAGMA user_version").fetchone()
            if found != LOG_FORMAT:
                return [f"the log is in format {found}; this version checks {LOG_FORMAT}"]
            damage = [
                text
                for (text,) in connection.execute(f"PRAGMA integrity_check({_FAULTS_MAX})")
                if text != "ok"
            ]
            if damage:
                return [f"the file is damaged: {text}" for text in damage]
            connection.execute("BEGIN")
            return [
                fault
                for check in (_check_entries, _check_deliveries, _check_subscriptions)
                for fault in _some(check(connection))
            ] + list(_some(_check_rows(connection, folder)))
        except sqlite3.DatabaseError as fault:
            return [f"the file is damaged: {fault}"]


def _some(faults: Iterator[str]) -> Iterator[str]:
    for count, fault in enumerate(faults):
        if count == _FAULTS_MAX:
            yield "and more of this kind"
            return
        yield fault


def _check_entries(connection: sqlite3.Connection) -> Iterator[str]:
    """Look for positions that are missing, and bodies that are not JSON."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'floor'").fetchone()
    expected = (0 if row is None else row[0]) + 1
    for position, body in connection.execute(
        "SELECT position, body FROM entries ORDER BY position"
    ):
        # A block that ended early is followed by the next one.
        if position not in {expected, (expected - 1 | BLOCK_POSITIONS - 1) + 1}:
            yield f"entries {expected} to {position - 1} are missing"
        expected = position + 1
        if body is not None and not _is_json(body):
            yield f"the body of entry {position} is not JSON"


def _is_json(text: bytes | str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _check_deliveries(connection: sqlite3.Connection) -> Iterator[str]:
    """Look for deliveries of what is not there, or in a block that is not theirs."""
    numbers = {n for (n,) in connection.execute("SELECT number FROM subscriptions")}
    ranges = connection.execute("SELECT first, count FROM row_ranges ORDER BY first").fetchall()
    rows = connection.execute(
        "SELECT d.block, d.subscriber, d.position, d.matches, e.position FROM deliveries d "
        "LEFT JOIN entries e ON e.position = d.position"
    )
    for block, subscriber, position, matches, entry in rows:
        place = f"the delivery of entry {position} for subscriber {subscriber}"
        if entry is None:
            yield f"{place} has no entry"
        if block != position >> BLOCK_BITS:
            yield f"{place} is in block {block}"
        for match in unpack(matches):
            if match.number not in numbers and not _is_in(match.number, ranges):
                yield f"{place} names subscription {match.number}, which is not there"


def _is_in(number: int, ranges: list[tuple[int, int]]) -> bool:
    return any(first <= number < first + count for first, count in ranges)


def _check_subscriptions(connection: sqlite3.Connection) -> Iterator[str]:
    """Look for subscriptions without a subscriber, bodies that are damaged, lost cursors."""
    rows = connection.execute(
        "SELECT v.id, v.body, s.number FROM subscriptions v "
        "LEFT JOIN subscribers s ON s.number = v.subscriber WHERE v.ended IS NULL"
    )
    for id_, body, subscriber in rows:
        if subscriber is None:
            yield f"the subscription {id_!r} has no subscriber"
        if not _is_json(body):
            yield f"the body of the subscription {id_!r} is not JSON"
    (head,) = connection.execute(
        "SELECT max(coalesce((SELECT max(position) FROM entries), 0), "
        "coalesce((SELECT value FROM meta WHERE name = 'floor'), 0))"
    ).fetchone()
    for name, cursor in connection.execute(
        "SELECT name, cursor FROM subscribers WHERE cursor > ?", (head,)
    ):
        yield f"the cursor of {name!r} is at {cursor}, after the last entry, {head}"


def _check_rows(connection: sqlite3.Connection, folder: Path) -> Iterator[str]:
    """Look for files of collections that are missing or damaged."""
    for (file,) in connection.execute("SELECT file FROM row_ranges"):
        try:
            PackedRows.open(folder / ROWS_FOLDER / file)
        except ContradaError as fault:
            yield f"the rows {file} cannot be used: {fault}"
