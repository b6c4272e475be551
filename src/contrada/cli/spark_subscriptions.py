"""The file of subscriptions on Spark: a task reads, judges and stages it; the driver opens nothing.

What comes back is what is known of the set, and whatever there is to say of the file, in the words
of the command without Spark.
"""

import argparse
import json
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, chdir
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from contrada.cli.apart import BoxOrNothing, box_of_subscriptions
from contrada.cli.outputs import BadRow, open_bad_rows
from contrada.cli.spark_source import blaming_copy
from contrada.cli.spark_start import is_one_machine
from contrada.cli.subscription_file import SubscriptionFile, open_subscriptions
from contrada.errors import ContradaError, InvalidInput, read_line, write_line
from contrada.files import Rows
from contrada.files.reading import find_path, list_files
from contrada.matcher import Matcher
from contrada.matcher.column_files import load_columns
from contrada.matcher.inside import find_stating, freeze, list_totals, show_elsewhere
from contrada.matcher.sets_elsewhere import OutlinedSubscriptions, SetOutline
from contrada.matching.id_columns import SubscriberColumns, make_subscribers
from contrada.matching.subscription_columns import SubscriptionColumns, join_subscriptions
from contrada.spark.task_errors import noting_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from contrada.spark.evaluators import Evaluator
    from contrada.spark.handshake import Handshake
    from contrada.spark.match import StagedSubscriptions
    from contrada.spark.staging import StagedSet

_TOLD = "told string, lines binary"
_ROW = pa.schema([("told", pa.string()), ("lines", pa.binary())])


@dataclass(frozen=True, slots=True)
class FileSurvey:
    """What a task has found in a file of subscriptions.

    `lines` are those of the parts that it has staged; `bad` are the rows that were left out, and
    `line_of` has the lines of the file at which they begin. `stated` is the coordinate system of
    the subscriptions, and who stated it.
    """

    name: str
    crs: str | None
    stated: tuple[str | None, str]
    id_type: pa.DataType
    has_whole_subscribers: bool
    mended: int
    left_out: int
    bad: list[BadRow]
    line_of: dict[int, int | None]
    lines: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """Write what JSON can hold, which is all but the lines."""
        stated = {field.name: getattr(self, field.name) for field in fields(self)}
        del stated["lines"]
        stated["id_type"] = pa.schema([("id", self.id_type)]).serialize().to_pybytes().hex()
        return stated | {"line_of": list(self.line_of.items())}

    @classmethod
    def of(cls, stated: dict[str, Any], lines: list[dict[str, Any]]) -> "FileSurvey":
        """Take what was written."""
        id_type = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(stated["id_type"]))).field(0).type
        told = {
            "id_type": id_type,
            "stated": tuple(stated["stated"]),
            "bad": [(row, id_, reason) for row, id_, reason in stated["bad"]],
            "line_of": dict(stated["line_of"]),
        }
        return cls(**{**stated, **told}, lines=lines)


