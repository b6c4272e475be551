"""Published sets: immutable parts at a URI, and a manifest for each version.

    URI/parts/DIGEST.contrada                      subscriptions, or which rows of a part are gone
    URI/versions/HOUR/NUMBER-MOMENT-DIGEST.json    the manifest of a version

A version holds from its moment, in microseconds since 1970, until that of the next. The moment is
in the name, so that of all manifests only the wanted one is read. A batch of a stream takes the
newest version that holds at the moment at which it began: so do all its tasks, and so does the
same batch if it is run again.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from contrada.errors import InvalidInput, blame
from contrada.spark.chosen_sets import ROUTED_VERSION, ChosenSet
from contrada.spark.evaluators import Evaluator
from contrada.spark.frames import MOMENT
from contrada.spark.set_descriptions import SetDescription, StreamEvents
from contrada.spark.staged_partitions import PublishedPartitions
from contrada.spark.staging import StagedPart, StagedSet
from contrada.spark.uris import as_uri, is_remote, open_uri
from contrada.spark.version_names import (
    VersionName,
    list_versions,
    spell_moment,
    walk_versions,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_FORMAT = 1
_VERSION = re.compile(r"(\d+)-([0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A version of a published set: its parts, and what planning must know of them.

    `before` names the version before it and says from when that one held. `fallbacks` are versions
    before it that ask less of events, the newest first: a strict stream that lacks what this one
    reads, and one in another coordinate system than it states, takes the first that it can.
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
    fallbacks: tuple["Manifest", ...] = ()
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

    def asks_no_more_than(self, other: "Manifest") -> bool:
        """Whether all events that can take the other version can take this one."""
        is_anywhere = self.crs is None or self.crs == other.crs
        return is_anywhere and self.description.asks_no_more_than(other.description)

    def fit(self, events: StreamEvents | None) -> "Manifest | None":
        """Return what the events of a stream take where this version holds."""
        for each in (self, *self.fallbacks):
            if events is None or not events.find_faults(each.description, each.crs, each.version):
                return each
        return None

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
            self.number,
        )


@dataclass(frozen=True, slots=True)
class PublishedChoice:
    """The versions of a published set, of which a task takes the newest that holds in its batch.

    A version that is not for `events` is passed over. `fixed` is the one version for all tasks. The
    plan has `partition_count` partitions.
    """

    uri: str
    evaluator: Evaluator
    events: StreamEvents | None = None
    fixed: Manifest | None = None
    partition_count: int = 0

    def choose(self, batch: pa.RecordBatch) -> ChosenSet:
        """Choose the version of a batch: for events that were brought here, that which did so."""
        if self.fixed is not None:
            return self.fixed.choose(self.uri, self.evaluator)
        number = None
        if ROUTED_VERSION in batch.schema.names:
            number = batch.column(ROUTED_VERSION)[0].as_py()
        return _choose(self, int(batch.column(MOMENT)[0].as_py()), number)


@lru_cache(maxsize=16)
def _choose(choice: PublishedChoice, moment: int, number: int | None) -> ChosenSet:
    """Choose the version of a batch, which a worker does once for all tasks of the batch."""
    manifest = find_manifest(choice.uri, moment, choice.events, number)
    return manifest.choose(choice.uri, choice.evaluator)


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


def find_newest(uri: str) -> Manifest | None:
    """Read the manifest of the newest version, whether it holds yet or not; None without any."""
    newest = next(walk_versions(uri), None)
    return None if newest is None else read_manifest(uri, newest)


def find_manifest(
    uri: str, moment: int, events: StreamEvents | None = None, number: int | None = None
) -> Manifest:
    """Find the version that holds at a moment; for some events, the newest that they can take.

    With the number of a version, find that one: it was the newest when another task looked.
    """
    newest: Manifest | None = None
    for version in walk_versions(uri, moment):
        manifest = read_manifest(uri, version)
        newest = newest or manifest
        found = manifest.fit(events)
        if found is not None and number in (None, found.number):
            return found
        if number is None or version.number < number:
            break
    if newest is None:
        raise InvalidInput(f"{uri}: {_describe_gone(uri, moment)}")
    if number is not None:
        raise InvalidInput(f"{uri}: version {number}, which brought events here, is gone")
    assert events is not None, "where nothing is known of events, every version fits"
    faults = events.find_faults(newest.description, newest.crs, newest.version)
    raise InvalidInput(f"{uri}: no version is for events such as these: {'; '.join(faults)}")


def find_lacking(manifest: Manifest, schema: "StructType") -> list[str]:
    """List the attributes that a version reads and events of a schema cannot have."""
    return manifest.description.find_lacking(schema)


def _describe_gone(uri: str, moment: int) -> str:
    first = next(iter(list_versions(uri)), None)
    if first is None:
        return "no subscriptions are published there"
    before = read_manifest(uri, first).before
    which = "a version"
    if before is not None:
        which = f"version {before[0]}" if before[1] <= moment else f"a version before {before[0]}"
    return (
        f"{which}, which held at {spell_moment(moment)}, is gone: `retention` of publish says for "
        f"how long a version is kept after it has held. The first one kept is {first}, from "
        f"{spell_moment(first.moment)} on. To go on with a batch of that time, let one that is "
        f"kept answer for it: start the stream with '{uri}#{first}' until it has caught up, then "
        "with the URI again"
    )


def find_version(uri: str, version: str) -> Manifest:
    """Read the manifest of a version by its name."""
    known = list_versions(uri)
    for name in known:
        if str(name) == version:
            return read_manifest(uri, name)
    if not known:
        raise InvalidInput(f"{uri}: no subscriptions are published there")
    raise InvalidInput(
        f"{uri}: has no version {version!r}, or no longer has it: `retention` of publish says how "
        f"long one is kept after it has held; those kept are {known[0]} to {known[-1]}"
    )


@lru_cache(maxsize=64)
def read_manifest(uri: str, name: VersionName) -> Manifest:
    """Read a manifest, which a process does once: it never changes."""
    filesystem, folder = open_uri(uri)
    place = f"{uri}/{name.file_name}"
    try:
        with filesystem.open_input_stream(f"{folder}/{name.file_name}") as file:
            content = file.read()
        if digest_content(content) != name.digest:
            raise InvalidInput(f"{place}: is damaged: its digest is not that of its name")
        stated = json.loads(content)
        format_ = stated.pop("format")
        if format_ != _FORMAT:
            raise InvalidInput(
                f"{place}: is in format {format_}; this version of Contrada reads {_FORMAT}"
            )
        return _make_manifest(stated | {"version": str(name)})
    except (OSError, pa.ArrowException) as fault:
        message = f"{place}: cannot be read: {fault}"
        raise blame(fault, message, is_remote=is_remote(uri)) from fault
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        if isinstance(fault, InvalidInput):
            raise
        raise InvalidInput(f"{place}: is not a manifest: {fault!r}") from fault


def digest_content(content: bytes) -> str:
    """Return the digest of a manifest, which is part of its name and shows damage."""
    return hashlib.sha256(content).hexdigest()[:8]


def _make_manifest(stated: dict[str, Any]) -> Manifest:
    stated["parts"] = tuple(StagedPart(**part) for part in stated["parts"])
    stated["description"] = SetDescription.of(stated["description"])
    if stated["partitions"] is not None:
        stated["partitions"] = PublishedPartitions.of(stated["partitions"])
    if stated["before"] is not None:
        stated["before"] = tuple(stated["before"])
    stated["fallbacks"] = tuple(map(_make_manifest, stated["fallbacks"]))
    return Manifest(**stated)


def count_rows(parts: Sequence[StagedPart]) -> int:
    """Count the subscriptions of some parts."""
    return sum(part.count for part in parts)


def list_files(manifest: Manifest) -> Iterator[str]:
    """List the files among the parts that a version needs, some perhaps more than once."""
    parts = [*manifest.parts]
    if manifest.partitions is not None:
        parts += [manifest.partitions.table, *manifest.partitions.residual]
        parts += [part for segment in manifest.partitions.segments for part in segment]
    for part in parts:
        yield part.file_name
        if part.gone:
            yield StagedPart(part.gone, 0, 0).file_name
    for older in manifest.fallbacks:
        yield from list_files(older)
