"""`contrada.spark.transitions`: when objects enter, leave, cross and stay, over DataFrames.

Whatever is wrong with the arguments, the schemas or a subscription is refused before a job over
the events starts.
"""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.files.crs import is_longitude_latitude
from contrada.model.event import GEOMETRY
from contrada.showing import listed
from contrada.spark.answering import ROWS_MAX, TALLY
from contrada.spark.chosen_sets import ChosenSet, FixedSet, SetChoice
from contrada.spark.crs_metadata import column_of, stated_primary
from contrada.spark.event_rows import EventRows, choose_rows
from contrada.spark.frames import has_whole_ids, identify
from contrada.spark.handshake import Handshake
from contrada.spark.joined_parts import join_parts
from contrada.spark.match import check_frames, meet_subscriptions
from contrada.spark.match_counts import observed
from contrada.spark.meeting import MetSubscriptions
from contrada.spark.position_tasks import (
    ANSWER,
    DONE_LINE,
    IS_KNOWN,
    PACKED_DDL,
    POSITION_TIME,
    SHARD,
    PositionReader,
    ReadPositionsTask,
    UnpackTask,
    X,
    Y,
    list_event_columns,
)
from contrada.spark.sorted_tracks import (
    GREATEST_DDL,
    FollowSortedTask,
    GreatestTimeTask,
    JudgePositionsTask,
)
from contrada.spark.state_store import check_state_store
from contrada.spark.stream_listening import listen_to
from contrada.spark.task_chains import AnswerOrigin, ArrowTask, TaskChain, note_answer
from contrada.spark.task_errors import noting_errors, raising_noted_errors
from contrada.spark.track_steps import TrackStepper
from contrada.spark.transition_answers import FOLLOWED, TALLY_DDL, TransitionShape
from contrada.spark.transition_options import TransitionOptions
from contrada.spark_options import SparkOptions
from contrada.transitions.durations import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def transitions(
    events: "DataFrame",
    subscriptions: "DataFrame | str",
    *,
    object: str = "object_id",
    time: str = "time",
    lateness: Duration = "0 s",
    silence: Duration | None = None,
    ahead: Duration = "10 min",
    hysteresis: float = 0,
    cooldown: Duration = "0 s",
    dwell: Duration | None = None,
    kinds: Iterable[str] | None = None,
    shards: int = 64,
    quarantine: bool = False,
    event_id: str = "id",
    subscription_id: str = "id",
) -> "DataFrame":
    """Follow the objects of a DataFrame of positions, a batch or a stream, through subscriptions.

    This is `contrada.Tracker` on Spark. Events and subscriptions are as for `match`; each event is
    a position of the object that the column `object` names, at its `time`. Where `match` says of
    each event what it matches, this says what has changed: the answer is a DataFrame of
    `object, subscription, subscriber, transition, time, event, version, cause`, a row for each
    enter, inside, exit, cross and dwell. docs/transitions.md has the rules.

    A stream takes each position in once, whatever fails, and remembers objects in Spark's state
    store: in `shards` values, a number that cannot change on a checkpoint. Positions may come
    `lateness` after others: so long each is held. One that comes later is a row `late`. An object
    of which nothing came for `silence` leaves all it was in; None keeps every object for ever. A
    time more than `ahead` after the batch is a bad event. In a batch all positions are sorted
    first, so that nothing is late, and these three mean nothing but for `silence`.

    `hysteresis` is how many metres from a fence an object must be to have left it, `cooldown` how
    long a pair does not change after it has, `dwell` after how long a visit is reported. `kinds`
    are the transitions to compute, of enter, inside, exit, cross and dwell; None means all.
    Durations are texts such as "30 s" or "10 min", or `datetime.timedelta`.

    A bad event, which is also one without object or time, fails the job, or with `quarantine` comes
    back once with its `error`, and nothing else but `event`.

    Before any event is read, raises `InvalidInput` for arguments, schemas and coordinate systems
    that do not fit, for a stream over Spark Connect or without RocksDB as its state store; and its
    subclass `BadRows` for bad subscriptions. There is a warning for subscriptions that are no
    fences, of which there are no crossings, and no hysteresis.

    >>> track = spark.createDataFrame(
    ...     [(1, "bus", "2026-03-01T08:00:00", "POINT(0 1)"),
    ...      (2, "bus", "2026-03-01T08:01:00", "POINT(2 1)")],
    ...     "id long, object_id string, time string, geometry string",
    ... )
    >>> stops = spark.createDataFrame(
    ...     [("market", "POLYGON((1 0, 3 0, 3 2, 1 2, 1 0))")], "id string, geometry string"
    ... )
    >>> rows = contrada.spark.transitions(track, stops)
    >>> rows.select("object", "subscription", "transition", "event").show()
    +------+------------+----------+-----+
    |object|subscription|transition|event|
    +------+------------+----------+-----+
    |   bus|      market|     enter|    2|
    +------+------------+----------+-----+
    <BLANKLINE>
    """
    options = TransitionOptions.read(
        object=object,
        time=time,
        lateness=lateness,
        silence=silence,
        ahead=ahead,
        hysteresis=hysteresis,
        cooldown=cooldown,
        dwell=dwell,
        kinds=kinds,
        shards=shards,
    )
    beside = SparkOptions(
        plan="broadcast",
        quarantine=quarantine,
        event_id=event_id,
        subscription_id=subscription_id,
    )
    with raising_noted_errors():
        job = plan_transitions(events, subscriptions, options, beside)
        answer = job.run()
        if answer.isStreaming:
            listen_to(answer, job.met.published, events.schema)
        return answer


