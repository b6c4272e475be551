"""Files of a stream, as tasks read them: what is bad in one is set aside. No Spark runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.errors import InvalidInput
from contrada.spark.file_stream import FileColumns, ReadFilesTask
from contrada.spark.handshake import Handshake

if TYPE_CHECKING:
    from pathlib import Path

NONE = (None, None)
GOOD = {
    "ndjson": [json.dumps({"id": n, "speed": n}) for n in range(3)],
    "csv": ["id,speed", "0,0", "1,1", "2,2"],
}


def save(folder: Path, kind: str, lines: list[str | bytes] | list[str]) -> Path:
    path = folder / f"{len(list(folder.iterdir()))}.{kind}"
    texts = [line if isinstance(line, bytes) else line.encode() for line in lines]
    path.write_bytes(b"\n".join([*texts, b""]))
    return path


def read_batches(path: Path, columns: FileColumns) -> list[pa.RecordBatch]:
    task = ReadFilesTask(Handshake.here(), columns)
    return list(task(iter([pa.RecordBatch.from_pydict({"path": [path.as_uri()]})])))


def read(path: Path, columns: FileColumns) -> tuple[list[Any], list[dict[str, str]]]:
    """The ids of good rows, and what is said of bad ones."""
    rows = [row for batch in read_batches(path, columns) for row in batch.to_pylist()]
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


POINT = shapely.Point(1, 2)


def save_points(folder: Path, name: str, geometry: str, points: list[Any]) -> Path:
    """A GeoParquet file whose primary geometry has a name."""
    path = folder / name
    columns = {geometry: {"encoding": "WKB", "geometry_types": []}}
    geo = {"version": "1.0.0", "primary_column": geometry, "columns": columns}
    table = pa.table({"id": range(len(points)), geometry: pa.array(points)})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    return path


def read_points(path: Path, columns: FileColumns) -> list[Any]:
    rows = (row for batch in read_batches(path, columns) for row in batch.to_pylist())
    return [row[columns.geometry] for row in rows if row["__fault"] is None]


@pytest.mark.parametrize("first", ["geometry", "shape"])
def test_the_primary_geometry_of_a_file_may_have_another_name(first: str, tmp_path: Path) -> None:
    columns = FileColumns.survey(str(save_points(tmp_path, "a.parquet", first, [POINT.wkb])), None)
    assert columns.geometry == first
    path = save_points(tmp_path, "b.parquet", "geom", [POINT.wkb, None])
    assert read_points(path, columns) == [POINT.wkb, None]


def test_of_two_geometries_of_a_file_the_primary_one_is_read(tmp_path: Path) -> None:
    columns = FileColumns.survey(
        str(save_points(tmp_path, "a.parquet", "geometry", [POINT.wkb])), None
    )
    path = save_points(tmp_path, "b.parquet", "geom", [POINT.wkb])
    table = pq.read_table(path)
    pq.write_table(table.append_column("geometry", pa.array([shapely.Point(8, 9).wkb])), path)
    assert read_points(path, columns) == [POINT.wkb]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_without_geometries_is_one_bad_row(kind: str, tmp_path: Path) -> None:
    columns = FileColumns.survey(
        str(save_points(tmp_path, "a.parquet", "geometry", [POINT.wkb])), None
    )
    path = tmp_path / f"b.{kind}"
    path.write_text("id,speed\n7,1\n8,2\n")
    if kind == "parquet":
        pq.write_table(pa.table({"id": [7, 8], "speed": [1, 2]}), path)
    good, (bad,) = read(path, columns)
    assert good == []
    assert bad["message"] == (
        "has no column of geometries, such as 'geometry' in the file with which the stream began; "
        "it has id, speed"
    )


def test_geometries_may_be_written_in_another_way(tmp_path: Path) -> None:
    binary = save_points(tmp_path, "a.parquet", "geometry", [POINT.wkb])
    lines = ['"POINT (1 2)",7', '"POINT (1",8', ",9"]
    text = save(tmp_path, "csv", ["geometry,id", *lines])
    columns = FileColumns.survey(str(binary), None)
    assert [p and shapely.from_wkb(p) for p in read_points(text, columns)] == [POINT, None]
    (bad,) = read(text, columns)[1]
    assert (bad["code"], bad["place"]) == ("undecodable", f"{text}, line 3, column 'geometry'")
    columns = FileColumns.survey(str(text), None)
    assert read_points(binary, columns) == ["POINT (1 2)"]


def test_rows_say_where_they_are_unless_they_are_bad_already(tmp_path: Path) -> None:
    lines = {
        "ndjson": ['{"id": 1, "speed": 1}', "", "{", '{"id": 2, "speed": 3}'],
        "csv": ["id,speed", "1,1", "", "2,2,2", "2,3"],
    }
    for kind, texts in lines.items():
        path = save(tmp_path, kind, texts)
        columns = FileColumns(pa.schema([("id", pa.int64()), ("speed", pa.int64())]), "id", *NONE)
        places = [place for b in read_batches(path, columns) for place in b["__file"].to_pylist()]
        first, last = (1, 4) if kind == "ndjson" else (2, 5)
        assert places == [f"{path}, line {first}", None, f"{path}, line {last}"]
    path = save_points(tmp_path, "a.parquet", "geometry", [POINT.wkb, None])
    (batch,) = read_batches(path, FileColumns.survey(str(path), None))
    assert batch["__file"].to_pylist() == [f"{path}, row 0", f"{path}, row 1"]


def test_a_column_that_is_text_because_of_a_cell_is_told(tmp_path: Path) -> None:
    path = save(tmp_path, "csv", ["id,speed,name", "1,3,a", "2,fast,b", "x,4,c", "4,5,7"])
    message = r"'speed' is text, and stays so .*: 3 of 4 cells are numbers, and line 3 has 'fast'"
    with pytest.warns(UserWarning, match=message) as told:
        columns = FileColumns.survey(str(path), None)
    assert len(told) == 1
    assert columns.schema.field("speed").type == pa.string()


@pytest.mark.parametrize("start", ["", "\x1e"])
def test_a_line_that_is_too_long_is_the_only_bad_one(
    start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.files.json_lines.ROW_BYTES_MAX", 60)
    monkeypatch.setattr("contrada.files.json_lines._PIECE_BYTES", 7)
    long = json.dumps({"id": 7, "speed": 7, "name": "x" * 500})
    rest = [] if not start else ["and more of it"]
    lines = [start + line for line in [*GOOD["ndjson"][:2], long]]
    path = save(tmp_path, "ndjson", [*lines, *rest, start + GOOD["ndjson"][2]])
    columns = FileColumns.survey(str(path), None)
    assert columns.schema.names == ["id", "speed"]
    good, (bad,) = read(path, columns)
    assert good == [0, 1, 2]
    assert bad["place"] == f"{path}, line 3"
    assert bad["message"].startswith("the line is longer than 60 bytes")
