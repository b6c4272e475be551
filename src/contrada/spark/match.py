"""`contrada.spark.match`: the matcher inside `mapInArrow`, over DataFrames.

Whatever is wrong with the arguments, the schemas or a subscription is refused before a job over
the events starts.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from contrada.errors import InvalidInput, NotBuilt, Remedy
from contrada.showing import brief, listed
from contrada.spark.answering import AnswerShape
from contrada.spark.crs_metadata import refuse_two_systems, stated_primary
from contrada.spark.evaluators import EXACT, Evaluator, make_evaluator
from contrada.spark.frames import (
    check_id,
    has_whole_ids,
    has_whole_subscribers,
    id_type,
    identify,
    referenced_columns,
    subscription_columns,
    with_file,
    with_wkb,
)
from contrada.spark.jobs import Job, choose_plan
from contrada.spark.subscription_tasks import Subscribed, subscribe
from contrada.spark.worker import EventColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OUTPUT_COLUMNS = {
    "pairs": ("event", "subscription", "subscriber", "version", "error"),
    "counts": ("event", "n", "error"),
}
_PLANS = ("auto", "broadcast", "partitioned")
_EVALUATORS = ("exact", "area")


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
) -> "DataFrame":
    """Match a DataFrame of events against a DataFrame of subscriptions.

    Gives `event, subscription, subscriber, version` and the `keep` columns of the event, with
    geometries as `repair` mended them; with `output="counts"` gives `event, n` for every event.
    `version` names the version of a published set, and is null where subscriptions come as a
    DataFrame, which has none. A bad event row fails the job, or with `quarantine` comes back once
    with `subscription` null and `error` (code, message, place).
    `evaluator="area"` gives the approximate answer of the AHS model, which is that of a matcher
    with the engine "ahs". `repair` mends invalid geometries. A constraint on a column that the
    events lack is warned of, or with `strict` refused, and so is a column of the subscriptions
    that would count in small letters.
    """
    return plan_match(
        events,
        subscriptions,
        plan=plan,
        evaluator=evaluator,
        quarantine=quarantine,
        repair=repair,
        strict=strict,
        keep=keep,
        output=output,
        event_id=event_id,
        subscription_id=subscription_id,
    ).run()


def plan_match(
    events: "DataFrame",
    subscriptions: "DataFrame | str",
    *,
    plan: str,
    evaluator: str,
    quarantine: bool,
    repair: bool,
    strict: bool,
    keep: Sequence[str],
    output: str,
    event_id: str,
    subscription_id: str,
    row: str | None = None,
) -> Job:
    """Check everything, stage the subscriptions, and choose a plan; events are not looked at.

    `row` is a column of row numbers, by which bad events are named.
    """
    _check_choice("plan", plan, _PLANS)
    _check_choice("evaluator", evaluator, _EVALUATORS)
    _check_choice("output", output, tuple(_OUTPUT_COLUMNS))
    _check_frames(events, subscriptions)
    assert not isinstance(subscriptions, str)
    refuse_two_systems(events, subscriptions)
    kept = _check_kept(events, keep, output)
    given, events = events, identify(events, event_id)
    deciding = make_evaluator(evaluator, events.sparkSession)
    subscribed, has_whole_ids = stage_subscriptions(
        subscriptions, subscription_id, repair, deciding, strict
    )
    referenced = referenced_columns(events, subscribed.attributes, strict)
    columns = tuple(dict.fromkeys((event_id, *referenced, *kept, *([row] if row else []))))
    shape = AnswerShape(
        kept, quarantine, output == "counts", has_whole_ids, has_whole_subscribers(subscriptions)
    )
    chosen = with_wkb(events, columns, "events")
    if quarantine and events is given and row is None:  # else the id names the file, or the caller
        chosen = with_file(chosen)
    # PySpark's mapInArrow takes no column with a dot or a backtick in its name.
    numbered = chosen.toDF(*(f"column{i}" for i in range(len(chosen.columns))))
    fields = [chosen.schema[name] for name in kept]
    primary = stated_primary(events)
    reading = EventColumns(
        tuple(chosen.columns),
        event_id,
        subscribed.geometries,
        repair,
        deciding,
        primary if primary in chosen.columns else None,
        row,
    )
    kind, chosen_plan = id_type(chosen, event_id), choose_plan(plan, subscribed)
    return Job(numbered, subscribed, reading, shape, kind, fields, chosen_plan)


def stage_subscriptions(
    subscriptions: "DataFrame",
    subscription_id: str,
    repair: bool,
    evaluator: Evaluator = EXACT,
    strict: bool = False,
) -> tuple[Subscribed, bool]:
    """Stage subscriptions; tell also whether their ids are integers."""
    check_id(subscriptions, subscription_id, "subscriptions", Remedy.SPARK_SUBSCRIPTION_ID)
    wanted = subscription_columns(subscriptions, subscription_id, strict)
    subscribed = subscribe(
        with_wkb(subscriptions, wanted, "subscriptions"), wanted, subscription_id, repair, evaluator
    )
    return subscribed, has_whole_ids(subscriptions, subscription_id, "subscriptions")


def _check_frames(events: object, subscriptions: object) -> None:
    for name, frame in (("events", events), ("subscriptions", subscriptions)):
        if not (hasattr(frame, "isStreaming") or isinstance(frame, str)):
            raise InvalidInput(
                f"{name} must be a DataFrame of Spark's, not {type(frame).__module__}."
                f"{type(frame).__name__}"
            )
    if isinstance(subscriptions, str):
        raise NotBuilt(f"subscriptions from a published set ({subscriptions!r}) are not built yet")
    if getattr(events, "isStreaming", False):
        raise NotBuilt("events from a stream are not built yet; give a batch DataFrame")
    if getattr(subscriptions, "isStreaming", False):
        raise InvalidInput("subscriptions cannot be a stream; give a batch DataFrame")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidInput(f"{name} {value!r} is unknown; there are {', '.join(choices)}")


def _check_kept(events: "DataFrame", keep: Sequence[str], output: str) -> tuple[str, ...]:
    """Give the columns to keep, each once."""
    if isinstance(keep, str):
        raise InvalidInput(f"keep takes a sequence of column names; write keep=[{keep!r}]")
    for name in keep:
        if name not in events.columns:
            raise InvalidInput(
                f"events have no column {brief(name)} to keep; they have {listed(events.columns)}"
            )
        if name in _OUTPUT_COLUMNS[output]:
            raise InvalidInput(
                f"the column {name!r} cannot be kept: the answer has one itself; rename it first"
            )
    return tuple(dict.fromkeys(keep))
