"""`contrada.spark.match`: the matcher inside `mapInArrow`, over DataFrames.

Plan "broadcast": the subscriptions travel to every worker once; events stream through. Whatever
is wrong with the arguments, the schemas or a subscription is refused before a job over the events
starts.
"""

import hashlib
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.errors import InvalidInput, NotBuilt
from contrada.matcher import Matcher
from contrada.model.event import GEOMETRY, paths_of
from contrada.spark.worker import MatchTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

SUBSCRIPTION_COLUMNS = ("filter", "geometry", "relation", "where", "attribute", "subscriber")
_OUTPUT_COLUMNS = {
    "pairs": ("event", "subscription", "subscriber", "version", "error"),
    "counts": ("event", "n", "error"),
}
_PLANS = {"auto": True, "broadcast": True, "partitioned": False}
_EVALUATORS = {"exact": True, "area": False}
_OUTPUTS = {"pairs": True, "counts": True}


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

    Gives `event, subscription, subscriber, version` and the `keep` columns of the event; with
    `output="counts"` gives `event, n` for every event. A bad event row fails the job, or with
    `quarantine` comes back once with `subscription` null and `error` (code, message, place).
    `repair` mends invalid geometries. A constraint on a column that the events lack is warned of,
    or with `strict` refused.
    """
    _check_choice("plan", plan, _PLANS)
    _check_choice("evaluator", evaluator, _EVALUATORS)
    _check_choice("output", output, _OUTPUTS)
    for name, frame in (("events", events), ("subscriptions", subscriptions)):
        if not (hasattr(frame, "isStreaming") or isinstance(frame, str)):
            raise InvalidInput(f"{name} must be a DataFrame, not {type(frame).__name__}")
    if isinstance(subscriptions, str):
        raise NotBuilt(f"subscriptions from a published set ({subscriptions!r}) are not built yet")
    if events.isStreaming:
        raise NotBuilt("events from a stream are not built yet; give a batch DataFrame")
    if subscriptions.isStreaming:
        raise InvalidInput("subscriptions cannot be a stream; give a batch DataFrame")
    keep = _check_kept(events, keep, output)
    _check_id(events, event_id, "events", "event_id")
    _check_id(subscriptions, subscription_id, "subscriptions", "subscription_id")
    table = _collect(subscriptions, subscription_id)
    matcher = _subscribe(table, subscription_id, repair)
    referenced = _referenced_columns(events, matcher, strict)
    columns = tuple(dict.fromkeys((event_id, *referenced, *keep)))
    content = _as_bytes(table)
    task = MatchTask(
        subscriptions=content,
        digest=hashlib.sha256(content + f"{subscription_id} {repair}".encode()).hexdigest(),
        columns=columns,
        event_id=event_id,
        subscription_id=subscription_id,
        has_whole_ids=_has_whole_ids(subscriptions, subscription_id, "subscriptions"),
        has_whole_subscribers=_has_whole_subscribers(table),
        keep=keep,
        repair=repair,
        quarantine=quarantine,
        wants_counts=output == "counts",
    )
    chosen = _with_wkb(events, columns)
    # PySpark's mapInArrow takes no column with a dot or a backtick in its name.
    numbered = chosen.toDF(*(f"column{i}" for i in range(len(columns))))
    return numbered.mapInArrow(task, _output_schema(chosen, task))


def _check_choice(name: str, value: str, choices: dict[str, bool]) -> None:
    built = [choice for choice, is_built in choices.items() if is_built]
    if value not in choices:
        raise InvalidInput(f"{name} {value!r} is unknown; there are {', '.join(choices)}")
    if not choices[value]:
        raise NotBuilt(f"{name} {value!r} is not built yet; there are {', '.join(built)}")


def _check_kept(events: "DataFrame", keep: Sequence[str], output: str) -> tuple[str, ...]:
    """Give the columns to keep, each once."""
    if isinstance(keep, str):
        raise InvalidInput(f"keep takes a sequence of column names; write keep=[{keep!r}]")
    for name in keep:
        if name not in events.columns:
            raise InvalidInput(
                f"events have no column {name!r} to keep; they have {', '.join(events.columns)}"
            )
        if name in _OUTPUT_COLUMNS[output]:
            raise InvalidInput(f"the column {name!r} cannot be kept: the answer has one itself")
    return tuple(dict.fromkeys(keep))


def _check_id(frame: "DataFrame", name: str, whose: str, option: str) -> None:
    if name not in frame.columns:
        raise InvalidInput(
            f"{whose} have no column {name!r} for the id ({option}=…); "
            f"they have {', '.join(frame.columns)}"
        )
    _has_whole_ids(frame, name, whose)


def _collect(subscriptions: "DataFrame", subscription_id: str) -> pa.Table:
    """Bring the subscriptions to the driver, without the columns that mean nothing here."""
    names = subscriptions.columns
    if "filter" not in names and GEOMETRY not in names:
        raise InvalidInput(
            f"subscriptions need a column 'filter' or 'geometry'; they have {', '.join(names)}"
        )
    wanted = [subscription_id, *(c for c in SUBSCRIPTION_COLUMNS if c in names)]
    table = _with_wkb(subscriptions, list(dict.fromkeys(wanted))).toArrow()
    assert isinstance(table, pa.Table)
    return table


def _subscribe(table: pa.Table, subscription_id: str, repair: bool) -> Matcher:
    matcher = Matcher()
    try:
        matcher.add_many(table, id=subscription_id, repair=repair)
    except InvalidInput as error:
        raise InvalidInput(f"subscriptions: {error}") from None
    return matcher


def _with_wkb(frame: "DataFrame", names: Sequence[str]) -> "DataFrame":
    """Select columns; Spark's own geometries become WKB."""
    from pyspark.sql import functions

    columns = []
    for name in names:
        column = functions.col("`" + name.replace("`", "``") + "`")
        kind = frame.schema[name].dataType.typeName()
        is_native = kind.startswith(("geometry", "geography"))
        columns.append(functions.call_function("st_asbinary", column) if is_native else column)
    return frame.select(*(c.alias(n) for c, n in zip(columns, names, strict=True)))


