"""A copy of a data folder, also of a broker that runs: started from it, the log has a new epoch.

The log of each tenant is copied as it is at one moment. The files of collections never change, so
that they are copied after it; what can be made again is left out.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from contrada.broker.keys import KEYS_FILE
from contrada.broker.log_schema import LOG_FILE, open_reading
from contrada.broker.restoring import ROWS_FOLDER
from contrada.broker.tenant_folders import list_tenants, tenant_folder
from contrada.errors import Conflict, InvalidInput, Unavailable, blame

_TRIES_MAX = 5


@dataclass(frozen=True, slots=True)
class CopiedTenant:
    """A tenant that was copied: the last position of its log, and the bytes of its files."""

    tenant: str
    position: str
    nbytes: int


def back_up(data: Path, target: Path) -> list[CopiedTenant]:
    """Copy a data folder to one that is not there yet; it appears whole or not at all."""
    tenants = list(list_tenants(data))
    if not tenants:
        raise InvalidInput(f"{data}: is not the data folder of a broker: it has no tenants")
    if target.exists():
        raise Conflict(f"{target}: is there already; name a folder that is not")
    draft = target.with_name(f".{target.name}.draft-{os.getpid()}")
    try:
        draft.mkdir(mode=0o700, parents=True)  # secrets of webhooks are in it
        copied = [_copy_tenant(data, draft, tenant) for tenant in tenants]
        with suppress(FileNotFoundError):
            shutil.copy2(data / KEYS_FILE, draft / KEYS_FILE)
        draft.rename(target)
    except OSError as fault:
        raise blame(fault, f"{target}: cannot be written: {fault.strerror}") from fault
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return copied


def _copy_tenant(data: Path, draft: Path, tenant: str) -> CopiedTenant:
    source, target = tenant_folder(data, tenant), tenant_folder(draft, tenant)
    (target / ROWS_FOLDER).mkdir(parents=True)
    for _ in range(_TRIES_MAX):
        position = _copy_log(source / LOG_FILE, target / LOG_FILE)
        if _copy_rows(source, target):
            break
    else:
        raise Unavailable(f"{source}: its collections change faster than they can be copied")
    nbytes = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return CopiedTenant(tenant, position, nbytes)


def _copy_log(source: Path, target: Path) -> str:
    """Copy a log as it is at one moment, and mark it as a copy; return its last position."""
    target.unlink(missing_ok=True)
    try:
        with closing(open_reading(source)) as reading, closing(sqlite3.connect(target)) as writing:
            reading.backup(writing)
            writing.execute("PRAGMA journal_mode = DELETE")
            writing.execute("REPLACE INTO meta VALUES ('is_backup', 1)")
            writing.commit()
            (name,) = writing.execute("SELECT name FROM epochs ORDER BY first DESC").fetchone()
            (last,) = writing.execute("SELECT max(position) FROM entries").fetchone()
    except sqlite3.DatabaseError as fault:
        raise Unavailable(f"{source}: cannot be copied: {fault}") from fault
    return f"{name}-{last or 0}"


def _copy_rows(source: Path, target: Path) -> bool:
    """Copy the files of the collections that a copied log names; whether all were still there."""
    for name in _list_files(target / LOG_FILE):
        copy = target / ROWS_FOLDER / name
        if copy.exists():
            continue
        try:
            shutil.copy2(source / ROWS_FOLDER / name, copy)
        except FileNotFoundError:  # dropped since the log was copied
            return False
    return True


def _list_files(log: Path) -> Iterator[str]:
    with closing(open_reading(log)) as connection:
        yield from [name for (name,) in connection.execute("SELECT file FROM row_ranges")]
