"""Modules and functions stay short enough to be read at once."""

import ast
from collections.abc import Iterator
from pathlib import Path

import contrada

SOURCE = Path(contrada.__file__).parent
MODULE_LINES_MAX, FUNCTION_LINES_MAX = 500, 60


def functions_of(path: Path) -> Iterator[tuple[str, int]]:
    """The functions of a module, with how many lines each has besides its docstring."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            yield node.name, lines - len((ast.get_docstring(node) or "").splitlines())


def test_no_module_is_too_long() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert {name: n for name, n in lengths.items() if n > MODULE_LINES_MAX} == {}


def test_no_function_is_too_long() -> None:
    paths = SOURCE.rglob("*.py")
    found = [(path.name, *function) for path in paths for function in functions_of(path)]
    assert [function for function in found if function[2] > FUNCTION_LINES_MAX] == []
