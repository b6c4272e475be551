"""One word for one thing: files and types have names of their own."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import contrada

SOURCE = Path(contrada.__file__).parent

# Names that two rooms may share, and why. At most six files and four types.
SHARED_FILES = {
    "__init__": "Python's own name",
    "__main__": "Python's own name",
    "match": "the command, and the function of that name for Spark",
    "explain": "the command, and the function of that name for Spark",
}
SHARED_TYPES = {
    "Box": "in the overlay a box has any number of dimensions",
    "Event": "in the overlay also a message, of that name on the wire",
}


def room_of(path: Path) -> str:
    """The room of a file; the papers are packages of one kind and may share names."""
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else ""


def types_of(path: Path) -> Iterator[str]:
    """The classes and aliases that a module defines for others."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and is_camel(target.id):
                    yield target.id


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


def test_a_type_has_a_name_of_its_own() -> None:
    modules = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for name in types_of(path):
            if not name.startswith("_"):
                modules[name].append(str(path.relative_to(SOURCE)))
    shared = {name: found for name, found in modules.items() if len(found) > 1}
    assert {name: found for name, found in shared.items() if name not in SHARED_TYPES} == {}
    assert SHARED_TYPES.keys() == shared.keys()
    assert len(SHARED_TYPES) <= 4
