"""The versions of a published set by their names, of which each says from when its version holds.

    URI/versions/HOUR/NUMBER-MOMENT-DIGEST.json

A later version has a greater number and a later moment. HOUR is that of the moment, counted since
1970: whoever looks for the version of a moment reads two short lists, however many there are.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.fs

from contrada.errors import blame
from contrada.spark.uris import is_remote, open_uri

VERSIONS = "versions"
_HOUR_US = 3_600_000_000
_HOUR = re.compile(r"\d{8,}")
_NAME = re.compile(r"(\d{8,})-(\d+)-([0-9a-f]{8})\.json")
_DIGEST_BITS = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class VersionName:
    """What the name of a manifest says: which version it is, and from when it holds."""

    number: int
    moment: int
    digest: str

    def __str__(self) -> str:
        return f"{self.number}-{self.digest}"

    @property
    def hour(self) -> int:
        """The hour from which the version holds."""
        return hour_of(self.moment)

    @property
    def file_name(self) -> str:
        """The name of the manifest's file, below the URI of the set."""
        name = f"{self.number:08}-{self.moment}-{self.digest}.json"
        return f"{name_hour(self.hour)}/{name}"


def number_version(name: str) -> int:
    """Return a number for the name of a version, greater for a later one: Spark compares it fast.

    >>> name_version(number_version("7-3fa9c2d1"))
    '7-3fa9c2d1'
    """
    number, digest = name.split("-")
    return int(number) << _DIGEST_BITS | int(digest, 16)


def name_version(number: int) -> str:
    """Return the name of a version that `number_version` has numbered."""
    return f"{number >> _DIGEST_BITS}-{number & 2**_DIGEST_BITS - 1:08x}"


def hour_of(moment: int) -> int:
    """Return the hour of a moment, counted since 1970."""
    return moment // _HOUR_US


def name_hour(hour: int) -> str:
    """Name the folder of the versions that hold from a moment in an hour, below the URI."""
    return f"{VERSIONS}/{hour:08}"


def list_hours(uri: str) -> list[int]:
    """List the hours that have versions, or had, in their order."""
    return sorted(int(info.base_name) for info in _list(uri) if _HOUR.fullmatch(info.base_name))


def list_versions_of_hour(uri: str, hour: int) -> list[VersionName]:
    """List the versions that hold from a moment in an hour, in their order."""
    return _read_names(_list(uri, name_hour(hour)))


def list_versions(uri: str) -> list[VersionName]:
    """List all versions of a set that are kept, in their order; it takes longer the more."""
    return _read_names(_list(uri, is_deep=True))


def walk_versions(uri: str, moment: int | None = None) -> Iterator[VersionName]:
    """Yield versions from the newest on; with a moment, from the one that holds then."""
    for hour in reversed(list_hours(uri)):
        if moment is None or hour <= hour_of(moment):
            for version in reversed(list_versions_of_hour(uri, hour)):
                if moment is None or version.moment <= moment:
                    yield version


def spell_moment(moment: int) -> str:
    """Write a moment as ISO 8601."""
    try:
        return (_EPOCH + timedelta(microseconds=moment)).isoformat()
    except OverflowError:
        return f"{moment} µs"


def _list(uri: str, name: str = VERSIONS, *, is_deep: bool = False) -> list[pa.fs.FileInfo]:
    filesystem, folder = open_uri(uri)
    selector = pa.fs.FileSelector(f"{folder}/{name}", allow_not_found=True, recursive=is_deep)
    try:
        found: list[pa.fs.FileInfo] = filesystem.get_file_info(selector)
    except (OSError, pa.ArrowException) as fault:
        message = f"{uri}: its versions cannot be listed: {fault}"
        raise blame(fault, message, is_remote=is_remote(uri)) from fault
    return found


def _read_names(found: list[pa.fs.FileInfo]) -> list[VersionName]:
    names = [_NAME.fullmatch(info.base_name) for info in found]
    versions = [VersionName(int(name[1]), int(name[2]), name[3]) for name in names if name]
    return sorted(versions, key=lambda version: (version.number, version.moment))
