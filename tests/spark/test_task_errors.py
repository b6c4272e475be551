"""An error that ends a task on Spark takes along a line of JSON, from which it is read back."""

import ast
import traceback
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import contrada.spark
from contrada.errors import BadRows, ContradaError, InvalidInput, Remedy, Unavailable, read_line
from contrada.spark.task_errors import noting_errors

SPARK = Path(contrada.spark.__file__).parent
COMMANDS = SPARK.parent / "cli"


class Failing:
    def __init__(self, error: Exception) -> None:
        self._error = error

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise self._error


def run(error: Exception) -> str:
    """What a task that ends with an error leaves: the text of a traceback."""
    batch = pa.record_batch({"a": [1]})
    answers = Failing(error)(iter([batch]))
    assert next(answers) is batch
    with pytest.raises(type(error)) as caught:
        next(answers)
    return "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("odd: yes", place="column 'a: b'", code="invalid", row=3),
        InvalidInput("odd", remedies=[Remedy.REPAIR]),
        Unavailable("staging: full"),
        BadRows("zones.csv: 30 bad rows", ["row 1: odd"] * 30, 30, [Remedy.REPAIR]),
    ],
)
def test_an_error_of_ours_is_read_back_from_the_traceback(error: ContradaError) -> None:
    again = read_line(run(error))
    assert again is not None
    assert (type(again), str(again), again.args) == (type(error), str(error), error.args)


def test_any_other_error_is_left_alone() -> None:
    assert read_line(run(ZeroDivisionError("by zero"))) is None


def test_every_task_does_so() -> None:
    tasks = [
        (path.name, method)
        for path in (*SPARK.glob("*.py"), *COMMANDS.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name == "__call__"
        if [argument.arg for argument in method.args.args] == ["self", "batches"]  # not a sink
    ]
    assert len(tasks) > 8
    for name, method in tasks:
        names = [d.id for d in method.decorator_list if isinstance(d, ast.Name)]
        assert names == ["noting_errors"], name
