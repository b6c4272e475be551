"""A stream to folders: each batch is written once, decided, and put in place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contrada.errors import InvalidInput
from contrada.model.event import GEOMETRY
from contrada.showing import listed
from contrada.spark.crs_metadata import stated_crs, stated_primary
from contrada.spark.frames import SOURCE_MESSAGE, with_wkb
from contrada.spark.handshake import Handshake
from contrada.spark.part_files import FileShape
from contrada.spark.stream_checkpoints import DecidedBatch, StreamCheckpoint
from contrada.spark.stream_file_tasks import LINES, StreamFileTask
from contrada.spark.stream_folders import StreamFolder
from contrada.spark.stream_watch import StreamWatch
from contrada.spark.task_errors import noting
from contrada.transitions.transition_rows import TRANSITION_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ERROR = "error"
_EVENT = "event"
_BATCH = "batch"  # the column that readers take from the names of folders
_ANSWERS = (  # how the columns of answers begin, of which only `event` is not null in bad rows
    ("event", "subscription", "subscriber", "version"),
    ("event", "n"),
    TRANSITION_COLUMNS,
)


@dataclass(slots=True)
class FolderSink:
    """The function for `foreachBatch`: tasks have written files, which this puts in place.

    A batch whose counts do not add up is not decided. One that was decided before Spark knew is
    run again, for Spark's sake, and what that writes is thrown away.
    """

    checkpoint: StreamCheckpoint
    matches: StreamFolder
    bad: StreamFolder | None
    watch: StreamWatch
    decided: DecidedBatch | None = None
    has_begun: bool = False

    def recover(self) -> None:
        """Carry through what was decided when the query ended."""
        found = self.checkpoint.find_decided()
        if found is not None:
            self.decided, is_placed = found
            planned = -1 if self.checkpoint.planned is None else self.checkpoint.planned
            if planned < self.decided.batch:  # which Spark would plan anew, of other events
                raise self._refuse_lost(planned + 1)
            if not is_placed:
                self._place(self.decided)
                self.checkpoint.settle(self.decided, None)
        self._clear()

    def lines(self, answer: "DataFrame") -> "DataFrame":
        """Return the stream of lines about the files that tasks write of an answer."""
        uri = self.matches.uri
        plain = with_wkb(answer, answer.columns, uri)
        geometry = choose_geometry(plain)
        crs = None if geometry is None else stated_crs(plain, geometry)
        shape = FileShape.of(
            plain.drop(ERROR, SOURCE_MESSAGE) if self.bad else plain, geometry, crs, uri
        )
        bad = None
        if self.bad is not None:
            rest = _without_matches(plain)
            bad = (self.bad, FileShape.of(rest, None, None, self.bad.uri))
        names = tuple(plain.columns)
        task = StreamFileTask(Handshake.here(), names, (self.matches, shape), bad, ERROR)
        # PySpark's mapInArrow takes no column with a dot or a backtick in its name.
        numbered = plain.toDF(*(f"column{i}" for i in range(len(names))))
        return numbered.mapInArrow(task, LINES)

    def __call__(self, lines: "DataFrame", number: int) -> None:
        """Write a batch and put it in place, unless it is."""
        with noting():
            self._write(lines, number)

    def _write(self, lines: "DataFrame", number: int) -> None:
        self._check_number(number)
        self._begin()
        files = [line.asDict() for line in lines.collect()]
        for file in files:
            if file["error"] is not None:
                raise InvalidInput(f"batch {number}: {file['error']}")
        self.watch.check(number)
        if files and not self._is_decided(number):
            for folder in self._folders():
                folder.check()
            before = self.decided
            self.decided = DecidedBatch(number, *_names(files))
            self.checkpoint.decide(self.decided)
            self._place(self.decided)
            self.checkpoint.settle(self.decided, before)
        self._clear()

    def _check_number(self, number: int) -> None:
        """Refuse a number that stands for other events: they would be taken for those before.

        Within a run numbers only grow.
        """
        if self.has_begun:
            return
        if self.decided is not None and number < self.decided.batch:
            raise self._refuse_lost(number)
        for folder in self._folders():
            folder.refuse_later(number, is_decided=self._is_decided(number))
        self.has_begun = True

    def _refuse_lost(self, number: int) -> InvalidInput:
        """Refuse to begin anew on folders that have batches: new rows would be taken for old."""
        assert self.decided is not None
        return InvalidInput(
            f"{self.checkpoint.uri}: Spark would begin again with batch {number}, but batch "
            f"{self.decided.batch} has been written: its folder 'offsets' has lost what it had. "
            "Restore the checkpoint as it was last (a copy from before is not enough), or give a "
            "new checkpoint and new folders"
        )

    def _is_decided(self, number: int) -> bool:
        return self.decided is not None and self.decided.batch == number

    def _begin(self) -> None:
        for folder in self._folders():
            folder.begin()

    def _place(self, decided: DecidedBatch) -> None:
        """Put the files of a batch in place; matches last, so that no bad row is missing then."""
        if decided.bad and self.bad is None:
            raise InvalidInput(
                f"{self.checkpoint.uri}: batch {decided.batch} has bad rows that are not in place "
                "yet; give quarantine=… as before"
            )
        if decided.bad and self.bad is not None:
            self.bad.put(decided.batch, decided.bad)
        if decided.matches:
            self.matches.put(decided.batch, decided.matches)

    def _clear(self) -> None:
        for folder in self._folders():
            folder.clear()

    def _folders(self) -> list[StreamFolder]:
        return [folder for folder in (self.bad, self.matches) if folder is not None]


def choose_geometry(answer: "DataFrame") -> str | None:
    """Choose the column that makes files GeoParquet; None where there is none.

    That is the one that states it is the primary geometry, else the first that states a coordinate
    system, else one of WKB named `geometry`.
    """
    names = answer.columns
    stated = [name for name in names if stated_crs(answer, name) is not None]
    primary = stated_primary(answer)
    if primary is not None or stated:
        return primary or stated[0]
    is_wkb = GEOMETRY in names and answer.schema[GEOMETRY].dataType.typeName() == "binary"
    return GEOMETRY if is_wkb else None


def check_columns(answer: "DataFrame", uri: str) -> None:
    """Refuse columns that files in folders of batches cannot have."""
    lower = [name.lower() for name in answer.columns]
    twice = [name for name, low in zip(answer.columns, lower, strict=True) if lower.count(low) > 1]
    if twice:
        raise InvalidInput(
            f"{uri}: columns of the answer have the same name: {listed(twice)}; many readers take "
            "upper and lower case for the same, so rename one"
        )
    if _BATCH in lower:
        raise InvalidInput(
            f"{uri}: the answer has a column {_BATCH!r}, which readers take from the names of "
            "folders; rename it first"
        )


def _without_matches(answer: "DataFrame") -> "DataFrame":
    """Leave out the columns that an answer has and bad events lack."""
    for names in _ANSWERS:
        if tuple(answer.columns[: len(names)]) == names:
            return answer.drop(*(name for name in names if name != _EVENT))
    return answer


def _names(files: Sequence[dict[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the files with matches, and of those with bad rows."""
    matches = tuple(sorted(file["name"] for file in files if not file["is_bad"]))
    return matches, tuple(sorted(file["name"] for file in files if file["is_bad"]))
