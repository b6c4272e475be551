"""How a version is added to a published set: the files of manifests, one publisher at a time.

On a file system of this machine, mounted ones among them, a publisher holds a lock, which goes when
its process ends. Elsewhere each makes a file of its own, its claim, and gives way if it sees that
of another: two may both be refused. A claim whose publisher ended without removing it counts for a
minute. Where neither lock nor claim has kept two apart, because locks do not reach all machines or
one took longer than a minute, both see two manifests of one number, and withdraw their own: two may
both be refused, but never both succeed.
"""

import logging
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.fs

from contrada.errors import ContradaError, Unavailable
from contrada.machine import try_lock
from contrada.spark.drafts import refusing
from contrada.spark.published_sets import Manifest, digest_content, list_files, parts_uri
from contrada.spark.small_files import delete, modified_us, write_small
from contrada.spark.uris import open_uri
from contrada.spark.version_names import VERSIONS, VersionName, hour_of, walk_versions
from contrada.spark.version_pruning import prune_versions

_TRIES_MAX = 5
_FALLBACKS_MAX = 8  # versions before one that strict streams may go on with
_CLAIM_US = 60_000_000  # how long a publisher may take from its claim to its manifest
_CLAIM = re.compile(r"[0-9a-f]{16}\.claim")
_LOCK = ".lock"
_logger = logging.getLogger(__name__)


def now_us() -> int:
    """Return this machine's time, in microseconds since 1970."""
    return time.time_ns() // 1000


def add_version(
    uri: str, draft: Manifest, newest: Manifest | None, lead_us: int, retention_us: int
) -> str:
    """Add the version after the newest to a set, and return its name; refuse a second publisher.

    The first version of an hour takes along those that have not held for so long.
    """
    with _publishing(uri):
        name = _add(uri, draft, newest, lead_us)
        if newest is not None and name.hour != hour_of(newest.moment):
            try:
                prune_versions(uri, retention_us, now_us())
            except ContradaError as error:  # the version is there, and it is tried again
                _logger.warning("what no version needs could not be deleted: %s", error)
    return str(name)


@contextmanager
def _publishing(uri: str) -> Iterator[None]:
    """Be the only one who adds versions to a set, or takes some away."""
    filesystem, folder = open_uri(uri)
    with refusing(uri):
        filesystem.create_dir(f"{folder}/{VERSIONS}", recursive=True)
    is_local = filesystem.type_name == "local"
    with _locked(uri, Path(folder)) if is_local else _claimed(uri):
        yield


def _add(uri: str, draft: Manifest, newest: Manifest | None, lead_us: int) -> VersionName:
    """Write the manifest of the version after the newest; return its name.

    One that is not visible before its moment is withdrawn and written with a later one: a task
    that looked before would not have seen it, and one that looks again would.
    """
    number = 1 if newest is None else newest.number + 1
    last = next(walk_versions(uri), None)
    if (0 if last is None else last.number) != number - 1:
        raise _refuse_second(uri)
    _check_files(uri, draft, newest)
    for try_ in range(1, _TRIES_MAX + 1):
        moment = 0
        if newest is not None:
            moment = max(now_us() + try_ * lead_us, newest.moment + 1)
        name = _write(uri, replace(draft, number=number, moment=moment), newest)
        known = _list_from(uri, number)
        if known == [name] and (newest is None or now_us() < moment or not lead_us):
            return name
        delete(uri, name.file_name)
        if [other for other in known if other != name]:
            raise _refuse_second(uri)
    raise Unavailable(
        f"{uri}: in {_TRIES_MAX} tries version {number} was not visible before it was to hold; a "
        f"longer lead than {lead_us / 1e6:g} s may help"
    )


def _write(uri: str, manifest: Manifest, newest: Manifest | None) -> VersionName:
    if newest is not None:
        before = newest.version, newest.moment
        manifest = replace(manifest, before=before, fallbacks=_list_fallbacks(manifest, newest))
    content = manifest.as_json()
    name = VersionName(manifest.number, manifest.moment, digest_content(content))
    write_small(uri, name.file_name, content)
    return name


def _list_fallbacks(manifest: Manifest, newest: Manifest) -> tuple[Manifest, ...]:
    """List versions before that some events have all for, and not for any version after them."""
    found = [manifest]
    for older in (replace(newest, before=None, fallbacks=()), *newest.fallbacks):
        if not any(each.asks_no_more_than(older) for each in found):
            found.append(older)
    return tuple(found[1 : 1 + _FALLBACKS_MAX])


def _list_from(uri: str, number: int) -> list[VersionName]:
    """List the versions that there are from a number on, some of which may have the same."""
    found = []
    for version in walk_versions(uri):
        if version.number < number:
            break
        found.append(version)
    return found


def _check_files(uri: str, draft: Manifest, newest: Manifest | None) -> None:
    """Refuse to name files that another publisher has deleted since they were written."""
    known = set() if newest is None else set(list_files(newest))
    filesystem, folder = open_uri(parts_uri(uri))
    wanted = sorted({*list_files(draft)} - known)
    with refusing(uri):
        found = filesystem.get_file_info([f"{folder}/{name}" for name in wanted])
    for info in found:
        if info.type != pa.fs.FileType.File:
            raise Unavailable(
                f"{uri}: another publisher has deleted {info.base_name}, which no version had for "
                "an hour; publish again"
            )


@contextmanager
def _locked(uri: str, folder: Path) -> Iterator[None]:
    with refusing(uri):
        try:
            lock = try_lock(folder / VERSIONS / _LOCK)
        except BlockingIOError:
            raise _refuse_second(uri) from None
    with lock:
        yield


@contextmanager
def _claimed(uri: str) -> Iterator[None]:
    """Claim a set; the name of a claim is never that of another, so that only old ones go."""
    own = f"{secrets.token_hex(8)}.claim"
    write_small(uri, f"{VERSIONS}/{own}", b"")
    try:
        others = [(name, made) for name, made in _list_claims(uri) if name != own]
        for name, made in others:
            if made >= now_us() - _CLAIM_US:
                raise _refuse_second(uri)
            delete(uri, f"{VERSIONS}/{name}")
        yield
    finally:
        delete(uri, f"{VERSIONS}/{own}")


def _refuse_second(uri: str) -> Unavailable:
    return Unavailable(f"{uri}: another publisher is adding a version; publish again when it has")


def _list_claims(uri: str) -> list[tuple[str, int]]:
    """List the claims that there are, and when each was made."""
    filesystem, folder = open_uri(uri)
    with refusing(uri):
        found = filesystem.get_file_info(pa.fs.FileSelector(f"{folder}/{VERSIONS}"))
    return [(i.base_name, modified_us(i)) for i in found if _CLAIM.fullmatch(i.base_name)]