@dataclass(frozen=True, slots=True)
class StageFileTask:
    """The function for `mapInArrow` that reads a file of subscriptions, and stages it.

    `folder` is where paths begin. `copy` is the path of the file that all machines reach, where
    that is another than the user has named. `events` is the schema of the events.
    """

    handshake: "Handshake"
    options: argparse.Namespace
    folder: str
    copy: str | None
    uri: str
    evaluator: "Evaluator"
    events: pa.Schema

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row: a survey of the file, or what is wrong with it, and what is odd."""
        for batch in batches:
            for _ in range(batch.num_rows):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    told, lines = self._survey_or_refuse()
                messages = [w.message for w in caught if issubclass(w.category, UserWarning)]
                told["warned"] = [self._as_named(str(message)) for message in messages]
                row = {"told": [json.dumps(told)], "lines": [lines]}
                yield pa.RecordBatch.from_pydict(row, schema=_ROW)

    def _survey_or_refuse(self) -> tuple[dict[str, Any], bytes]:
        """Return a survey and its lines, or an error: a task that raises it would be run again."""
        try:
            self.handshake.check()
            survey = self._survey()
            return {"survey": survey.as_json()}, _write_lines(survey.lines)
        except ContradaError as error:
            error.args = tuple(map(self._as_named, error.args))
            if isinstance(error, InvalidInput):
                error.place = self._as_named(error.place)
            return {"error": write_line(error)}, b""

    def _survey(self) -> FileSurvey:
        options = argparse.Namespace(**vars(self.options))
        options.subscriptions = self.copy or options.subscriptions
        matcher = Matcher(simplify=self.evaluator.grid is None)
        with chdir(self.folder):
            file = open_subscriptions(options)
            file.add_to(matcher, options, is_lazy=True)
            return self._describe(file, matcher)

    def _describe(self, file: SubscriptionFile, matcher: Matcher) -> FileSurvey:
        living, stats = freeze(matcher).living(), list_totals(matcher)
        subscribers, is_whole = _as_one_kind(living.subscribers)
        columns = SubscriptionColumns(living.ids, subscribers, living.expressions, living.table)
        find_line = file.rows.line_finder()
        return FileSurvey(
            self._as_named(file.rows.name),
            file.rows.crs,
            (matcher.crs, self._as_named(find_stating(matcher))),
            freeze(matcher).id_type,
            is_whole,
            stats["subscriptions_mended"],
            stats["subscriptions_left_out"],
            file.bad,
            {row: find_line(row) for row, _, _ in sorted(file.bad)},
            self._stage(columns),
        )

    def _stage(self, columns: SubscriptionColumns) -> list[dict[str, Any]]:
        """Write the subscriptions in parts; return a line for each, and one for all."""
        from contrada.spark.subscription_tasks import PART_ROWS_MAX, StageFaults, StageTask

        task = StageTask(self.handshake, self.uri, (), "", False, self.evaluator, self.events)
        faults, count = StageFaults(), len(columns)
        lines: list[dict[str, Any]] = []
        for first in range(0, count, PART_ROWS_MAX):
            own = np.arange(first, min(first + PART_ROWS_MAX, count))
            part = columns if len(own) == count else columns.take(own)
            lines += task.stage(part, faults, None).to_pylist()
        lines += faults.as_line(count).to_pylist()
        return lines

    def _as_named(self, text: Any) -> Any:
        """Name the file as the user does."""
        if self.copy is None or not isinstance(text, str):
            return text
        return text.replace(self.copy, self.options.subscriptions)


def _as_one_kind(subscribers: SubscriberColumns) -> tuple[SubscriberColumns, bool]:
    """Return subscribers of one kind, and whether they are integers: of two kinds, all as text."""
    is_whole = (subscribers.codes < len(subscribers.wholes))[subscribers.codes >= 0]
    if is_whole.all() or not is_whole.any():
        return subscribers, bool(is_whole.any())
    names = [str(name) for name in subscribers.names()]
    return make_subscribers(
        [names[c] if c >= 0 else None for c in subscribers.codes.tolist()]
    ), False


class StagedFile:
    """The subscriptions of a file after a task has staged them, for the driver to plan with.

    `matcher` shows what is known of them; it fetches them only for a map, or for what is kept of
    them.
    """

    def __init__(self, survey: FileSurvey, subscribed: "StagedSubscriptions") -> None:
        """Take what the task has found, and what it has staged."""
        self.survey, self.staged = survey, subscribed
        known = subscribed.subscribed
        outline = SetOutline(
            known.staged.count,
            survey.id_type,
            known.attributes,
            known.geometries,
            known.has_distances,
            known.mismatches,
        )
        outlined = OutlinedSubscriptions(outline, self._fetch)
        self.matcher = show_elsewhere(outlined, *survey.stated, survey.mended, survey.left_out)

    def _fetch(self) -> SubscriptionColumns:
        parts = self.staged.subscribed.staged.fetch()
        return join_subscriptions([load_columns(part) for part in parts])

    def write_bad(self, stack: ExitStack, path: str | None) -> None:
        """Write the rows that were left out, if a file was asked for."""
        open_bad_rows(stack, path, self.survey.line_of.get)(self.survey.bad)

    def find_box(self, spark: "SparkSession", column: str) -> BoxOrNothing:
        """Let a task find the box of all geometries that the events' geometry is related to."""
        task = BoxTask(self.staged.subscribed.staged, column)
        (row,) = spark.range(1).coalesce(1).mapInArrow(task, "box array<double>").collect()
        return np.array(row["box"], float)


