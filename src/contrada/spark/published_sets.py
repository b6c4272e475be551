"""Published sets: immutable parts at a URI, and a manifest for each version.

    URI/parts/DIGEST.contrada                 subscriptions, or which rows of a part are gone
    URI/versions/NUMBER-MOMENT-DIGEST.json    the manifest of a version

A version holds from its moment, in microseconds since 1970, until that of the next. The moment is
in the name, so that of all manifests only the wanted one is read. A batch of a stream takes the
newest version that holds at the moment at which it began: so do all its tasks, and so does the
same batch if it is run again.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs

from contrada.arrays import Box
from contrada.errors import InvalidInput, blame
from contrada.language.expecting import Kinds, ValueKind
from contrada.spark.chosen_sets import ChosenSet
from contrada.spark.evaluators import Evaluator
from contrada.spark.frames import MOMENT, has_path
from contrada.spark.staged_partitions import PublishedPartitions
from contrada.spark.staging import StagedPart, StagedSet
from contrada.spark.uris import as_uri, open_uri

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_FORMAT = 1
_NAME = re.compile(r"(\d{8,})-(\d+)-([0-9a-f]{8})\.json")
_VERSION = re.compile(r"(\d+)-([0-9a-f]{8})")
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
    def file_name(self) -> str:
        """The name of the manifest's file."""
        return f"{self.number:08}-{self.moment}-{self.digest}.json"


