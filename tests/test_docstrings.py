"""Docstrings are plain English: they say what a thing is or does, and do not give orders to it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import contrada

SOURCE = Path(contrada.__file__).parent
STILTED = re.compile(r"(Give|Tell|Say)s?\b")


def docstrings(path: Path) -> Iterator[str]:
    """The docstrings of a module, its classes and its functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def find_stilted(path: Path) -> list[str]:
    return [text.splitlines()[0] for text in docstrings(path) if STILTED.match(text)]


def test_no_docstring_begins_with_give_tell_or_say() -> None:
    found = {path: find_stilted(path) for path in SOURCE.rglob("*.py")}
    assert {str(path): texts for path, texts in found.items() if texts} == {}
