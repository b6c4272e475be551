"""An engine is one package and one line: nobody else names it or reaches into it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import contrada
from contrada.matching.engines import ENGINES

SOURCE = Path(contrada.__file__).parent
MATCHING = SOURCE / "matching"

# What is made of one engine by its nature, and says so.
AT_HOME = {
    "matching/engines.py": "the table",
    "reproduce": "the papers' experiments measure their own structures",
    "spark/evaluators.py": "the evaluator `area` is the AHS model",
    "spark/area_tasks.py": "the evaluator `area` is the AHS model",
    "cli/reproduce.py": "papers are called by the names of what they describe",
}


def names_in(path: Path) -> Iterator[str]:
    """The engines that a module names as a value, or of whose package it imports something."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and node.value in ENGINES:
            yield str(node.value)
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[:2] == ["contrada", "matching"] and len(parts) > 2 and parts[2] in ENGINES:
                yield parts[2]


def is_at_home(path: Path, engine: str) -> bool:
    inside = path.relative_to(SOURCE).as_posix()
    homes = (*AT_HOME, f"matching/{engine}")
    return any(inside == home or inside.startswith(f"{home}/") for home in homes)


def test_nobody_else_names_an_engine() -> None:
    strangers = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in SOURCE.rglob("*.py")
        for name in names_in(path)
        if not is_at_home(path, name)
    }
    assert strangers == set()


@pytest.mark.parametrize("home", AT_HOME)
def test_who_may_name_an_engine_does(home: str) -> None:
    path = SOURCE / home
    files = path.rglob("*.py") if path.is_dir() else [path]
    assert any(True for file in files for _ in names_in(file))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_is_a_package_that_makes_it(engine: str) -> None:
    assert (MATCHING / engine / "engine.py").is_file()
    assert ENGINES[engine].name == engine
