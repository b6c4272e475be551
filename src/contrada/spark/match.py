"""`contrada.spark.match`: the matcher inside `mapInArrow`, over DataFrames.

Whatever is wrong with the arguments, the schemas or a subscription is refused before a job over
the events starts.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from contrada.errors import InvalidInput, Remedy
from contrada.matcher.inside import describe_projected
from contrada.showing import brief, listed
from contrada.spark.answering import AnswerShape
from contrada.spark.crs_metadata import refuse_two_systems
from contrada.spark.evaluators import EXACT, Evaluator, make_evaluator
from contrada.spark.event_rows import choose_rows
from contrada.spark.event_samples import EventSample, check_sample, read_sample
from contrada.spark.frames import (
    OF_SOURCES,
    SOURCE_MESSAGE,
    arrow_schema,
    check_id,
    has_whole_ids,
    has_whole_subscribers,
    id_type,
    identify,
    referenced_columns,
    subscription_columns,
    warn_of_mismatches,
    with_wkb,
)
from contrada.spark.jobs import Job
from contrada.spark.meeting import MetSubscriptions, choose_plan, meet_published
from contrada.spark.stream_listening import listen_to
from contrada.spark.subscription_tasks import Subscribed, subscribe
from contrada.spark.task_errors import raising_noted_errors
from contrada.spark.worker import EventColumns
from contrada.spark_options import SparkOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OUTPUT_COLUMNS = {
    "pairs": ("event", "subscription", "subscriber", "version", "error"),
    "counts": ("event", "n", "error"),
}


class StagedSubscriptions(NamedTuple):
    """Subscriptions that tasks have judged and staged, and whether ids are integers."""

    subscribed: Subscribed
    has_whole_ids: bool
    has_whole_subscribers: bool = False


def match(
    events: "DataFrame",
    subscriptions: "DataFrame | str",
    *,
    plan: str = "auto",
    evaluator: str = "exact",
    quarantine: bool = False,
    repair: bool = False,
    strict: bool = False,
    keep: Sequence[str] = (),
    output: str = "pairs",
    event_id: str = "id",
    subscription_id: str = "id",
    sample: "DataFrame | None" = None,
) -> "DataFrame":
    """Match a DataFrame of events, a batch or a stream, against subscriptions.

    This is `Matcher.match_many` on Spark: rows mean the same, but every subscription, and every
    event that does not come straight from Parquet, needs an id, in the columns that `event_id` and
    `subscription_id` name. `register` makes the same matching a function of SQL.

    The subscriptions are a DataFrame, which stays as it is now, or the URI of a set that `publish`
    has made. A batch takes the version that holds at the call; a stream takes, for each of its
    batches, the newest that holds when the batch begins, and the same one if the batch is run
    again; `uri#version` is one version, as long as `publish` keeps it. Plan and types are fixed at
    the start. On a stream every column travels, since a later version may read it. A later version
    that reads a column which the stream lacks is warned of and taken; with `strict` it is passed
    over, and the one before stays in force.

    The answer is a DataFrame of `event, subscription, subscriber, version` and the `keep` columns
    of the event, with geometries as `repair` mended them; with `output="counts"` it has `event, n`
    for every event. `version` names the version of a published set, and is null where subscriptions
    come as a DataFrame, which has none. The events are read when an action runs on the answer.
    A bad event then fails the job, or with `quarantine` comes back once with `subscription` null
    and `error` (code, message, place); `counts` says how many did.

    `plan` is "broadcast", "partitioned" or "auto"; `explain` says which one that is. For the plan
    "partitioned" a job over the events first takes a sample of them, to learn where they fall;
    with `sample`, a DataFrame that has their geometry and is read whole, no job runs over them
    before the answer is asked for. It may be empty; the subscriptions alone then divide the map.
    `evaluator="area"` answers approximately, by the AHS model (docs/engines.md). `repair` mends
    invalid geometries. There are warnings for a constraint on a column that the events lack,
    or that holds another type than it is compared with, for `dwithin` on projected coordinates, and
    for a column of subscriptions whose name matches only in lower case; `strict` refuses these.

    Before any event is read, raises `InvalidInput` for arguments, schemas and coordinate systems
    that do not fit, and its subclass `BadRows` for bad subscriptions; `Unavailable` if
    subscriptions cannot be staged. A bad event raises PySpark's `PythonException`, with our message
    in it, from the action.

    >>> events = spark.createDataFrame([(1, 12), (2, 20)], "id long, wind int")
    >>> winds = spark.createDataFrame([("gale", "wind > 17")], "id string, filter string")
    >>> contrada.spark.match(events, winds).select("event", "subscription").show()
    +-----+------------+
    |event|subscription|
    +-----+------------+
    |    2|        gale|
    +-----+------------+
    <BLANKLINE>
    """
    options = SparkOptions(
        plan=plan,
        evaluator=evaluator,
        quarantine=quarantine,
        repair=repair,
        strict=strict,
        keep=keep,
        output=output,
        event_id=event_id,
        subscription_id=subscription_id,
        sample=sample,
    )
    with raising_noted_errors():
        job = plan_match(events, subscriptions, options)
        answer = job.run()
        if answer.isStreaming:
            listen_to(answer, job.published, events.schema)
        return answer


def plan_match(
    events: "DataFrame",
    subscriptions: "DataFrame | str | StagedSubscriptions",
    options: SparkOptions,
    row: str | None = None,
) -> Job:
    """Check everything, stage the subscriptions, and choose a plan; events are not looked at.

    `row` is a column of row numbers, by which bad events are named.
    """
    check_frames(events, subscriptions)
    if options.sample is not None:
        check_sample(options.sample)
    kept = _check_kept(events, options.keep, options.output)
    identified = identify(events, options.event_id)
    met = meet_subscriptions(identified, subscriptions, options)
    is_live = met.published is not None and met.published.fixed is None
    wanted = (*kept, *([row] if row else []))
    rows = choose_rows(events, identified, met, wanted, options, row=row, needs_moment=is_live)
    shape = AnswerShape(
        (*kept, SOURCE_MESSAGE) if options.quarantine and rows.has_messages else kept,
        options.quarantine,
        options.output == "counts",
        met.has_whole_ids,
        met.has_whole_subscribers,
    )
    return Job(
        rows.numbered,
        met.subscribed,
        rows.columns,
        shape,
        id_type(rows.chosen, options.event_id),
        [rows.chosen.schema[name] for name in shape.keep],
        met.plan,
        _read_sample(options, identified, met, rows.columns),
        met.published,
        rows.origin,
    )


def meet_subscriptions(
    identified: "DataFrame",
    subscriptions: "DataFrame | str | StagedSubscriptions",
    options: SparkOptions,
) -> MetSubscriptions:
    """Stage subscriptions, or open a published set, and compare them with what events have."""
    if isinstance(subscriptions, str):
        return meet_published(identified, subscriptions, options)
    if isinstance(subscriptions, StagedSubscriptions):
        return _meet_staged(identified, subscriptions, options, None)
    staged, system = _stage_frame(identified, subscriptions, options)
    return _meet_staged(identified, staged, options, system)


def _stage_frame(
    events: "DataFrame", subscriptions: "DataFrame", options: SparkOptions
) -> tuple[StagedSubscriptions, str | None]:
    """Stage the subscriptions of a DataFrame; return them, and their coordinate system."""
    if events.isStreaming:
        warnings.warn(
            "the subscriptions are a DataFrame, so the stream keeps them as they are now; publish "
            "them and match the URI to let them change",
            stacklevel=5,
        )
    system = refuse_two_systems(events, subscriptions, options.sample)
    staged = stage_subscriptions(
        subscriptions,
        options.subscription_id,
        options.repair,
        make_evaluator(options.evaluator, events.sparkSession),
        options.strict,
        arrow_schema(events),
    )
    return staged, system


def _meet_staged(
    events: "DataFrame",
    staged: StagedSubscriptions,
    options: SparkOptions,
    system: str | None,
) -> MetSubscriptions:
    """Compare staged subscriptions with what events have."""
    subscribed = staged.subscribed
    referenced = referenced_columns(events, subscribed.attributes, options.strict)
    warn_of_mismatches(_describe_mismatches(subscribed, system), options.strict)
    return MetSubscriptions(
        subscribed,
        tuple(referenced),
        staged.has_whole_ids,
        staged.has_whole_subscribers,
        choose_plan(options.plan, subscribed),
        system=system,
    )


def _read_sample(
    options: SparkOptions, events: "DataFrame", met: MetSubscriptions, reading: EventColumns
) -> EventSample | None:
    if options.sample is None:
        return None
    if met.published is not None:
        raise InvalidInput(
            "sample: a published set is divided when it is published; give the sample to publish"
        )
    return read_sample(options.sample, events, met.subscribed.anchored, reading)


def stage_subscriptions(
    subscriptions: "DataFrame",
    subscription_id: str,
    repair: bool,
    evaluator: Evaluator = EXACT,
    strict: bool = False,
    event_schema: pa.Schema | None = None,
) -> StagedSubscriptions:
    """Stage the subscriptions of a DataFrame."""
    check_id(subscriptions, subscription_id, "subscriptions", Remedy.SPARK_SUBSCRIPTION_ID)
    wanted = subscription_columns(subscriptions, subscription_id, strict)
    chosen = with_wkb(subscriptions, wanted, "subscriptions")
    schema = pa.schema([]) if event_schema is None else event_schema
    subscribed = subscribe(chosen, wanted, subscription_id, repair, evaluator, schema)
    return StagedSubscriptions(
        subscribed,
        has_whole_ids(subscriptions, subscription_id, "subscriptions"),
        has_whole_subscribers(subscriptions),
    )


def _describe_mismatches(subscribed: Subscribed, system: str | None) -> list[str]:
    """Describe what a matcher would say of the same events."""
    found = [f"events: {mismatch}" for mismatch in subscribed.mismatches]
    return found + (describe_projected("events", system) if subscribed.has_distances else [])


def check_frames(events: object, subscriptions: object) -> None:
    """Refuse what is not a DataFrame, and subscriptions that are a stream."""
    for name, frame in (("events", events), ("subscriptions", subscriptions)):
        if not (hasattr(frame, "isStreaming") or isinstance(frame, str | StagedSubscriptions)):
            raise InvalidInput(
                f"{name} must be a Spark DataFrame, not {type(frame).__module__}."
                f"{type(frame).__name__}"
            )
    if getattr(subscriptions, "isStreaming", False):
        raise InvalidInput("subscriptions cannot be a stream; give a batch DataFrame")


def _check_kept(events: "DataFrame", keep: Sequence[str], output: str) -> tuple[str, ...]:
    """Return the columns to keep, each once."""
    if isinstance(keep, str):
        raise InvalidInput(f"keep takes a sequence of column names; write keep=[{keep!r}]")
    for name in keep:
        if name not in events.columns:
            raise InvalidInput(
                f"events have no column {brief(name)} to keep; they have {listed(events.columns)}"
            )
        if name in OF_SOURCES:
            raise InvalidInput(f"the column {name!r} cannot be kept: it is what its source says")
        if name in _OUTPUT_COLUMNS[output]:
            raise InvalidInput(
                f"the column {name!r} cannot be kept: the answer already has a column of that "
                "name; rename it first"
            )
    return tuple(dict.fromkeys(keep))
