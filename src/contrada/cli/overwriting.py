"""Files that a command reads must not be files that it writes, however they are spelt.

A folder is all the files that are read from it, and those that would be if they were there.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from contrada.errors import InvalidInput
from contrada.files.reading import find_path, is_part_of, list_files


def refuse_overwriting(inputs: Iterable[str], outputs: Mapping[str, str]) -> None:
    """Refuse outputs, by option, that are inputs as well or the same file twice."""
    taken: dict[object, str] = {}
    folders: dict[Path, str] = {}
    for name in inputs:
        with suppress(OSError, InvalidInput):  # whoever reads it says what is wrong
            path = find_path(name)
            for file in list_files(name):
                shown = name if os.path.realpath(path) == os.path.realpath(file) else file
                taken |= dict.fromkeys(_identities(file), f"the input {shown}")
            if path.is_dir():
                folders[Path(os.path.realpath(path))] = name
    for option, name in outputs.items():
        owner = next((taken[key] for key in _identities(Path(name)) if key in taken), None)
        owner = owner or _find_folder(Path(name), folders)
        if owner is not None:
            raise InvalidInput(f"{option} {name} is also {owner}; choose another file")
        taken |= dict.fromkeys(_identities(Path(name)), option)


def _identities(file: Path) -> Iterator[object]:
    """Yield what identifies a file: where it lies, and, where it exists, what it is."""
    yield os.path.realpath(file)
    with suppress(OSError):
        facts = file.stat()
        if file.is_file():  # every name of the null device is the null device
            yield facts.st_dev, facts.st_ino


def _find_folder(output: Path, folders: Mapping[Path, str]) -> str | None:
    """Find the folder among whose files an output would be read."""
    real = Path(os.path.realpath(output))
    for folder, name in folders.items():
        if real.is_relative_to(folder) and is_part_of(folder, real.relative_to(folder)):
            return f"a part of the input {name}"
    return None
