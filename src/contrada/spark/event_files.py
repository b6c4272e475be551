"""Files of events as Spark finds them in a folder or by a pattern, and as Python names them."""

import re
from pathlib import Path

from contrada.errors import InvalidInput

SUFFIXES = (".parquet", ".geoparquet", ".ndjson", ".geojsonl", ".jsonl", ".ndgeojson", ".csv")
_MARKS = "*?[{"  # of a pattern
_HIDDEN = (".", "_")  # with what the names of files begin that Spark does not look at


def find_first(path: str) -> str | None:
    """Find a file of those that a folder has or a pattern names, to learn its columns from."""
    here = Path(path)
    if here.is_file():
        return path
    if here.is_dir():
        found = [entry for entry in here.iterdir() if entry.name.lower().endswith(SUFFIXES)]
    else:
        top = Path(here.anchor)
        patterns = _expand(str(here.relative_to(top)))
        found = [entry for pattern in patterns for entry in top.glob(pattern)]
    seen = (entry for entry in sorted(found) if not entry.name.startswith(_HIDDEN))
    return next((str(entry) for entry in seen if entry.is_file()), None)


def is_pattern(path: str) -> bool:
    """Whether Spark takes a path for a pattern."""
    return any(mark in path for mark in _MARKS)


def _expand(pattern: str) -> list[str]:
    """Write the choices of a pattern, `{a,b}`, as patterns of their own: Python knows none."""
    choices = re.search(r"\{([^{}]*)\}", pattern)
    if choices is None:
        return [pattern]
    before, after = pattern[: choices.start()], pattern[choices.end() :]
    return [text for choice in choices[1].split(",") for text in _expand(before + choice + after)]


def refuse_marks(path: str) -> None:
    """Refuse a folder that Spark would take for a pattern, and never find."""
    here = Path(path).absolute()
    if here.is_dir() and is_pattern(str(here)):
        raise InvalidInput(
            f"{here}: Spark takes a name with one of {' '.join(_MARKS)} for a pattern; rename the "
            "folder"
        )


def suffix_pattern() -> str:
    """Return Hadoop's pattern of the names that are read, which are told by case otherwise."""
    letters = ((f"[{c}{c.upper()}]" if c.isalpha() else c for c in suffix) for suffix in SUFFIXES)
    return "*{" + ",".join(map("".join, letters)) + "}"


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
