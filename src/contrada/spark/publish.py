"""`contrada.spark.publish`: subscriptions as a versioned set, which streams take up as they run."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from contrada.errors import InvalidInput, Remedy
from contrada.files.crs import is_same_crs
from contrada.flags import check_flags
from contrada.model.event import GEOMETRY
from contrada.spark.crs_metadata import stated_crs
from contrada.spark.evaluators import EXACT
from contrada.spark.event_samples import check_sample
from contrada.spark.frames import (
    check_id,
    has_whole_ids,
    has_whole_subscribers,
    subscription_columns,
    with_wkb,
)
from contrada.spark.handshake import Handshake
from contrada.spark.publish_tasks import SETTLED, SettledVersion, SettleTask
from contrada.spark.published_partitions import place, wants_partitions
from contrada.spark.published_sets import (
    Manifest,
    find_newest,
    find_version,
    parts_uri,
    split_uri,
)
from contrada.spark.staging import delete_parts
from contrada.spark.subscription_tasks import StageTask, list_parts, refuse_ids, run_staging
from contrada.spark.task_errors import raising_noted_errors
from contrada.spark.version_files import add_version
from contrada.spark_options import read_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAME = "subscriptions"
_KINDS = {True: "integers", False: "strings"}  # of ids, by whether they are whole


def publish(
    subscriptions: "DataFrame | str",
    uri: str | os.PathLike[str],
    *,
    subscription_id: str = "id",
    repair: bool = False,
    strict: bool = False,
    partitions: int | None = None,
    sample: "DataFrame | None" = None,
    lead: str | float = "2 s",
    retention: str | float = "7 days",
) -> str:
    """Publish subscriptions at a URI as the next version of a set, and return the version's name.

    Unlike subscriptions that `match` gets as a DataFrame, which stay as they were when it was
    called, a published set can change while streams run: `match(stream, uri)` takes up a new
    version at the beginning of a batch. The first version holds at once; a later one holds `lead`
    after it is published, so that every machine sees it in time, and the clocks of the machines
    must agree better than that. The same subscriptions again give the version that is there.

    Rows that the version before has too keep their files, so that workers read and index only what
    changed. What held within `retention` is kept, for batches that are run again, and goes when
    later versions are published. `uri#version` names one version and never another, as long as it
    is kept; given as `subscriptions`, it is published again.

    The first version decides how the set can be matched. With `partitions`, or where it is too
    large for every worker to hold, it is divided for the plan "partitioned", into that many or as
    many partitions as a shuffle has; `sample`, a DataFrame of events, says where these fall, and
    divides the set anew in a later version.

    Subscriptions without a row are a version, too, from which on nothing matches; their ids have
    the type of those before, and in a first version that of their column.

    Raises `InvalidInput` for bad arguments, and where ids have another type or geometries another
    coordinate system than in the version before; its subclass `BadRows` for bad subscriptions; and
    `Unavailable` where the URI cannot be written, and where another publisher was quicker. The set
    then stays as it was.

    >>> import tempfile
    >>> winds = spark.createDataFrame([("gale", "wind > 17")], "id string, filter string")
    >>> events = spark.createDataFrame([(1, 12), (2, 20)], "id long, wind int")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     version = contrada.spark.publish(winds, folder)
    ...     pairs = contrada.spark.match(events, folder).collect()
    >>> [(pair.event, pair.subscription, pair.version == version) for pair in pairs]
    [(2, 'gale', True)]
    """
    check_flags(repair=repair, strict=strict)
    target, named = split_uri(os.fspath(uri))
    if named is not None:
        raise InvalidInput(f"{uri}: names a version; publish to the set, without #{named}")
    lead_us, retention_us = read_duration(lead, "lead"), read_duration(retention, "retention")
    if partitions is not None and (isinstance(partitions, bool) or partitions < 1):
        raise InvalidInput(f"partitions must be a number >= 1, not {partitions!r}")
    if sample is not None:
        check_sample(sample)
    newest = find_newest(target)
    if newest is not None and partitions is not None:
        _refuse_other_partitions(newest, partitions, target)
    with raising_noted_errors():
        if isinstance(subscriptions, str):
            draft = _publish_again(subscriptions, target, newest)
        else:
            options = _Options(subscription_id, repair, strict, partitions, sample)
            draft = _stage(subscriptions, target, newest, options)
    if newest is not None and draft.content == newest.content:
        return newest.version
    return add_version(target, draft, newest, lead_us, retention_us)


@dataclass(frozen=True, slots=True)
class _Options:
    """How to read subscriptions, and how to divide them."""

    subscription_id: str
    repair: bool
    strict: bool
    partitions: int | None
    sample: "DataFrame | None"


def _publish_again(text: str, target: str, newest: Manifest | None) -> Manifest:
    """Return a version that is there, to be published once more.

    A coordinate system that the set has come to state since then stays.
    """
    uri, named = split_uri(text)
    if uri != target or named is None:
        raise InvalidInput(
            f"subscriptions must be a DataFrame, or a version of the set itself such as "
            f"'{target}#7-3fa9c2d1', not {text!r}"
        )
    found = find_version(uri, named)
    crs = found.crs if newest is None or newest.crs is None else newest.crs
    return replace(found, crs=crs, fallbacks=())


def _stage(
    subscriptions: "DataFrame", uri: str, newest: Manifest | None, options: _Options
) -> Manifest:
    """Stage what is new among subscriptions, and make the manifest of their version."""
    _refuse_other_kinds(subscriptions)
    check_id(subscriptions, options.subscription_id, _NAME, Remedy.SPARK_SUBSCRIPTION_ID)
    if newest is not None:
        misfit = _find_misfit(subscriptions, newest, options, uri)
        if misfit is not None and not subscriptions.isEmpty():  # which has neither ids nor system
            raise InvalidInput(misfit)
    spark = subscriptions.sparkSession
    wanted = subscription_columns(subscriptions, options.subscription_id, options.strict)
    chosen = with_wkb(subscriptions, wanted, _NAME)
    task = StageTask(
        Handshake.here(),
        parts_uri(uri),
        tuple(wanted),
        options.subscription_id,
        options.repair,
        EXACT,
        pa.schema([]),
        () if newest is None else newest.parts,
    )
    lines = run_staging(chosen, task)
    rows = sum((line["rows"] or 0) + (line["unchanged"] or 0) for line in lines)
    is_seen = _bring_together(lines)
    _refuse_doubles(chosen, lines, is_seen, options.subscription_id, rows)
    added = list_parts(lines)
    settling = SettleTask(Handshake.here(), task.uri, task.known or (), is_seen.tobytes(), added)
    (row,) = spark.range(0, 1, 1, 1).mapInArrow(settling, SETTLED).collect()
    settled = SettledVersion.of(row["settled"])
    if newest is None:  # later, an old version may have what this one has staged on the way
        used = {part.digest for part in settled.parts}
        delete_parts(task.uri, [part for part in added if part.digest not in used])
    refuse_ids(settled.repeated, rows)
    before = None if rows else newest  # whose kinds a version without subscriptions has
    id_ = options.subscription_id
    manifest = Manifest(
        number=0,
        moment=0,
        has_whole_ids=before.has_whole_ids if before else has_whole_ids(subscriptions, id_, _NAME),
        has_whole_subscribers=_read_subscriber_kind(subscriptions, newest, before),
        crs=before.crs if before else _choose_crs(subscriptions, newest),
        parts=settled.parts,
        description=settled.description,
    )
    if not wants_partitions(manifest, newest, options.partitions):
        return manifest
    placed = place(spark, uri, manifest, newest, options.partitions, options.sample)
    return replace(manifest, partitions=placed)


def _refuse_other_kinds(frame: object) -> None:
    if not hasattr(frame, "isStreaming"):
        raise InvalidInput(
            f"subscriptions must be a Spark DataFrame, or a version of the set itself, not "
            f"{type(frame).__module__}.{type(frame).__name__}"
        )
    if frame.isStreaming:
        raise InvalidInput("subscriptions cannot be a stream; give a batch DataFrame")


def _find_misfit(frame: "DataFrame", newest: Manifest, options: _Options, uri: str) -> str | None:
    """Describe what streams that run on the version before could not take up."""
    is_whole = has_whole_ids(frame, options.subscription_id, _NAME)
    if is_whole != newest.has_whole_ids:
        return (
            f"{uri}: the ids are {_KINDS[newest.has_whole_ids]} in version {newest.version}, and "
            f"would be {_KINDS[is_whole]}, which running streams cannot take up; publish elsewhere"
        )
    crs = _stated(frame)
    if crs is not None and newest.crs is not None and not is_same_crs(crs, newest.crs):
        return (
            f"{uri}: version {newest.version} is in {newest.crs:.60}, the subscriptions are in "
            f"{crs:.60}; transform them, or publish elsewhere"
        )
    return None


def _refuse_other_partitions(newest: Manifest, partitions: int, uri: str) -> None:
    """Refuse another number of partitions than running streams count on."""
    if newest.partitions is None:
        raise InvalidInput(
            f"partitions={partitions}: version {newest.version} has no partitions, and running "
            "streams match it as a whole; publish elsewhere"
        )
    count = len(newest.partitions.segments) - 1
    if partitions != count:
        raise InvalidInput(
            f"{uri}: the first version has {count} partitions, and running streams count on them; "
            f"partitions={partitions} needs another URI"
        )


def _stated(frame: "DataFrame") -> str | None:
    return stated_crs(frame, GEOMETRY) if GEOMETRY in frame.columns else None


def _choose_crs(frame: "DataFrame", newest: Manifest | None) -> str | None:
    if newest is not None and newest.crs is not None:
        return newest.crs
    return _stated(frame)


def _read_subscriber_kind(
    frame: "DataFrame", newest: Manifest | None, before: Manifest | None
) -> bool:
    """Whether subscribers are integers; a set without any leaves it as it was."""
    if before is not None:
        return before.has_whole_subscribers
    is_whole = has_whole_subscribers(frame)
    if newest is None or "subscriber" not in frame.columns:
        return is_whole if newest is None else newest.has_whole_subscribers
    if is_whole != newest.has_whole_subscribers:
        raise InvalidInput(
            f"subscriptions, column 'subscriber': version {newest.version} has "
            f"{_KINDS[newest.has_whole_subscribers]}, and would have {_KINDS[is_whole]}, which "
            "running streams cannot take up; publish elsewhere"
        )
    return is_whole


def _bring_together(lines: Sequence[dict[str, Any]]) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """Bring together which rows of the version before tasks have seen."""
    seen = [np.frombuffer(line["seen"], np.uint8) for line in lines if line["seen"] is not None]
    return np.bitwise_or.reduce(seen) if seen else np.zeros(0, np.uint8)


def _refuse_doubles(
    chosen: "DataFrame",
    lines: Sequence[dict[str, Any]],
    is_seen: "np.ndarray[Any, np.dtype[np.uint8]]",
    id_: str,
    rows: int,
) -> None:
    """Refuse rows that the version before has, and that came more than once."""
    unchanged = sum(line["unchanged"] or 0 for line in lines)
    if unchanged == int(np.unpackbits(is_seen).sum()):
        return
    counted = chosen.groupBy(id_).count().where("count > 1").orderBy(id_).limit(10).collect()
    refuse_ids([(row[0], row[1]) for row in counted], rows)