@dataclass(frozen=True, slots=True)
class BoxTask:
    """The function for `mapInArrow` that finds the box of staged subscriptions."""

    staged: "StagedSet"
    column: str

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row with the box, which is NaN where there is nothing."""
        for batch in batches:
            if batch.num_rows:
                parts = map(load_columns, self.staged.fetch())
                box = box_of_subscriptions(chain.from_iterable(parts), self.column)
                yield pa.RecordBatch.from_pydict({"box": [box.tolist()]})


def stage_file(
    spark: "SparkSession", options: argparse.Namespace, events: Rows, folder: Path
) -> StagedFile:
    """Let a task read and stage the file of subscriptions; `folder` is for a copy of the file.

    What is wrong with the file, or odd about it, is raised and warned of here.
    """
    from contrada.spark.evaluators import make_evaluator
    from contrada.spark.handshake import Handshake
    from contrada.spark.match import StagedSubscriptions
    from contrada.spark.staging import StagedSet, staging_uri
    from contrada.spark.subscription_tasks import describe_staged, list_parts, refuse_faults

    copy = None if is_one_machine(spark) else _copy_file(options.subscriptions, folder)
    task = StageFileTask(
        Handshake.here(),
        _choose_options(options),
        str(Path.cwd() if copy is None else folder),  # another machine may not have ours
        copy,
        staging_uri(spark),
        make_evaluator(options.evaluator or "exact", spark),
        pa.schema([(f.name, f.type) for f in events.schema if f.name not in events.blank]),
    )
    (row,) = spark.range(1).coalesce(1).mapInArrow(task, _TOLD).collect()
    told = read_told(row["told"], row["lines"])
    refuse_faults(told.lines, told.lines[-1]["rows"])
    staged = StagedSet(task.uri, list_parts(told.lines), task.evaluator)
    subscribed = describe_staged(staged, told.lines)
    is_whole = pa.types.is_int64(told.id_type)
    return StagedFile(told, StagedSubscriptions(subscribed, is_whole, told.has_whole_subscribers))


def read_told(text: str, lines: bytes) -> FileSurvey:
    """Read what a task tells of a file; its error is raised, and its warnings are given."""
    told = json.loads(text)
    for message in told["warned"]:
        warnings.warn(message, stacklevel=3)
    if "error" in told:
        error = read_line(told["error"])
        assert error is not None, "an error of ours is written as a line"
        raise error
    with pa.ipc.open_stream(lines) as reader:
        return FileSurvey.of(told["survey"], reader.read_all().to_pylist())


def _write_lines(lines: list[dict[str, Any]]) -> bytes:
    table, sink = pa.Table.from_pylist(lines), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _choose_options(options: argparse.Namespace) -> argparse.Namespace:
    """Return the options that say how subscriptions are read."""
    names = ("subscriptions", "id", "repair", "quarantine_subscriptions", "strict", "where")
    return argparse.Namespace(**{name: getattr(options, name) for name in (*names, "relation")})


def _copy_file(name: str, folder: Path) -> str:
    """Copy a file, with those beside it that are read with it, to where all machines reach it."""
    path = find_path(name)
    copy = folder / path.name
    with blaming_copy(copy):
        for file in list_files(name):
            target = copy / file.relative_to(path) if path.is_dir() else folder / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.exists():
                shutil.copyfile(file, target)
    return str(copy) + os.fsdecode(name)[len(str(path)) :]
