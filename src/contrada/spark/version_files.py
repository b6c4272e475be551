"""How a version is added to a published set, and when it goes: the files of manifests.

One publisher at a time: whoever wants to add a version first claims its number, with a file that
the manifest then follows. On a local file system only one can make that file. Elsewhere each makes
one of its own, and gives way if it sees another: two may both be refused, but never both succeed.
"""

import contextlib
import hashlib
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pyarrow as pa
import pyarrow.fs

from contrada.errors import InvalidInput, Unavailable, blame
from contrada.files.snapshot import SUFFIXES
from contrada.spark.published_sets import (
    Manifest,
    VersionName,
    list_versions,
    parts_uri,
    read_manifest,
)
from contrada.spark.staging import StagedPart
from contrada.spark.uris import open_uri

_TRIES_MAX = 5
_CLAIM_US = 60_000_000  # how long a publisher may take from its claim to its manifest
_ORPHAN_US = 3_600_000_000  # how long a part may wait for a manifest that names it
_CLAIM = re.compile(r"(\d{8,})(?:-[0-9a-f]{16})?\.claim")


def now_us() -> int:
    """Return this machine's time, in microseconds since 1970."""
    return time.time_ns() // 1000


def add_version(uri: str, draft: Manifest, newest: Manifest | None, lead_us: int) -> str:
    """Write the manifest of the next version; return the version's name.

    One that is not visible before its moment is withdrawn and written with a later one: a task
    that looked before would not have seen it, and one that looks again would.
    """
    number = 1 if newest is None else newest.number + 1
    with _claimed(uri, number):
        if [v.number for v in list_versions(uri)][-1:] != ([newest.number] if newest else []):
            raise _refuse_second(uri, number)
        for try_ in range(1, _TRIES_MAX + 1):
            moment = 0
            if newest is not None:
                moment = max(now_us() + try_ * lead_us, newest.moment + 1)
            before = None if newest is None else (newest.version, newest.moment)
            manifest = replace(draft, number=number, moment=moment, before=before)
            name = _write(uri, manifest)
            if name in list_versions(uri) and (newest is None or now_us() < moment or not lead_us):
                return str(name)
            _delete(uri, f"versions/{name.file_name}")
    raise Unavailable(
        f"{uri}: in {_TRIES_MAX} tries version {number} was not visible before it was to hold; a "
        f"longer lead than {lead_us / 1e6:g} s may help"
    )


def _write(uri: str, manifest: Manifest) -> VersionName:
    content = manifest.as_json()
    digest = hashlib.sha256(content).hexdigest()[:8]
    name = VersionName(manifest.number, manifest.moment, digest)
    filesystem, folder = open_uri(uri)
    target = f"{folder}/versions/{name.file_name}"
    draft = f"{folder}/versions/.{secrets.token_hex(8)}.tmp"
    with _blaming(uri):
        with filesystem.open_output_stream(draft) as file:
            file.write(content)
        filesystem.move(draft, target)
    return name


@contextmanager
def _claimed(uri: str, number: int) -> Iterator[None]:
    """Claim the number of a version while its manifest is written."""
    filesystem, folder = open_uri(uri)
    with _blaming(uri):
        filesystem.create_dir(f"{folder}/versions", recursive=True)
    is_local = filesystem.type_name == "local"
    own = f"{number:08}.claim" if is_local else f"{number:08}-{secrets.token_hex(8)}.claim"
    _clear_claims(uri)
    path = f"{folder}/versions/{own}"
    if is_local:
        try:
            with open(path, "x"):  # noqa: PTH123  a path of this file system
                pass
        except FileExistsError:
            raise _refuse_second(uri, number) from None
        except OSError as fault:
            raise blame(fault, f"{uri}: cannot be written: {fault}") from fault
    else:
        with _blaming(uri), filesystem.open_output_stream(path) as file:
            file.write(b"")
    try:
        if any(name != own for name, _ in _list_claims(uri)):
            raise _refuse_second(uri, number)
        yield
    finally:
        _delete(uri, f"versions/{own}")


def _refuse_second(uri: str, number: int) -> InvalidInput:
    return InvalidInput(
        f"{uri}: another publisher is adding version {number}; publish again when it has"
    )


def _list_claims(uri: str) -> list[tuple[str, int]]:
    """List the claims that there are, and when each was made."""
    filesystem, folder = open_uri(uri)
    with _blaming(uri):
        found = filesystem.get_file_info(pa.fs.FileSelector(f"{folder}/versions"))
    return [(i.base_name, _modified_us(i)) for i in found if _CLAIM.fullmatch(i.base_name)]


def _clear_claims(uri: str) -> None:
    """Delete claims of publishers that have ended without a manifest."""
    for name, made in _list_claims(uri):
        if made < now_us() - _CLAIM_US:
            _delete(uri, f"versions/{name}")


def prune_versions(uri: str, retention_us: int) -> None:
    """Delete versions that have not held for some time, and parts that no version has any more."""
    versions = list_versions(uri)
    limit = now_us() - retention_us
    kept = [v for v, after in pairwise(versions) if after.moment > limit]
    kept += versions[-1:]
    for version in versions:
        if version not in kept:
            _delete(uri, f"versions/{version.file_name}")
    used = {name for version in kept for name in _list_files(read_manifest(uri, version))}
    _delete_orphans(uri, used)


def _list_files(manifest: Manifest) -> Iterator[str]:
    parts = [*manifest.parts]
    if manifest.partitions is not None:
        parts += [manifest.partitions.table, *manifest.partitions.residual]
        parts += [part for segment in manifest.partitions.segments for part in segment]
    for part in parts:
        yield part.file_name
        if part.gone:
            yield StagedPart(part.gone, 0, 0).file_name


def _delete_orphans(uri: str, used: set[str]) -> None:
    """Delete files that no version has; one that is new may be about to be named by a manifest."""
    filesystem, folder = open_uri(parts_uri(uri))
    with _blaming(uri):
        found = filesystem.get_file_info(pa.fs.FileSelector(folder, allow_not_found=True))
    for info in found:
        is_ours = info.base_name.endswith((SUFFIXES[0], ".tmp"))
        is_old = _modified_us(info) < now_us() - _ORPHAN_US
        if is_ours and is_old and info.base_name not in used:
            _delete(uri, f"parts/{info.base_name}")


def _modified_us(info: pa.fs.FileInfo) -> int:
    modified = info.mtime or datetime.now(UTC)
    return int(modified.timestamp() * 1e6)


def _delete(uri: str, name: str) -> None:
    """Delete a file; one that cannot be deleted, or is gone, does no harm."""
    filesystem, folder = open_uri(uri)
    with contextlib.suppress(OSError, pa.ArrowException):
        filesystem.delete_file(f"{folder}/{name}")


@contextmanager
def _blaming(uri: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as fault:
        raise blame(fault, f"{uri}: cannot be written: {fault}") from fault