@dataclass(frozen=True, slots=True)
class SetDescription:
    """What planning must know of the subscriptions of a version; see `Subscribed`."""

    attributes: tuple[str, ...]
    geometries: tuple[str, ...]
    anchored: tuple[str, ...]
    broad: int
    bounds: Box | None
    has_distances: bool
    expectations: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, stated: Mapping[str, Any]) -> "SetDescription":
        """Take a description out of JSON."""
        lists = {name: tuple(stated[name]) for name in ("attributes", "geometries", "anchored")}
        expectations = tuple((name, tuple(kinds)) for name, kinds in stated["expectations"])
        bounds = None if stated["bounds"] is None else tuple(stated["bounds"])
        others = {name: stated[name] for name in ("broad", "has_distances")}
        return cls(**lists, **others, bounds=bounds, expectations=expectations)  # type: ignore[arg-type]

    def expected_kinds(self) -> frozenset[tuple[str, Kinds]]:
        """Return which kinds of values the subscriptions expect of attributes."""
        found = [
            (name, frozenset(ValueKind[k] for k in kinds)) for name, kinds in self.expectations
        ]
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A version of a published set: its parts, and what planning must know of them.

    `before` names the version before it and says from when that one held.
    """

    number: int
    moment: int
    has_whole_ids: bool
    has_whole_subscribers: bool
    crs: str | None
    parts: tuple[StagedPart, ...]
    description: SetDescription
    partitions: PublishedPartitions | None = None
    before: tuple[str, int] | None = None
    version: str = field(default="", compare=False)

    @property
    def content(self) -> object:
        """What the version holds, whenever that is."""
        return self.has_whole_ids, self.has_whole_subscribers, self.crs, self.parts, self.partitions

    def as_json(self) -> bytes:
        """Write the manifest; its own digest, in the name of its file, is left out."""
        stated = {"format": _FORMAT, **asdict(self)}
        del stated["version"]
        return json.dumps(stated, sort_keys=True).encode()

    def choose(self, uri: str, evaluator: Evaluator) -> ChosenSet:
        """Return the version as tasks meet it."""
        partitions = self.partitions
        return ChosenSet(
            StagedSet(parts_uri(uri), self.parts, evaluator, self.version),
            self.description.geometries,
            self.description.anchored,
            self.version,
            None
            if partitions is None
            else partitions.open(parts_uri(uri), evaluator, self.version),
        )


@dataclass(frozen=True, slots=True)
class PublishedChoice:
    """The versions of a published set, of which a task takes the newest that holds in its batch.

    With `schema`, that of the events, a version is passed over if it reads an attribute that they
    lack. `fixed` is the one version for all tasks. The plan has `partition_count` partitions.
    """

    uri: str
    evaluator: Evaluator
    schema: "StructType | None" = None
    fixed: Manifest | None = None
    partition_count: int = 0

    def choose(self, batch: pa.RecordBatch) -> ChosenSet:
        """Choose the version of a batch."""
        manifest = self.fixed
        if manifest is None:
            moment = int(batch.column(MOMENT)[0].as_py())
            manifest = find_manifest(self.uri, moment, self.schema)
        return manifest.choose(self.uri, self.evaluator)


def parts_uri(uri: str) -> str:
    """Return where the parts of a published set lie."""
    return f"{uri}/parts"


def split_uri(text: str) -> tuple[str, str | None]:
    """Split `uri#version` into the URI of a set and the version, None where none is named."""
    uri, mark, version = text.partition("#")
    if mark and not _VERSION.fullmatch(version):
        raise InvalidInput(
            f"{text}: {version!r} is not the name of a version such as publish returns, "
            "for instance '7-3fa9c2d1'"
        )
    return as_uri(uri).rstrip("/"), version if mark else None


def list_versions(uri: str) -> list[VersionName]:
    """List the versions of a published set that are there, in their order."""
    filesystem, folder = open_uri(uri)
    selector = pa.fs.FileSelector(f"{folder}/versions", allow_not_found=True)
    try:
        found = filesystem.get_file_info(selector)
    except (OSError, pa.ArrowException) as fault:
        raise blame(fault, f"{uri}: its versions cannot be listed: {fault}") from fault
    names = [_NAME.fullmatch(info.base_name) for info in found]
    versions = [VersionName(int(name[1]), int(name[2]), name[3]) for name in names if name]
    return sorted(versions, key=lambda version: version.number)


def find_manifest(uri: str, moment: int, schema: "StructType | None" = None) -> Manifest:
    """Find the newest version that holds at a moment; with a schema, the newest that fits it."""
    versions = list_versions(uri)
    if not versions:
        raise InvalidInput(f"{uri}: no subscriptions are published there")
    holding = [version for version in versions if version.moment <= moment]
    if not holding:
        raise InvalidInput(f"{uri}: {_describe_gone(uri, versions[0], moment)}")
    for version in reversed(holding):
        manifest = read_manifest(uri, version)
        if schema is None or not find_lacking(manifest, schema):
            return manifest
    lacking = ", ".join(map(repr, find_lacking(manifest, schema))) if schema else ""
    raise InvalidInput(f"{uri}: every version kept reads what the events lack, such as {lacking}")


def find_lacking(manifest: Manifest, schema: "StructType") -> list[str]:
    """List the attributes that a version reads and events of a schema cannot have."""
    return [name for name in manifest.description.attributes if not has_path(schema, name)]


def _describe_gone(uri: str, first: VersionName, moment: int) -> str:
    before = read_manifest(uri, first).before
    which = "a version"
    if before is not None:
        which = f"version {before[0]}" if before[1] <= moment else f"a version before {before[0]}"
    return (
        f"{which}, which held at {spell_moment(moment)}, is gone; the first one kept is "
        f"{first}, from {spell_moment(first.moment)} on: `retention` of publish says for how long "
        "a version is kept after it has held"
    )


def spell_moment(moment: int) -> str:
    """Write a moment as ISO 8601."""
    try:
        return (_EPOCH + timedelta(microseconds=moment)).isoformat()
    except OverflowError:
        return f"{moment} µs"


def find_version(uri: str, version: str) -> Manifest:
    """Read the manifest of a version by its name."""
    for name in list_versions(uri):
        if str(name) == version:
            return read_manifest(uri, name)
    raise InvalidInput(f"{uri}: there is no version {version!r}, or no longer")


@lru_cache(maxsize=64)
def read_manifest(uri: str, name: VersionName) -> Manifest:
    """Read a manifest, which a process does once: it never changes."""
    filesystem, folder = open_uri(uri)
    place = f"{uri}/versions/{name.file_name}"
    try:
        with filesystem.open_input_stream(f"{folder}/versions/{name.file_name}") as file:
            stated = json.loads(file.read())
        format_ = stated.pop("format")
        if format_ != _FORMAT:
            raise InvalidInput(
                f"{place}: is in format {format_}; this version of Contrada reads {_FORMAT}"
            )
        return _make_manifest(stated, str(name))
    except (OSError, pa.ArrowException) as fault:
        raise blame(fault, f"{place}: cannot be read: {fault}") from fault
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        if isinstance(fault, InvalidInput):
            raise
        raise InvalidInput(f"{place}: is not a manifest: {fault!r}") from fault


def _make_manifest(stated: dict[str, Any], version: str) -> Manifest:
    stated["parts"] = tuple(StagedPart(**part) for part in stated["parts"])
    stated["description"] = SetDescription.of(stated["description"])
    if stated["partitions"] is not None:
        stated["partitions"] = PublishedPartitions.of(stated["partitions"])
    if stated["before"] is not None:
        stated["before"] = tuple(stated["before"])
    return Manifest(**stated, version=version)


def count_rows(parts: Sequence[StagedPart]) -> int:
    """Count the subscriptions of some parts."""
    return sum(part.count for part in parts)
