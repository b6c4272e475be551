"""How tasks write a batch of a stream: matches to one file of a draft, bad rows to another."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from contrada.errors import InvalidInput
from contrada.spark.handshake import Handshake
from contrada.spark.part_files import FileShape, PartFile
from contrada.spark.stream_folders import StreamFolder
from contrada.spark.task_errors import noting_errors

LINES = "name string, rows long, is_bad boolean, error string"
_LINES = pa.schema(
    [("name", pa.string()), ("rows", pa.int64()), ("is_bad", pa.bool_()), ("error", pa.string())]
)


@dataclass(frozen=True, slots=True)
class StreamFileTask:
    """The function for `mapInArrow`: write the rows of a task, each to the folder that it is for.

    `names` are the columns of the answer, of which `error` says that a row is bad. A row that
    cannot be written is reported and not raised, since it would fail again.
    """

    handshake: Handshake
    names: tuple[str, ...]
    matches: tuple[StreamFolder, FileShape]
    bad: tuple[StreamFolder, FileShape] | None
    error: str

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a line for each file with its name and rows; none where there are no rows."""
        from pyspark import TaskContext

        self.handshake.check()
        context = TaskContext.get()
        assert context is not None, "a task runs on a worker"
        try:
            lines = self.write(batches, context.partitionId())
        except InvalidInput as fault:
            lines = [{"name": "", "rows": 0, "is_bad": False, "error": str(fault)}]
        if lines:
            yield pa.RecordBatch.from_pylist(lines, schema=_LINES)

    def write(self, batches: Iterator[pa.RecordBatch], number: int) -> list[dict[str, object]]:
        """Write the files of a task; return a line for each."""
        targets = [self.matches] if self.bad is None else [self.matches, self.bad]
        with ExitStack() as stack:
            files = [stack.enter_context(PartFile(*target, number)) for target in targets]
            for batch in batches:
                named = batch.rename_columns(list(self.names))
                for file, rows in zip(files, self._split(named), strict=True):
                    file.write(rows)
        return [
            {"name": file.name, "rows": file.rows, "is_bad": is_bad, "error": None}
            for file, is_bad in zip(files, (False, True), strict=False)
            if file.rows
        ]

    def _split(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Divide rows into matches and bad ones."""
        if self.bad is None:
            return [batch]
        is_bad = batch.column(self.names.index(self.error)).is_valid()
        return [batch.filter(pc.invert(is_bad)), batch.filter(is_bad)]
