"""What a match needs to know of subscriptions before it runs, whether staged or published."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.spark.crs_metadata import refuse_other_system
from contrada.spark.evaluators import make_evaluator
from contrada.spark.frames import (
    arrow_schema,
    can_travel,
    referenced_columns,
    warn_of_mismatches,
)
from contrada.spark.published_sets import (
    Manifest,
    PublishedChoice,
    find_manifest,
    find_version,
    parts_uri,
    split_uri,
)
from contrada.spark.set_descriptions import StreamEvents
from contrada.spark.staging import BROADCAST_BYTES_MAX, StagedSet
from contrada.spark.subscription_tasks import Subscribed
from contrada.spark.version_files import now_us
from contrada.spark_options import SparkOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class ChosenPlan:
    """Which plan to take, and why."""

    name: str
    reason: str


def choose_plan(wanted: str, subscribed: Subscribed) -> ChosenPlan:
    """Choose a plan: the one asked for, else by the size of the set, which every worker holds."""
    if wanted != "auto":
        return ChosenPlan(wanted, "requested")
    size, limit = subscribed.staged.size_bytes, BROADCAST_BYTES_MAX
    is_small = size <= limit
    reason = (
        f"the subscriptions are {size:,} bytes, {'at most' if is_small else 'more than'} {limit:,}"
    )
    return ChosenPlan("broadcast" if is_small else "partitioned", reason)


@dataclass(frozen=True, slots=True)
class MetSubscriptions:
    """Subscriptions that events are to meet, the columns of events that travel, and the plan.

    `system` is the coordinate system that one of the two states.
    """

    subscribed: Subscribed
    columns: tuple[str, ...]
    has_whole_ids: bool
    has_whole_subscribers: bool
    plan: ChosenPlan
    published: PublishedChoice | None = None
    system: str | None = None


def meet_published(events: "DataFrame", text: str, options: SparkOptions) -> MetSubscriptions:
    """Open a published set, and compare the version that holds now with what events have."""
    uri, named = split_uri(text)
    is_live = events.isStreaming and named is None
    evaluator = make_evaluator(options.evaluator, events.sparkSession)
    columns = arrow_schema(events)
    of_stream = _describe_stream(events, columns, options, uri) if is_live else None
    now = now_us()
    manifest = find_manifest(uri, now, of_stream) if named is None else find_version(uri, named)
    if of_stream is not None:
        _warn_of_passing(of_stream, find_manifest(uri, now), uri)
    plan = _choose_published_plan(options, manifest, uri)
    stated = manifest.description
    subscribed = Subscribed(
        StagedSet(parts_uri(uri), manifest.parts, evaluator, manifest.version),
        frozenset(stated.attributes),
        stated.geometries,
        stated.anchored,
        stated.broad,
        stated.bounds,
        has_distances=stated.has_distances,
    )
    system = refuse_other_system(events, manifest.crs, uri)
    referenced = referenced_columns(events, subscribed.attributes, options.strict)
    warn_of_mismatches(stated.describe_unmet(columns, system, manifest.version), options.strict)
    count = 0 if manifest.partitions is None else len(manifest.partitions.segments)
    return MetSubscriptions(
        subscribed,
        _list_travelling(events) if is_live else tuple(referenced),
        manifest.has_whole_ids,
        manifest.has_whole_subscribers,
        plan,
        PublishedChoice(uri, evaluator, of_stream, None if is_live else manifest, count),
        system,
    )


def _describe_stream(
    events: "DataFrame", columns: pa.Schema, options: SparkOptions, uri: str
) -> StreamEvents | None:
    """Describe events by which versions may be passed over; None where all are taken."""
    system = refuse_other_system(events, None, uri)
    if system is None and not options.strict:
        return None
    return StreamEvents(events.schema, columns, system, options.strict)


def _warn_of_passing(events: StreamEvents, newest: Manifest, uri: str) -> None:
    for fault in events.find_faults(newest.description, newest.crs, newest.version):
        warnings.warn(f"{uri}: {fault}: it is passed over", stacklevel=5)


def _choose_published_plan(options: SparkOptions, manifest: Manifest, uri: str) -> ChosenPlan:
    """Choose a plan that the set was published for."""
    has_partitions = manifest.partitions is not None
    if options.evaluator == "area" and options.plan != "partitioned":
        return ChosenPlan("broadcast", "a published set is matched by area as a whole")
    if options.evaluator == "area":
        raise InvalidInput(
            "evaluator='area' matches a published set in the plan \"broadcast\" only"
        )
    if options.plan == "partitioned" and not has_partitions:
        raise InvalidInput(
            f'{uri}: the set was published without partitions, so the plan "partitioned" is not '
            "available; publish it elsewhere with partitions=…"
        )
    if options.plan != "auto":
        return ChosenPlan(options.plan, "requested")
    if has_partitions:
        return ChosenPlan("partitioned", "the set was published in partitions")
    return ChosenPlan("broadcast", "the set was published as a whole")


def _list_travelling(events: "DataFrame") -> tuple[str, ...]:
    """List the columns that Spark can pass to Python; warn of the others."""
    from contrada.spark.frames import OF_SOURCES

    names = [name for name in events.columns if name not in OF_SOURCES]
    lost = [name for name in names if not can_travel(events.schema[name].dataType)]
    if lost:
        warnings.warn(
            f"events: Spark cannot pass {', '.join(map(repr, lost))} to Python, so no version "
            "can read them",
            stacklevel=6,
        )
    return tuple(name for name in names if name not in lost)
