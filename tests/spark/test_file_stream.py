"""Files of a stream, as tasks read them: what is bad in one is set aside. No Spark runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from contrada.errors import InvalidInput
from contrada.spark.file_stream import FileColumns, ReadFilesTask
from contrada.spark.handshake import Handshake

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {
    "ndjson": [json.dumps({"id": n, "speed": n}) for n in range(3)],
    "csv": ["id,speed", "0,0", "1,1", "2,2"],
}


def save(folder: Path, kind: str, lines: list[str | bytes] | list[str]) -> Path:
    path = folder / f"{len(list(folder.iterdir()))}.{kind}"
    texts = [line if isinstance(line, bytes) else line.encode() for line in lines]
    path.write_bytes(b"\n".join([*texts, b""]))
    return path


def read(path: Path, columns: FileColumns) -> tuple[list[Any], list[dict[str, str]]]:
    """The ids of good rows, and what is said of bad ones."""
    task = ReadFilesTask(Handshake.here(), columns)
    batch = pa.RecordBatch.from_pydict({"path": [path.as_uri()]})
    rows = [row for found in task(iter([batch])) for row in found.to_pylist()]
    good = [row["id"] for row in rows if row["__fault"] is None]
    return good, [row["__fault"] for row in rows if row["__fault"] is not None]


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize(
    "broken",
    [b'{"id": 7, "speed": ', b'{"id": 7, "speed": "fast"}', b"7,7,7,7", b"7,fast", b"[7]"],
)
def test_of_a_file_with_one_bad_line_only_that_line_is_set_aside(
    kind: str, broken: bytes, tmp_path: Path
) -> None:
    columns = FileColumns.survey(str(save(tmp_path, kind, GOOD[kind])), None)
    lines: list[str | bytes] = [*GOOD[kind][:-1], broken, GOOD[kind][-1]]
    path = save(tmp_path, kind, lines)
    good, (bad,) = read(path, columns)
    assert good == [0, 1, 2]
    assert bad["place"].startswith(f"{path}, line {lines.index(broken) + 1}")


def test_the_next_lines_of_a_file_have_numbers_too(tmp_path: Path) -> None:
    columns = FileColumns.survey(str(save(tmp_path, "ndjson", ['{"speed": 1}'])), None)
    path = save(tmp_path, "ndjson", ['{"speed": 2}', "", "{", '{"speed": 3.5}', '{"speed": 4}'])
    good, bad = read(path, columns)
    assert good == [f"{path}#0", f"{path}#3"]
    assert [fault["place"] for fault in bad] == [
        f"{path}, line 3",
        f"{path}, line 4, column 'speed'",
    ]
    assert [fault["message"] for fault in bad] == [
        "column 2: Expecting property name enclosed in double quotes, near ''",
        "3.5 is not an integer",
    ]


def test_integers_may_stand_for_ids_that_are_texts(tmp_path: Path) -> None:
    columns = FileColumns.survey(str(save(tmp_path, "ndjson", ['{"id": "a"}'])), None)
    good, bad = read(save(tmp_path, "ndjson", ['{"id": 7}', '{"id": [8]}']), columns)
    assert good == ["7"]
    assert [fault["message"] for fault in bad] == ["[8] is not a text"]


def test_a_file_in_another_system_is_one_bad_row(tmp_path: Path) -> None:
    columns = FileColumns(pa.schema([("id", pa.int64())]), "id", None, "EPSG:3857")
    point = {"type": "Point", "coordinates": [1, 2]}
    feature = {"type": "Feature", "id": 1, "properties": {}, "geometry": point}
    good, (bad,) = read(save(tmp_path, "ndjson", [json.dumps(feature)] * 2), columns)
    assert good == []
    assert "is in OGC:CRS84, and the stream began in EPSG:3857" in bad["message"]


@pytest.mark.parametrize(
    "broken",
    [
        b'{"id": 7, "speed": ',
        b"[7]",
        b'{"id": "seven", "speed": 7}',
        b'{"id": 7, "speed": "\xff"}',
        b'{"type": "FeatureCollection", "features": []}',
    ],
)
def test_the_columns_come_from_the_lines_of_the_first_file_that_can_be_read(
    broken: bytes, tmp_path: Path
) -> None:
    lines: list[str | bytes] = [broken, *GOOD["ndjson"]]
    path = save(tmp_path, "ndjson", lines)
    columns = FileColumns.survey(str(path), None)
    assert columns.schema == pa.schema([("id", pa.int64()), ("speed", pa.int64())])
    good, (bad,) = read(path, columns)
    assert good == [0, 1, 2]
    assert bad["place"].startswith(f"{path}, line 1")


def test_a_line_with_half_a_character_in_a_name_adds_no_column(tmp_path: Path) -> None:
    lines = [*GOOD["ndjson"], r'{"id": 3, "speed": 3, "within": [{"\ud800": 1}]}']
    columns = FileColumns.survey(str(save(tmp_path, "ndjson", lines)), None)
    assert columns.schema.names == ["id", "speed"]


def test_a_first_file_without_a_line_that_can_be_read_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path, "ndjson", ["{", "["])
    with pytest.raises(InvalidInput, match="no line can be read, from which the columns") as told:
        FileColumns.survey(str(path), None)
    assert "line 1, column 2: Expecting property name" in str(told.value)


def test_columns_of_lines_are_those_of_the_file_alone(tmp_path: Path) -> None:
    point = {"type": "Point", "coordinates": [1, 2]}
    feature = {"type": "Feature", "id": "a", "properties": {"at": point, "n": 1.5}}
    path = save(tmp_path, "ndjson", [json.dumps(feature | {"geometry": point})])
    columns = FileColumns.survey(str(path), None)
    kinds = [("id", pa.string()), ("at", pa.binary()), ("n", pa.float64())]
    assert columns.schema == pa.schema([*kinds, ("geometry", pa.binary())])
    assert (columns.id_column, columns.geometry, columns.crs) == ("id", "geometry", "OGC:CRS84")
