"""Where subscriptions wait for the workers: parts of a set, as snapshots at a URI.

A part is named by its digest, so that a task that runs twice writes the same file. The URI is one
that every machine reaches; on each machine a part is fetched once, whoever asks for it.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.fs

from contrada.arrays import Positions
from contrada.errors import ContradaError, InvalidInput, Unavailable, blame
from contrada.files.sections import Sections, open_sections
from contrada.files.snapshot import SUFFIXES
from contrada.files.snapshot_header import read_digest
from contrada.machine import locked, temporary_folder
from contrada.spark.evaluators import EXACT, Evaluator
from contrada.spark.small_files import delete
from contrada.spark.uris import is_remote, open_uri
from contrada.spark.worker_cache import DRAFT_SUFFIX, CachePruner, cache_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGING = "spark.contrada.staging"
BROADCAST_BYTES_MAX = 512 * 2**20  # of subscriptions that every worker holds, unless it is told to
GONE = "spark.gone"  # the column of positions that are gone from a part
_COPY_BYTES = 2**20
_FRESH = timedelta(minutes=30)  # of a file that may wait for a manifest, which it may for an hour
_pruner = CachePruner()
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass(frozen=True, slots=True)
class StagedPart:
    """Some subscriptions of a set, as a snapshot.

    `gone` names a file with the positions of rows that a version has no more; `count` is without
    them.
    """

    digest: str
    count: int
    size_bytes: int
    gone: str = ""

    @property
    def file_name(self) -> str:
        """The name of the file, at the URI and in the cache."""
        return self.digest + SUFFIXES[0]


@dataclass(frozen=True, slots=True)
class StagedSet:
    """Parts at a URI that together are one set of subscriptions, and what decides them.

    `version` names the version of a published set, which shares parts with others.
    """

    uri: str
    parts: tuple[StagedPart, ...]
    evaluator: Evaluator = EXACT
    version: str | None = None

    @property
    def digest(self) -> str:
        """Name the set by its content."""
        names = sorted(part.digest for part in self.parts)
        return hashlib.sha256("".join(names).encode()).hexdigest()

    @property
    def size_bytes(self) -> int:
        """Count the bytes of all parts."""
        return sum(part.size_bytes for part in self.parts)

    @property
    def count(self) -> int:
        """Count the subscriptions of all parts."""
        return sum(part.count for part in self.parts)

    def fetch(self) -> Iterator[Sections]:
        """Open the parts, each from this machine's copy."""
        for part in sorted(self.parts, key=lambda part: part.digest):
            yield fetch(self.uri, part)


def staging_uri(spark: "SparkSession") -> str:
    """Choose where the parts go: where the session says, or on one machine a temporary folder."""
    stated = spark.conf.get(STAGING, None)
    if stated:
        return str(stated)
    master = str(spark.conf.get("spark.master", ""))
    if not master.startswith("local"):
        raise InvalidInput(
            f"{STAGING} is not set: subscriptions need a folder that all machines of {master} "
            "reach, such as s3://bucket/contrada or file:///shared/contrada"
        )
    return _temporary_folder()


@lru_cache(maxsize=1)
def _temporary_folder() -> str:
    return temporary_folder("staging").as_uri()


def put(uri: str, path: Path, count: int) -> StagedPart:
    """Copy a snapshot to a URI, whole or not at all.

    One that is there stays; but if it is old it is written anew, since in a published set a file
    that no version has is deleted an hour after it was written.
    """
    part = StagedPart(read_digest(path), count, path.stat().st_size)
    filesystem, folder = open_uri(uri)
    target, draft = f"{folder}/{part.file_name}", f"{folder}/.{uuid.uuid4().hex}.tmp"
    try:
        filesystem.create_dir(folder, recursive=True)
        known = filesystem.get_file_info(target)
        if known.size == part.size_bytes and _is_fresh(known):
            return part
        with path.open("rb") as source, filesystem.open_output_stream(draft) as sink:
            shutil.copyfileobj(source, sink, _COPY_BYTES)
        filesystem.move(draft, target)
    except OSError as fault:
        with contextlib.suppress(OSError):
            filesystem.delete_file(draft)
        message = f"{uri}: subscriptions cannot be written there: {fault}"
        raise blame(fault, message, is_remote=is_remote(uri)) from fault
    return part


def delete_parts(uri: str, parts: Sequence[StagedPart]) -> None:
    """Delete parts at a URI; one that cannot be deleted does no harm."""
    for part in parts:
        delete(uri, part.file_name)


def _is_fresh(info: pa.fs.FileInfo) -> bool:
    return info.mtime is None or datetime.now(UTC) - info.mtime < _FRESH


def fetch_gone(uri: str, part: StagedPart) -> Positions:
    """Return the positions of a part's rows that are gone."""
    if not part.gone:
        return np.zeros(0, np.int64)
    return fetch(uri, StagedPart(part.gone, 0, 0)).columns[GONE]


def fetch(uri: str, part: StagedPart) -> Sections:
    """Open a part from this machine's copy, which is made if there is none or a damaged one.

    The checksum is verified before a copy gets its name; whoever opens it later only maps it.
    """
    folder = cache_folder("snapshots")
    path = folder / part.file_name
    # A lock cannot be deleted while others may wait for it: there are sixteen, shared by the parts.
    with locked(folder / f"{part.digest[0]}.lock"):
        if path.exists():
            try:
                os.utime(path)
                return _expect(open_sections(path, verify=False), part)
            except (ContradaError, OSError):
                path.unlink(missing_ok=True)
        _copy_here(uri, part, path)
        file = _expect(open_sections(path, verify=False), part)
    _pruner.add(path, SUFFIXES[0])
    return file


def _expect(file: Sections, part: StagedPart) -> Sections:
    if file.digest != part.digest:
        raise InvalidInput(f"is another snapshot: its digest is {file.digest}")
    return file


def _copy_here(uri: str, part: StagedPart, path: Path) -> None:
    filesystem, folder = open_uri(uri)
    draft = path.with_name(f".{uuid.uuid4().hex}{DRAFT_SUFFIX}")
    try:
        with (
            filesystem.open_input_stream(f"{folder}/{part.file_name}") as source,
            draft.open("xb") as sink,
        ):
            shutil.copyfileobj(source, sink, _COPY_BYTES)
        _expect(open_sections(draft), part)
        draft.replace(path)
    except InvalidInput as error:
        raise error.within(f"{uri}/{part.file_name}") from None
    except (OSError, pa.ArrowException) as fault:
        if isinstance(fault, OSError) and fault.errno in _NO_ROOM:
            raise Unavailable(
                f"{path.parent}: a copy of the subscriptions cannot be written there: "
                f"{fault.strerror}; set XDG_CACHE_HOME to another folder"
            ) from fault
        message = f"{uri}/{part.file_name}: the subscriptions cannot be read from here: {fault}"
        raise blame(fault, message, is_remote=is_remote(uri)) from fault
    finally:
        draft.unlink(missing_ok=True)
