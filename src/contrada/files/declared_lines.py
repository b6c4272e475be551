"""Newline-delimited JSON as columns of types that were declared beforehand.

Where a file that comes alone is refused if one of its lines is broken (`json_lines`), one of a
stream of files is read line by line: what is wrong with a line, or with a value in it, is a fault
of its row and of no other.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from contrada.errors import InvalidInput, blame
from contrada.files.arrow_types import is_text
from contrada.files.declared_columns import DeclaredColumn
from contrada.files.json_lines import decode_text, split_texts
from contrada.files.json_rows import BATCH_CHARACTERS, to_json_row
from contrada.files.regular_files import check_regular
from contrada.model.geometry import UNDECODABLE, Fault

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
            row = to_json_row(decode_text(text, line, name), "")
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

    A line that is not a JSON object, or has a value of another type, is a row with a fault; only
    in the column of ids an integer may stand for its text. Raises `InvalidInput` where the lines
    cannot be told apart, because one is too long.
    """
    name, held = str(path), _Held()
    try:
        check_regular(path, name)
        with path.open("rb") as file:
            for line, text in split_texts(file, name):
                held.take(text, line, name)
                if len(held.rows) == _ROWS_MAX or held.characters >= BATCH_CHARACTERS:
                    yield held.read(schema, id_column)
                    held = _Held()
    except FileNotFoundError:
        raise InvalidInput(f"{name}: no such file") from None
    except OSError as fault:
        raise blame(fault, f"{name}: cannot be read: {fault.strerror or fault}") from fault
    if held.rows:
        yield held.read(schema, id_column)