def plan_transitions(
    events: "DataFrame",
    subscriptions: "DataFrame | str",
    options: TransitionOptions,
    beside: SparkOptions,
) -> "TransitionJob":
    """Check everything, and stage the subscriptions; events are not looked at."""
    check_frames(events, subscriptions)
    options.check_columns(events)
    if events.isStreaming:
        if not hasattr(events, "_jdf"):
            raise InvalidInput(
                "transitions on a stream do not run over Spark Connect; take a session of Spark's "
                "own, such as contrada.spark.session starts"
            )
        check_state_store(events.sparkSession)
    geometry = _find_geometry(events)
    identified = identify(events, beside.event_id)
    met = meet_subscriptions(identified, subscriptions, beside)
    wanted = (options.object, options.time, geometry)
    rows = choose_rows(events, identified, met, wanted, beside, needs_moment=events.isStreaming)
    shape = TransitionShape(
        has_whole_ids(events, options.object, "events"),
        met.has_whole_ids,
        met.has_whole_subscribers,
        has_whole_ids(rows.chosen, beside.event_id, "events"),
        beside.quarantine,
        rows.has_messages,
    )
    job = TransitionJob(rows, met, options, shape, beside.event_id, _choose(events, met))
    _tell_others(job)
    return job


def _find_geometry(events: "DataFrame") -> str:
    """Return the column that says where an object is."""
    if GEOMETRY in events.columns:
        return GEOMETRY
    primary = stated_primary(events)
    if primary is None:
        raise InvalidInput(
            f"events have no column {GEOMETRY!r}, which says where an object is; they have "
            f"{listed(events.columns)}"
        )
    return primary


def _choose(events: "DataFrame", met: MetSubscriptions) -> ChosenSet:
    """Return the subscriptions of a batch, and those that a stream begins with."""
    known = met.subscribed
    if met.published is None:
        staged = join_parts(events.sparkSession, known.staged)
        return ChosenSet(staged, known.geometries, known.anchored)
    return ChosenSet(known.staged, known.geometries, known.anchored, known.staged.version)