def _referenced_columns(events: "DataFrame", matcher: Matcher, strict: bool) -> list[str]:
    """Choose the columns that a constraint reads; say so where the events lack one."""
    found, missing = [], []
    for name in sorted(matcher.freeze().attributes):
        found += [path for path in paths_of(name) if path in events.columns]
        if not _has_path(events.schema, name):
            missing.append(name)
    if missing:
        message = (
            f"constraints read {', '.join(map(repr, missing))}, which no event has; "
            f"events have {', '.join(events.columns)}"
        )
        if strict:
            raise InvalidInput(message)
        warnings.warn(message, stacklevel=3)
    if GEOMETRY in events.columns:
        found.append(GEOMETRY)
    return found


def _has_path(struct: "StructType", name: str) -> bool:
    from pyspark.sql.types import StructType

    if name in struct.names:
        return True
    for path in paths_of(name)[:-1]:
        inner = struct[path].dataType if path in struct.names else None
        if isinstance(inner, StructType) and _has_path(inner, name[len(path) + 1 :]):
            return True
    return False


def _as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _has_whole_ids(frame: "DataFrame", name: str, whose: str) -> bool:
    """Tell whether ids are integers; anything but integers and strings is refused."""
    from pyspark.sql import types

    kind = frame.schema[name].dataType
    if isinstance(kind, types.ByteType | types.ShortType | types.IntegerType | types.LongType):
        return True
    if isinstance(kind, types.StringType):
        return False
    raise InvalidInput(
        f"{whose}, column {name!r}: an id is a string or a 64-bit integer, "
        f"not {kind.simpleString()}"
    )


def _has_whole_subscribers(table: pa.Table) -> bool:
    names = table.schema.names
    return "subscriber" in names and pa.types.is_integer(table.schema.field("subscriber").type)


def _output_schema(events: "DataFrame", task: MatchTask) -> "StructType":
    """Describe the answer of a task on events, of which the kept columns keep their types."""
    from pyspark.sql import types

    field = types.StructField
    kinds = {True: types.LongType(), False: types.StringType()}
    fields = [field("event", kinds[_has_whole_ids(events, task.event_id, "events")])]
    if task.wants_counts:
        fields.append(field("n", types.LongType()))
    else:
        fields += [
            field("subscription", kinds[task.has_whole_ids]),
            field("subscriber", kinds[task.has_whole_subscribers]),
            field("version", types.StringType()),
        ]
    fields += [field(name, events.schema[name].dataType) for name in task.keep]
    if task.quarantine:
        texts = [field(name, types.StringType()) for name in ("code", "message", "place")]
        fields.append(field("error", types.StructType(texts)))
    return types.StructType(fields)
