"""Newline-delimited JSON as columns of types that were declared beforehand.

Where a file that comes alone is refused if one of its lines is broken (`json_lines`), one of a
stream of files is read line by line: what is wrong with a line, or with a value in it, is a fault
of its row and of no other. So are the types taken from a first file: from the lines that can be
read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from contrada.errors import InvalidInput, blame
from contrada.files.arrow_types import is_text
from contrada.files.crs import CRS84
from contrada.files.declared_columns import DeclaredColumn
from contrada.files.json_kinds import JsonSource
from contrada.files.json_lines import decode_text, describe_length, split_texts
from contrada.files.json_rows import (
    BATCH_CHARACTERS,
    Survey,
    find_geometries,
    schema_of,
    to_json_row,
)
from contrada.files.regular_files import check_regular
from contrada.model.geometry import UNDECODABLE, Fault
from contrada.model.unicode import is_unicode

_ROWS_MAX = 65_536


@dataclass(slots=True)
class DeclaredRows:
    """Rows of a file with the declared columns, what is wrong with some, and the line of each."""

    batch: pa.RecordBatch
    faults: dict[int, Fault]
    lines: list[int]
    has_features: bool


@dataclass(slots=True)
class _Held:
    """Lines that have been decoded; those that could not be have a fault, and no values."""

    rows: list[Mapping[str, Any]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    faults: dict[int, Fault] = field(default_factory=dict)
    characters: int = 0
    has_features: bool = False

    def take(self, text: bytes, line: int, name: str) -> None:
        self.lines.append(line)
        self.characters += len(text)
        try:
            row = to_json_row(_decode(text, line, name), "")
        except InvalidInput as error:
            reason = error.message.removeprefix(f"{name}: ").removeprefix(f"line {line}")
            self.faults[len(self.rows)] = Fault(UNDECODABLE, reason.lstrip(",: "))
            self.rows.append({})
        else:
            self.has_features |= row.is_feature
            self.rows.append(row.columns)

    def read(self, schema: pa.Schema, id_column: str | None) -> DeclaredRows:
        columns, faults = [], dict(self.faults)
        for declared in schema:
            values = [row.get(declared.name) for row in self.rows]
            if declared.name == id_column and is_text(declared.type):
                values = [str(value) if type(value) is int else value for value in values]
            column, found = DeclaredColumn(declared).read(values)
            columns.append(column)
            faults = found | faults
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        return DeclaredRows(batch, faults, self.lines, self.has_features)


def read_declared_lines(
    path: Path, schema: pa.Schema, id_column: str | None
) -> Iterator[DeclaredRows]:
    """Read a file of JSON lines in the columns of a schema, in batches of bounded size.

    A line that is not a JSON object, is too long, or has a value of another type, is a row with a
    fault; only in the column of ids an integer may stand for its text.
    """
    held = _Held()
    for line, text in _open_lines(path):
        held.take(text, line, str(path))
        if len(held.rows) == _ROWS_MAX or held.characters >= BATCH_CHARACTERS:
            yield held.read(schema, id_column)
            held = _Held()
    if held.rows:
        yield held.read(schema, id_column)


@dataclass(frozen=True, slots=True)
class SurveyedLines:
    """The columns of a file of JSON lines; those of geometries, the primary one first."""

    schema: pa.Schema
    geometry_columns: Sequence[str]
    crs: str | None


def survey_lines(path: Path, id_column: str | None) -> SurveyedLines:
    """Find the columns of a file of JSON lines, each of the kind of most of its values.

    Lines that are not JSON objects are passed over. Raises `InvalidInput` where all are such, and
    where there are too many columns.
    """
    name = str(path)
    survey = Survey(JsonSource(name, lambda: (line for line, _ in _open_lines(path))))
    first_fault: InvalidInput | None = None
    for line, text in _open_lines(path):
        try:
            row = to_json_row(_decode(text, line, name), f"{name}: line {line}")
        except InvalidInput as error:
            first_fault = first_fault or error
            continue
        if _has_readable_names(row.columns):
            survey.see(row)
    if first_fault is not None and not survey.count:
        raise InvalidInput(
            f"{name}: no line can be read, from which the columns could be learnt; the first: "
            f"{first_fault.message.removeprefix(f'{name}: ')}"
        )
    kinds = survey.columns()
    if id_column in kinds:
        kinds[id_column] = kinds[id_column].as_ids()
    crs = CRS84 if survey.has_features else None
    return SurveyedLines(schema_of(kinds), find_geometries(kinds), crs)


def _decode(text: bytes, line: int, name: str) -> object:
    """Decode a text; one that was too long has come empty."""
    if not text:
        raise InvalidInput(f"{name}: line {line}: the line is {describe_length()}")
    return decode_text(text, line, name)


def _has_readable_names(value: Any) -> bool:
    """Whether all names in a JSON value are text; it may be nested deeply."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            if not all(map(is_unicode, inner)):
                return False
            waiting.extend(inner.values())
        elif isinstance(inner, list):
            waiting.extend(inner)
    return True


def _open_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Split a file into texts, each with its line."""
    name = str(path)
    try:
        check_regular(path, name)
        with path.open("rb") as file:
            yield from split_texts(file, name, is_lenient=True)
    except FileNotFoundError:
        raise InvalidInput(f"{name}: no such file") from None
    except OSError as fault:
        raise blame(fault, f"{name}: cannot be read: {fault.strerror or fault}") from fault
