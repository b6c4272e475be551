"""Files of events as Spark finds them in a folder or by a pattern, and as Python names them."""

import re
from collections.abc import Iterator
from pathlib import Path

from contrada.errors import InvalidInput

SUFFIXES = (".parquet", ".geoparquet", ".ndjson", ".geojsonl", ".jsonl", ".ndgeojson", ".csv")
_PARQUET = (".parquet", ".geoparquet")
_MARKS = "*?[]{}\\"  # with one of these Spark takes a name for a pattern
_NAME_MAX = 255  # characters of the name of a file
_HIDDEN = (".", "_")  # with what the names of files begin that Spark does not look at


def find_first(path: str) -> str | None:
    """Find a file of those that a folder has or a pattern names, to learn its columns from."""
    refuse_marks(path)
    here = Path(path)
    if here.is_file():
        return path
    seen = (entry for entry in _list_files(here) if find_obstacle(entry, is_pattern(path)) is None)
    return next(map(str, seen), None)


def list_passed_over(path: str) -> dict[str, str]:
    """List the files of a folder, or that a pattern names, which are not read, and why."""
    here, by_pattern = Path(path), is_pattern(path)
    found = {}
    for entry in () if here.is_file() else _list_files(here):
        obstacle = find_obstacle(entry, by_pattern)
        if obstacle is not None:
            found[str(entry)] = obstacle
    return found


def find_obstacle(file: Path, by_pattern: bool) -> str | None:
    """Find the reason why a file of a folder or pattern is not read; None where it is."""
    if find_mark(str(file)) is not None:
        return f"Spark takes a name with one of {' '.join(_MARKS)} for a pattern; rename it"
    if file.suffix.lower() in _PARQUET and not file.stat().st_size:
        return "it is empty, and Spark does not open empty files"
    if by_pattern or file.name.lower().endswith(SUFFIXES):
        return None
    return f"only files that end in {', '.join(SUFFIXES)} are read"


def _list_files(here: Path) -> Iterator[Path]:
    """List the files of a folder, or that a pattern names, in order, but no hidden ones."""
    if here.is_dir():
        found = list(here.iterdir())
    else:
        top = Path(here.anchor)
        patterns = _expand(str(here.relative_to(top)))
        found = [entry for pattern in patterns for entry in top.glob(pattern)]
    seen = (entry for entry in sorted(set(found)) if not entry.name.startswith(_HIDDEN))
    return (entry for entry in seen if entry.is_file())


def is_pattern(path: str) -> bool:
    """Whether Spark takes a path for a pattern."""
    return find_mark(path) is not None


def find_mark(path: str) -> str | None:
    """Find a character for which Spark takes a path for a pattern."""
    return next((mark for mark in _MARKS if mark in path), None)


def _expand(pattern: str) -> list[str]:
    """Write the choices of a pattern, `{a,b}`, as patterns of their own: Python knows none."""
    choices = re.search(r"\{([^{}]*)\}", pattern)
    if choices is None:
        return [pattern]
    before, after = pattern[: choices.start()], pattern[choices.end() :]
    return [text for choice in choices[1].split(",") for text in _expand(before + choice + after)]


def as_pattern(path: str) -> str:
    """Return a path as Spark can stream it: a single file as a pattern that no other one fits."""
    here = Path(path)
    if not here.is_file():
        return path
    at = next(at for at, letter in enumerate(here.name) if letter.isalnum())
    name = f"{here.name[:at]}[{here.name[at]}]{here.name[at + 1 :]}"
    return str(here.with_name(name))


def refuse_marks(path: str) -> None:
    """Refuse a folder or file that Spark would take for a pattern, or not look at."""
    here = Path(path).absolute()
    if here.is_file() and here.name.startswith(_HIDDEN):
        raise InvalidInput(
            f"{here}: Spark does not look at files whose names begin with "
            f"{' or '.join(map(repr, _HIDDEN))}; rename it"
        )
    if here.exists() and is_pattern(str(here)):
        raise InvalidInput(
            f"{here}: Spark takes a name with one of {' '.join(_MARKS)} for a pattern; rename the "
            f"{'folder' if here.is_dir() else 'file'}"
        )


def name_filter(path: str) -> str:
    """Return Hadoop's pattern of the names that are read of a folder, or of what a pattern names.

    A name that is itself a pattern is not read: with it, Spark would read all other files of the
    batch once more. Suffixes are told by case otherwise. Hadoop knows no repetition but `*`, which
    stands for any characters, so that each character that a name may have is written out.
    """
    plain = "[!" + "".join(f"\\{mark}" for mark in _MARKS) + "]"
    name = f"{{{plain}" * _NAME_MAX + ",}" * _NAME_MAX
    if is_pattern(path):
        return name
    letters = ((f"[{c}{c.upper()}]" if c.isalpha() else c for c in suffix) for suffix in SUFFIXES)
    return f"{name}{{{','.join(map(''.join, letters))}}}"


def local_path(path: str) -> str:
    """Return a path as Spark names it without its scheme; nothing in it is escaped."""
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme:
        return path
    if scheme != "file":
        raise InvalidInput(
            f"{path}: files of a stream must be on a file system that every machine mounts; "
            "for others, read a stream of Parquet with Spark and give it to contrada.spark.match"
        )
    return rest.removeprefix("//")
