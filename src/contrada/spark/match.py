"""`contrada.spark.match`: the matcher inside `mapInArrow`, over DataFrames.

Whatever is wrong with the arguments, the schemas or a subscription is refused before a job over
the events starts.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.errors import InvalidInput, NotBuilt, Remedy
from contrada.matcher.inside import describe_projected
from contrada.showing import brief, listed
from contrada.spark.answering import AnswerShape
from contrada.spark.crs_metadata import refuse_two_systems, stated_primary
from contrada.spark.evaluators import EXACT, Evaluator, make_evaluator
from contrada.spark.event_samples import check_sample, read_sample
from contrada.spark.frames import (
    arrow_schema,
    check_id,
    has_whole_ids,
    has_whole_subscribers,
    id_type,
    identify,
    referenced_columns,
    subscription_columns,
    warn_of_mismatches,
    with_file,
    with_wkb,
)
from contrada.spark.jobs import Job, choose_plan
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
    """Match a DataFrame of events against a DataFrame of subscriptions.

    This is `Matcher.match_many` on Spark: rows mean the same, but every subscription, and every
    event that does not come straight from Parquet, needs an id, in the columns that `event_id` and
    `subscription_id` name. `register` makes the same matching a function of SQL.

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
    that do not fit, its subclass `BadRows` for bad subscriptions, and its subclass `NotBuilt` for
    streams and published sets; `Unavailable` if subscriptions cannot be staged. A bad event raises
    PySpark's `PythonException`, with our message in it, from the action.

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
        return plan_match(events, subscriptions, options).run()


def plan_match(
    events: "DataFrame",
    subscriptions: "DataFrame | str",
    options: SparkOptions,
    row: str | None = None,
) -> Job:
    """Check everything, stage the subscriptions, and choose a plan; events are not looked at.

    `row` is a column of row numbers, by which bad events are named.
    """
    _check_frames(events, subscriptions)
    assert not isinstance(subscriptions, str)
    if options.sample is not None:
        check_sample(options.sample)
    system = refuse_two_systems(events, subscriptions, options.sample)
    event_id, is_strict = options.event_id, options.strict
    kept = _check_kept(events, options.keep, options.output)
    given, events = events, identify(events, event_id)
    deciding = make_evaluator(options.evaluator, events.sparkSession)
    subscribed, has_whole_ids = stage_subscriptions(
        subscriptions,
        options.subscription_id,
        options.repair,
        deciding,
        is_strict,
        arrow_schema(events),
    )
    referenced = referenced_columns(events, subscribed.attributes, is_strict)
    warn_of_mismatches(_describe_mismatches(subscribed, system), is_strict)
    columns = tuple(dict.fromkeys((event_id, *referenced, *kept, *([row] if row else []))))
    shape = AnswerShape(
        kept,
        options.quarantine,
        options.output == "counts",
        has_whole_ids,
        has_whole_subscribers(subscriptions),
    )
    chosen = with_wkb(events, columns, "events")
    if (
        options.quarantine and events is given and row is None
    ):  # else the id names the file, or the caller
        chosen = with_file(chosen)
    # PySpark's mapInArrow takes no column with a dot or a backtick in its name.
    numbered = chosen.toDF(*(f"column{i}" for i in range(len(chosen.columns))))
    fields = [chosen.schema[name] for name in kept]
    primary = stated_primary(events)
    reading = EventColumns(
        tuple(chosen.columns),
        event_id,
        subscribed.geometries,
        options.repair,
        deciding,
        primary if primary in chosen.columns else None,
        row,
    )
    sample = None
    if options.sample is not None:
        sample = read_sample(options.sample, events, subscribed.anchored, reading)
    kind, chosen_plan = id_type(chosen, event_id), choose_plan(options.plan, subscribed)
    return Job(numbered, subscribed, reading, shape, kind, fields, chosen_plan, sample)


def stage_subscriptions(
    subscriptions: "DataFrame",
    subscription_id: str,
    repair: bool,
    evaluator: Evaluator = EXACT,
    strict: bool = False,
    event_schema: pa.Schema | None = None,
) -> tuple[Subscribed, bool]:
    """Stage subscriptions; return them, and whether their ids are integers."""
    check_id(subscriptions, subscription_id, "subscriptions", Remedy.SPARK_SUBSCRIPTION_ID)
    wanted = subscription_columns(subscriptions, subscription_id, strict)
    chosen = with_wkb(subscriptions, wanted, "subscriptions")
    schema = pa.schema([]) if event_schema is None else event_schema
    subscribed = subscribe(chosen, wanted, subscription_id, repair, evaluator, schema)
    return subscribed, has_whole_ids(subscriptions, subscription_id, "subscriptions")


def _describe_mismatches(subscribed: Subscribed, system: str | None) -> list[str]:
    """Describe what a matcher would say of the same events."""
    found = [f"events: {mismatch}" for mismatch in subscribed.mismatches]
    return found + (describe_projected("events", system) if subscribed.has_distances else [])


def _check_frames(events: object, subscriptions: object) -> None:
    for name, frame in (("events", events), ("subscriptions", subscriptions)):
        if not (hasattr(frame, "isStreaming") or isinstance(frame, str)):
            raise InvalidInput(
                f"{name} must be a Spark DataFrame, not {type(frame).__module__}."
                f"{type(frame).__name__}"
            )
    if isinstance(subscriptions, str):
        raise NotBuilt(f"subscriptions from a published set ({subscriptions!r}) are not built yet")
    if getattr(events, "isStreaming", False):
        raise NotBuilt("events from a stream are not built yet; give a batch DataFrame")
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
        if name in _OUTPUT_COLUMNS[output]:
            raise InvalidInput(
                f"the column {name!r} cannot be kept: the answer already has a column of that "
                "name; rename it first"
            )
    return tuple(dict.fromkeys(keep))
