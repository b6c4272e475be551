"""Errors on their way out of a Spark worker: only the text of a traceback comes through.

An error of ours takes along a line of JSON, so that nobody has to read it out of the text.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TypeVar

import pyarrow as pa

from contrada.errors import ContradaError, read_line, write_line

_Task = TypeVar("_Task")
_Call = Callable[[_Task, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def noting_errors(call: _Call[_Task]) -> _Call[_Task]:
    """Decorate the `__call__` of a task for `mapInArrow`: an error that ends it is noted."""

    @wraps(call)
    def noted(self: _Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with noting():
            yield from call(self, batches)

    return noted


@contextmanager
def noting() -> Iterator[None]:
    """Note an error of ours that is about to leave for Java, from where only text comes back."""
    try:
        yield
    except ContradaError as error:
        line = write_line(error)
        if line not in getattr(error, "__notes__", ()):  # by a task before this one
            error.add_note(line)
        raise


@contextmanager
def raising_noted_errors() -> Iterator[None]:
    """Raise an error that a task has noted as what it was, not as PySpark's exception."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as failure:
        noted = read_line(str(failure))
        if noted is None:
            raise
        raise noted from None
