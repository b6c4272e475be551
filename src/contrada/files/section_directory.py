"""The directory of a file of columns: where each of them lies, and the settings, as JSON.

Of all places that a directory could state for its columns one is right, and any other is refused:
each begins at the first multiple of 64 bytes after the one before. So columns do not overlap and
lie inside the file, whatever the bytes. Errors do not name the file, which is not known here.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.errors import InvalidInput
from contrada.files.snapshot_header import HEADER_BYTES
from contrada.limits import DIRECTORY_BYTES_MAX, JSON_DEPTH_MAX
from contrada.showing import brief, brief_text

_ALIGNMENT_BYTES = 64
_ROWS_MAX = 2**40  # also of a column without bytes; far less than what NumPy cannot count
_DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("bool", "uint8", "int32", "int64", "uint64", "float32", "float64")
}
_FIELDS = {"dtype", "name", "offset", "shape"}  # of a column in JSON


@dataclass(frozen=True, slots=True)
class Section:
    """Where a column lies, and what it is; `offset` and `end` count from the file's first byte."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

    @property
    def end(self) -> int:
        """The first byte after the column."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize

    def as_json(self) -> dict[str, Any]:
        """Return what the directory says of the column."""
        dtype, shape = self.dtype.name, list(self.shape)
        return {"dtype": dtype, "name": self.name, "offset": self.offset, "shape": shape}


def place_columns(columns: Mapping[str, NDArray[Any]]) -> list[Section]:
    """Find a place for each column, in the order of their names."""
    sections: list[Section] = []
    for name in sorted(columns):
        column = columns[name]
        offset = find_next_place(sections)
        sections.append(_make_section(name, column.dtype.name, list(column.shape), offset))
    return sections


def find_next_place(sections: Sequence[Section]) -> int:
    """Return where the next column begins after these; after the last one, the directory."""
    end = sections[-1].end if sections else HEADER_BYTES
    return -(-end // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def write_directory(sections: Sequence[Section], settings: str) -> bytes:
    """Return the directory of columns and of settings that are JSON."""
    _check_settings(json.loads(settings))
    columns = json.dumps([section.as_json() for section in sections])
    directory = f'{{"columns": {columns}, "settings": {settings}}}'
    _check_size(len(directory))
    return directory.encode("ascii")


def read_directory(raw: memoryview, place: int) -> tuple[list[Section], dict[str, Any]]:
    """Read columns and settings from a directory that lies at a place, or refuse it."""
    _check_size(len(raw))
    try:
        stated = json.loads(str(raw, "ascii"))
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"its directory is not JSON: {brief_text(fault, 400)}") from fault
    if not isinstance(stated, dict) or stated.keys() != {"columns", "settings"}:
        raise InvalidInput(
            f'its directory is not an object of "columns" and "settings": {brief(stated)}'
        )
    _check_settings(stated["settings"])
    return _read_sections(stated["columns"], place), stated["settings"]


def _check_size(size_bytes: int) -> None:
    if size_bytes > DIRECTORY_BYTES_MAX:
        raise InvalidInput(
            f"its directory has {size_bytes:,} bytes, more than {DIRECTORY_BYTES_MAX:,} "
            "(DIRECTORY_BYTES_MAX)"
        )


def _check_settings(settings: Any) -> None:
    """Refuse settings that are not an object, or nested too deep for whoever uses them."""
    if not isinstance(settings, dict):
        raise InvalidInput(f"its settings are not a JSON object: {brief(settings)}")
    level: list[Any] = [settings]
    for _ in range(JSON_DEPTH_MAX):
        level = [inner for outer in level for inner in _members(outer)]
    if any(isinstance(value, dict | list) for value in level):
        raise InvalidInput(f"its settings are nested deeper than {JSON_DEPTH_MAX} (JSON_DEPTH_MAX)")


def _members(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _read_sections(stated: Any, place: int) -> list[Section]:
    """Read all columns; they must lie in their order, and fill the file up to the directory."""
    if not isinstance(stated, list):
        raise InvalidInput(f"its columns are not a list: {brief(stated)}")
    sections: list[Section] = []
    for entry in stated:
        section = _read_section(entry, find_next_place(sections))
        if sections and section.name <= sections[-1].name:
            raise InvalidInput(
                f"column {brief(section.name)} comes after {brief(sections[-1].name)}: "
                "names must ascend"
            )
        if section.end > place:
            raise InvalidInput(
                f"column {brief(section.name)} ends at byte {brief(section.end)}, "
                f"but the directory begins at {place}"
            )
        sections.append(section)
    if find_next_place(sections) != place:
        raise InvalidInput(
            f"its directory begins at byte {place}, not at {find_next_place(sections)}, "
            "where the columns end"
        )
    return sections


def _read_section(entry: Any, offset: int) -> Section:
    if not isinstance(entry, dict) or entry.keys() != _FIELDS:
        known = ", ".join(sorted(_FIELDS))
        raise InvalidInput(f"a column does not have the fields {known}: {brief(entry)}")
    section = _make_section(entry["name"], entry["dtype"], entry["shape"], offset)
    if entry["offset"] != offset:
        raise InvalidInput(
            f"column {brief(section.name)} begins at byte {brief(entry['offset'])}, not at {offset}"
        )
    return section


def _make_section(name: Any, dtype: Any, shape: Any, offset: int) -> Section:
    """Make a section of what a caller or a file states, or refuse it."""
    if not isinstance(name, str) or not _is_unicode(name):
        raise InvalidInput(f"the name of a column is not Unicode text: {brief(name)}")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise InvalidInput(
            f"column {brief(name)} is of type {brief(dtype)}, not {', '.join(_DTYPES)}"
        )
    if not isinstance(shape, list) or len(shape) not in (1, 2) or not all(map(_is_size, shape)):
        raise InvalidInput(
            f"column {brief(name)} has the shape {brief(shape)}, "
            f"not one or two sizes of at most {_ROWS_MAX:,}"
        )
    return Section(name, _DTYPES[dtype], tuple(shape), offset)


def _is_unicode(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which JSON may give back as another."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _ROWS_MAX