@dataclass(frozen=True, slots=True)
class TransitionJob:
    """Positions with numbered columns, and the subscriptions that their objects meet.

    A batch is followed in pieces of about `piece_rows`.
    """

    rows: EventRows
    met: MetSubscriptions
    options: TransitionOptions
    shape: TransitionShape
    event_id: str
    chosen: ChosenSet
    piece_rows: int = ROWS_MAX

    @property
    def spark(self) -> "SparkSession":
        """The session of the events."""
        return self.rows.numbered.sparkSession

    @property
    def stepper(self) -> TrackStepper:
        """What follows positions inside of tasks."""
        system = self.met.system
        is_geographic = system is None or is_longitude_latitude(system)
        stream = self.options.stream_options(is_geographic)
        return TrackStepper(self.options, stream, self.shape, self.event_id)

    @property
    def _reader(self) -> PositionReader:
        return PositionReader(self.rows.columns, self.options)

    @property
    def _events(self) -> "DataFrame":
        """What the first task takes: events, or what they are made of."""
        origin = self.rows.origin
        return self.rows.numbered if origin is None else origin.rows

    def _beginning(self, task: ArrowTask) -> ArrowTask:
        """Let a task begin with what makes the events."""
        origin = self.rows.origin
        if origin is None:
            return task
        return TaskChain(origin.choose(self.rows.columns.names), task)

    def run(self) -> "DataFrame":
        """Follow the positions, when something is asked of the answer."""
        return self._run_stream() if self._events.isStreaming else self._run_batch()

    def _run_stream(self) -> "DataFrame":
        from pyspark.sql import functions

        from contrada.spark.shard_processing import ANSWER_DDL, ShardProcessor

        sets: SetChoice = self.met.published or FixedSet(self.chosen)
        here = Handshake.here()
        reading = self._beginning(ReadPositionsTask(here, sets, self._reader, self.shape))
        processor = ShardProcessor(here, sets, self.stepper)
        unpacking, schema = UnpackTask(self.shape), self.shape.spark_schema

        def bring(events: "DataFrame") -> "DataFrame":
            dealt = events.mapInArrow(reading, PACKED_DDL).groupBy(SHARD)
            packed = dealt.transformWithStateInPandas(processor, ANSWER_DDL, "Append", "None")
            done = functions.from_json(DONE_LINE, TALLY_DDL)
            return packed.select(ANSWER, done.alias(TALLY))

        # Counted before they are unpacked: there are a few rows for each shard then.
        answer = observed(
            self._events,
            bring,
            lambda packed: packed.mapInArrow(unpacking, schema),
            done=FOLLOWED,
        )
        note_answer(answer, AnswerOrigin(self._events, bring, unpacking, None, FOLLOWED))
        return answer

    def _run_batch(self) -> "DataFrame":
        from pyspark.sql import types

        field = types.StructField
        here, rows, events = Handshake.here(), self.rows, self._events
        names = list_event_columns(rows.columns)
        kinds = {f.name: f.dataType for f in rows.chosen.schema}
        if GEOMETRY not in kinds and rows.columns.primary is not None:
            kinds[GEOMETRY] = kinds[rows.columns.primary]
        hidden = {POSITION_TIME: types.LongType(), X: types.DoubleType(), Y: types.DoubleType()}
        kinds |= hidden | {IS_KNOWN: types.BooleanType(), ANSWER: types.BinaryType()}
        names = (*names, *hidden, IS_KNOWN, ANSWER)
        # PySpark's mapInArrow takes no column with a dot or a backtick in its name.
        numbered = [field(f"column{i}", kinds[name]) for i, name in enumerate(names)]
        at = {name: f"column{i}" for i, name in enumerate(names)}
        judging = JudgePositionsTask(here, self.chosen, self._reader, self.shape)
        clock_us = self._find_clock()
        following = FollowSortedTask(
            here, self.chosen, self.stepper, names, clock_us, self.piece_rows
        )
        order = [at[name] for name in (self.options.object, POSITION_TIME, self.event_id)]

        def run(events: "DataFrame") -> "DataFrame":
            judged = events.mapInArrow(self._beginning(judging), types.StructType(numbered))
            dealt = judged.repartition(column_of(order[0])).sortWithinPartitions(*order)
            return dealt.mapInArrow(following, self.shape.counted_spark_schema)

        return observed(events, run, done=FOLLOWED)

    def _find_clock(self) -> int | None:
        """Find the greatest time of all positions, where something happens by the clock."""
        from pyspark.sql import functions

        if not self.options.has_timers:
            return None
        task = self._beginning(GreatestTimeTask(Handshake.here(), self.chosen, self._reader))
        found = self._events.mapInArrow(task, GREATEST_DDL).agg(functions.max("greatest"))
        row = found.first()
        return None if row is None else row[0]


@dataclass(frozen=True, slots=True)
class _CountOthersTask:
    """The function for `mapInArrow` that counts the subscriptions which are not fences."""

    handshake: Handshake
    chosen: ChosenSet
    stepper: TrackStepper

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row."""
        self.handshake.check()
        for _ in batches:
            others, all_ = self.stepper.count_others(self.chosen)
            yield pa.RecordBatch.from_pydict({"others": [others], "count": [all_]})


def _tell_others(job: TransitionJob) -> None:
    """Warn of subscriptions that have no crossings and no hysteresis, where these are asked for."""
    if not job.options.asks_fences:
        return
    task = _CountOthersTask(Handshake.here(), job.chosen, job.stepper)
    one = job.spark.range(1, numPartitions=1)
    (row,) = one.mapInArrow(task, "others bigint, count bigint").collect()
    if row.others:
        warnings.warn(
            f"{row.others:,} of {row['count']:,} subscriptions are not fences: they have neither "
            "crossings nor hysteresis",
            stacklevel=4,
        )
