"""One word for one thing: files, types, constants and tests have names of their own."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import contrada

SOURCE = Path(contrada.__file__).parent

# Names that two rooms may share, and why. At most six files and four types.
SHARED_FILES = {
    "__init__": "Python's own name",
    "__main__": "Python's own name",
    "match": "the command, and the function of that name for Spark",
    "explain": "the command, and the function of that name for Spark",
    "publish": "the command, and the function of that name for Spark",
}
SHARED_TYPES = {
    "Box": "in the overlay a box has any number of dimensions",
    "Event": "in the overlay also a message, of that name on the wire",
}
SHARED_CONSTANTS = {
    "SUFFIXES": "of each file format, in its module",
    "TITLE": "of each paper, in its package",
    "FULL": "what each paper's experiments take",
    "QUICK": "what each paper's experiments take with --quick",
    "VARIANTS": "what each experiment with the DR-tree compares",
}
TESTS = Path(__file__).parent


def room_of(path: Path) -> str:
    """The room of a file; the papers are packages of one kind and may share names."""
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else ""


def types_of(path: Path) -> Iterator[str]:
    """The classes and aliases that a module defines, its private ones too."""
    body = ast.parse(path.read_text()).body
    yield from (node.name for node in body if isinstance(node, ast.ClassDef))
    yield from (name for name in assigned(body) if is_camel(name.lstrip("_")))


def constants_of(path: Path) -> Iterator[str]:
    """The constants that a module defines for others."""
    for name in assigned(ast.parse(path.read_text()).body):
        if name.isupper() and not name.startswith("_"):
            yield name


def assigned(body: list[ast.stmt]) -> Iterator[str]:
    """Names to which a module assigns."""
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                yield from (name.id for name in names if isinstance(name, ast.Name))


def is_camel(name: str) -> bool:
    return name[0].isupper() and "_" not in name and not name.isupper()


def test_a_file_has_a_name_of_its_own() -> None:
    rooms = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        rooms[path.stem].add(room_of(path))
    shared = {name: sorted(found) for name, found in rooms.items() if len(found) > 1}
    assert {name: found for name, found in shared.items() if name not in SHARED_FILES} == {}
    assert SHARED_FILES.keys() <= shared.keys()
    assert len(SHARED_FILES.keys() - {"__init__"}) <= 6


def shared_by_modules(names_of: Callable[[Path], Iterator[str]]) -> dict[str, list[str]]:
    """Names that more than one module defines, with the modules."""
    modules = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for name in dict.fromkeys(names_of(path)):
            modules[name].append(str(path.relative_to(SOURCE)))
    return {name: found for name, found in modules.items() if len(found) > 1}


def test_a_type_has_a_name_of_its_own() -> None:
    shared = shared_by_modules(types_of)
    assert {name: found for name, found in shared.items() if name not in SHARED_TYPES} == {}
    assert SHARED_TYPES.keys() == shared.keys()
    assert len(SHARED_TYPES) <= 4


def test_a_public_constant_has_a_name_of_its_own() -> None:
    shared = shared_by_modules(constants_of)
    assert {name: found for name, found in shared.items() if name not in SHARED_CONSTANTS} == {}
    assert SHARED_CONSTANTS.keys() == shared.keys()


def test_a_file_of_tests_has_a_name_of_its_own() -> None:
    files = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        files[path.stem].append(str(path.relative_to(TESTS)))
    assert {name: found for name, found in files.items() if len(found) > 1} == {}
