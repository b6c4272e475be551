"""When versions of a published set go, and the files that no version has any more.

Versions go by hours, once the last of an hour has not held for some time. Which files the versions
of an hour have is written down once no version can be added to it, so that nobody has to read
thousands of manifests to learn what is still needed.
"""

from collections.abc import Sequence, Set

import pyarrow as pa
import pyarrow.fs

from contrada.files.snapshot import SUFFIXES
from contrada.spark.drafts import refusing
from contrada.spark.published_sets import list_files, parts_uri, read_manifest
from contrada.spark.small_files import delete, modified_us, read_json, write_json
from contrada.spark.uris import open_uri
from contrada.spark.version_names import (
    VERSIONS,
    VersionName,
    list_hours,
    list_versions_of_hour,
    name_hour,
    walk_versions,
)
from contrada.spark.worker_cache import DRAFT_SUFFIX

_ORPHAN_US = 3_600_000_000  # how long a file may wait for a manifest that names it
_FILES = "files.json"


def prune_versions(uri: str, retention_us: int, now: int) -> None:
    """Delete versions that have not held for some time, and files that no version has any more.

    No version may be added meanwhile.
    """
    newest = next(walk_versions(uri))
    kept = _delete_hours(uri, list_hours(uri), now - retention_us)
    used = {name for hour in kept for name in _list_used(uri, hour, is_over=hour < newest.hour)}
    _delete_old(parts_uri(uri), (SUFFIXES[0], DRAFT_SUFFIX), used, now - _ORPHAN_US)
    _delete_old(f"{uri}/{VERSIONS}", (DRAFT_SUFFIX,), frozenset(), now - _ORPHAN_US)


def _delete_hours(uri: str, hours: Sequence[int], limit: int) -> list[int]:
    """Delete hours in which all versions were followed before a limit; return the others."""
    for place, hour in enumerate(hours):
        after = _find_first(uri, hours[place + 1 :])
        if after is None or after.moment > limit:
            return list(hours[place:])
        for version in list_versions_of_hour(uri, hour):  # the first goes first: no gaps
            delete(uri, version.file_name)
        _delete_folder(uri, name_hour(hour))
    return []


def _find_first(uri: str, hours: Sequence[int]) -> VersionName | None:
    for hour in hours:
        for version in list_versions_of_hour(uri, hour):
            return version
    return None


def _delete_folder(uri: str, name: str) -> None:
    filesystem, folder = open_uri(uri)
    with refusing(uri):
        filesystem.delete_dir(f"{folder}/{name}")


def _list_used(uri: str, hour: int, *, is_over: bool) -> list[str]:
    """List the files that the versions of an hour have."""
    name = f"{name_hour(hour)}/{_FILES}"
    stated = read_json(uri, name) if is_over else None
    if stated is None:
        versions = list_versions_of_hour(uri, hour)
        found = {file for version in versions for file in list_files(read_manifest(uri, version))}
        stated = {"files": sorted(found)}
        if is_over:
            write_json(uri, name, stated)
    files: list[str] = stated["files"]
    return files


def _delete_old(uri: str, suffixes: tuple[str, ...], used: Set[str], limit: int) -> None:
    """Delete files that nothing names; one that is new may be about to be named."""
    filesystem, folder = open_uri(uri)
    with refusing(uri):
        found = filesystem.get_file_info(pa.fs.FileSelector(folder, allow_not_found=True))
    for info in found:
        is_ours = info.base_name.endswith(suffixes) and info.base_name not in used
        if is_ours and modified_us(info) < limit:
            delete(uri, info.base_name)
