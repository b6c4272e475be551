"""Newline-delimited GeoJSON and JSON in."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import shapely

from contrada.errors import InvalidInput
from contrada.files import Rows, json_lines, json_rows, open_output, read_rows
from contrada.files.json_kinds import JsonSource

POINT = {"type": "Point", "coordinates": [1, 2]}
FEATURE = {"type": "Feature", "properties": {"n": 1}, "geometry": POINT}


def column_of(rows: Rows, column: str) -> list[Any]:
    return [value for batch in rows.batches() for value in batch.column(column).to_pylist()]


def save(folder: Path, *lines: object, suffix: str = ".ndjson") -> Path:
    path = folder / f"x{suffix}"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", [".geojsonl", ".geojsons", ".ndgeojson", ".NDJSON", ".jsonl"])
def test_each_line_is_a_row(tmp_path: Path, suffix: str) -> None:
    rows = read_rows(save(tmp_path, FEATURE, "", "  \r", {**FEATURE, "id": "b"}, suffix=suffix))
    assert rows.count == 2
    assert rows.crs == "OGC:CRS84"
    assert column_of(rows, "n") == [1, 1]
    assert column_of(rows, "id") == [None, "b"]
    assert column_of(rows, "geometry") == [shapely.to_wkb(shapely.Point(1, 2))] * 2


def test_text_sequences_may_go_over_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.geojsons"
    path.write_text("".join(f"\x1e{json.dumps(FEATURE, indent=2)}\n" for _ in range(3)))
    assert read_rows(path).count == 3
    path.write_text("".join(f"\x1e{json.dumps(FEATURE)}\n\n" for _ in range(3)))
    assert read_rows(path).count == 3


def test_plain_objects_are_plain_rows(tmp_path: Path) -> None:
    rows = read_rows(
        save(
            tmp_path,
            {"id": 1, "type": "alert", "geometry": POINT, "wind": 2**53 + 1},
            {"id": 2, "geometry": None, "tags": ["é"]},
        )
    )
    assert rows.crs is None
    assert rows.geometry_columns == ("geometry",)
    assert rows.schema.names == ["id", "type", "wind", "tags", "geometry"]
    assert column_of(rows, "wind") == [2**53 + 1, None]
    assert column_of(rows, "geometry") == [shapely.to_wkb(shapely.Point(1, 2)), None]


def test_plain_rows_may_have_wkt(tmp_path: Path) -> None:
    rows = read_rows(save(tmp_path, {"geometry": "POINT (1 2)"}, {"geometry": "nonsense"}))
    assert rows.geometry_columns == ("geometry",)
    assert column_of(rows, "geometry") == ["POINT (1 2)", "nonsense"]


def test_wkt_next_to_geojson_becomes_wkb_as_well(tmp_path: Path) -> None:
    values = ["POINT (3 4)", POINT, "POINT Z (5 6 7)", "nonsense", None, {"type": "Sphere"}]
    rows = read_rows(save(tmp_path, *[{"geometry": value} for value in values]))
    assert rows.geometry_columns == ("geometry",)
    encoded = column_of(rows, "geometry")
    decoded = shapely.from_wkb([encoded[0], encoded[1], encoded[2], encoded[4]])
    assert list(decoded[:2]) == [shapely.Point(3, 4), shapely.Point(1, 2)]
    assert decoded[2] == shapely.Point(5, 6)
    assert decoded[3] is None
    for bad in (encoded[3], encoded[5]):
        with pytest.raises(shapely.errors.GEOSException):
            shapely.from_wkb(bad)


def test_a_bare_geometry_is_a_row_but_an_object_with_more_is_plain(tmp_path: Path) -> None:
    assert read_rows(save(tmp_path, POINT)).schema.names == ["geometry"]
    rows = read_rows(save(tmp_path, {**POINT, "name": "x"}))
    assert rows.schema.names == ["type", "coordinates", "name"]


def test_an_empty_file_has_no_row(tmp_path: Path) -> None:
    for content in (b"", b"\n\n", b"\xef\xbb\xbf"):
        path = tmp_path / "x.ndjson"
        path.write_bytes(content)
        rows = read_rows(path)
        assert rows.count == 0
        assert list(rows.batches()) == []


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"n": 1}).encode())
    assert column_of(read_rows(path), "n") == [1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"n": 1', r"x\.ndjson: line 3, column 8: Expecting ',' delimiter"),
        ('{"n": 1}}', r"line 3, column 9: Extra data, near '}'"),
        ("oops", "line 3, column 1: Expecting value, near 'oops'"),
        ("[1, 2]", r"line \d \(row 1\) is not a JSON object: \[1, 2\]"),
        ("null", r"line \d \(row 1\) is not a JSON object: None"),
        (
            '{"type": "FeatureCollection", "features": []}',
            r"line \d \(row 1\) is an entire FeatureCollection",
        ),
        ('{"n": ' + "1" * 5000 + "}", "line 3: .*digits"),
        ('{"n": ' + "[" * 100_000, "line 3: .*JSON_DEPTH_MAX"),
    ],
)
def test_a_damaged_line_is_refused_with_its_number(tmp_path: Path, line: str, message: str) -> None:
    path = save(tmp_path, {"n": 1}, "", line, {"n": 2})
    with pytest.raises(InvalidInput, match=message):
        read_rows(path)


def test_a_line_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    path.write_bytes(b'{"a": "b"}\n{"a": "\xfc"}\n')
    with pytest.raises(InvalidInput, match="line 2 is not UTF-8"):
        read_rows(path)


def test_a_file_that_changed_since_it_was_opened_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path, {"n": 1})
    rows = read_rows(path)
    save(tmp_path, {"n": "x"})
    with pytest.raises(InvalidInput, match=r'column "n" in line 1 \(row 0\) cannot be read'):
        list(rows.batches())
    path.unlink()
    with pytest.raises(InvalidInput, match=r"x\.ndjson"):
        list(rows.batches())


def test_a_long_file_is_held_one_batch_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.ndjson"
    with path.open("w") as file:
        file.writelines(f'{{"n": {n}, "big": {2**53 + n}}}\n' for n in range(300_000))
    taken = 0
    decode = json_lines.decode_text

    def counting(text: bytes, line: int, name: str) -> object:
        nonlocal taken
        taken += 1
        return decode(text, line, name)

    monkeypatch.setattr(json_lines, "decode_text", counting)
    rows = read_rows(path, batch_rows=10_000)
    assert rows.count == taken == 300_000
    taken = delivered = 0
    for batch in rows.batches():
        assert batch.num_rows == 10_000
        assert taken - delivered == 10_000, "no more is decoded than the batch at hand"
        assert batch.column("big")[0].as_py() == 2**53 + delivered
        delivered += batch.num_rows
    assert delivered == 300_000


def test_rows_with_much_text_make_shorter_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "BATCH_CHARACTERS", 100)
    records: list[tuple[Any, int]] = [({"n": n}, 60) for n in range(5)]
    source = JsonSource("x", lambda: iter(()))
    pieces = [len(rows) for rows in json_rows._gather(iter(records), [], source, 1000)]
    assert pieces == [2, 2, 1]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": ["é", "東京"],
            "n": [2**53 + 1, None],
            "nested": [{"a": [1, 2]}, None],
            "geometry": [shapely.to_wkb(shapely.Point(0.1, 1e300)), None],
        }
    )
    path = tmp_path / "x.jsonl"
    with open_output(path, table.schema, geometry_column="geometry") as output:
        output.write(table)
    rows = read_rows(path)
    for column in table.schema.names:
        assert column_of(rows, column) == table.column(column).to_pylist()
