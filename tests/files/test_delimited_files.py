"""CSV and TSV in: geometries, types over the whole file, damage."""

import datetime as dt
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import InvalidInput
from contrada.files import Rows, open_output, read_rows
from contrada.files.sheet import BLOCK_BYTES
from contrada.files.text_types import ColumnTypes, convert, to_numbers
from contrada.model.geometry import BAD_CELL, Fault, read_geometry


def save(folder: Path, text: str, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def column_of(rows: Rows, column: str) -> list[Any]:
    return [value for batch, _ in rows.judged() for value in batch.column(column).to_pylist()]


def texts(rows: Rows) -> list[str | None]:
    shapes = shapely.from_wkb(column_of(rows, "geometry"))
    return [None if shape is None else shapely.to_wkt(shape, trim=True) for shape in shapes]


@pytest.mark.parametrize("name", ["geometry", "wkt", "WKT", "geom", "the_geom", " Geometry "])
def test_wkt_becomes_the_column_geometry(tmp_path: Path, name: str) -> None:
    path = save(tmp_path, f'id,{name},n\na,"POLYGON ((0 0, 1 0, 1 1, 0 0))",1\nb,,2\n')
    rows = read_rows(path)
    assert rows.schema.names == ["id", "geometry", "n"]
    assert rows.geometry_columns == ("geometry",)
    assert rows.crs is None
    assert rows.count == 2
    assert column_of(rows, "geometry") == ["POLYGON ((0 0, 1 0, 1 1, 0 0))", None]


@pytest.mark.parametrize("x", ["lon", "lng", "long", "Longitude", "x"])
@pytest.mark.parametrize("y", ["LAT", "latitude", "y"])
def test_longitude_and_latitude_become_points(tmp_path: Path, x: str, y: str) -> None:
    path = save(tmp_path, f"{y},{x},n\n43.3,11.3,1\n,8.5,2\n47,,3\n-1,-2,4\n")
    rows = read_rows(path)
    assert rows.schema.names == [y, x, "n", "geometry"]
    assert rows.geometry_columns == ("geometry",)
    assert texts(rows) == ["POINT (11.3 43.3)", None, None, "POINT (-2 -1)"]
    assert column_of(rows, x) == [11.3, 8.5, None, -2.0]


def test_wkt_goes_before_longitude_and_latitude(tmp_path: Path) -> None:
    rows = read_rows(save(tmp_path, "lon,lat,wkt\n1,2,POINT (3 4)\n"))
    assert column_of(rows, "geometry") == ["POINT (3 4)"]


def test_a_sheet_without_geometry_has_none(tmp_path: Path) -> None:
    rows = read_rows(save(tmp_path, "id,lon\na,1\n"))
    assert rows.geometry_columns == ()


def test_a_coordinate_that_is_no_number_gives_a_geometry_that_cannot_be_decoded(
    tmp_path: Path,
) -> None:
    rows = read_rows(save(tmp_path, "lon,lat\n1,2\n3,north\n,east\n5, 6.5 \n7,\n1e400,8\n"))
    assert rows.geometry_columns == ("geometry",)
    assert column_of(rows, "lon") == [1, 3, None, 5, 7, None]
    assert column_of(rows, "lat") == [2, None, None, 6.5, None, 8]
    good, north, east, trimmed, missing, beyond = column_of(rows, "geometry")
    assert shapely.from_wkb(good) == shapely.Point(1, 2)
    assert shapely.from_wkb(trimmed) == shapely.Point(5, 6.5)
    assert missing is None
    for bad, column, reason in (
        (north, "lat", "'north' is not a number"),
        (east, "lat", "'east' is not a number"),
        (beyond, "lon", "1e400 is too large for a 64-bit number"),
    ):
        assert read_geometry(bad) == Fault(BAD_CELL, reason, f"column {column!r}")
        with pytest.raises(shapely.errors.GEOSException):
            shapely.from_wkb(bad)


def test_x_and_y_that_are_no_numbers_are_plain_columns(tmp_path: Path) -> None:
    rows = read_rows(save(tmp_path, "x,y\nred,1\n"))
    assert rows.geometry_columns == ()
    assert column_of(rows, "x") == ["red"]


def test_x_and_y_that_are_mostly_numbers_are_coordinates(tmp_path: Path) -> None:
    rows = read_rows(save(tmp_path, "x,y\n1,2\nred,1\n3,4\n"))
    assert rows.geometry_columns == ("geometry",)
    bad = read_geometry(column_of(rows, "geometry")[1])
    assert bad == Fault(BAD_CELL, "'red' is not a number", "column 'x'")
    assert column_of(rows, "x") == [1, None, 3]


def test_coordinates_that_are_all_missing_give_no_point(tmp_path: Path) -> None:
    rows = read_rows(save(tmp_path, "id,lon,lat\na,,\nb,,\n"))
    assert texts(rows) == [None, None]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-2", "9007199254740993", "9223372036854775807", "0", " 7 "], pa.int64()),
        (["1", "2.5", "-1e-3", ".5", "5.", "nan", "1e5"], pa.float64()),
        (["true", "False", "TRUE"], pa.bool_()),
        (["2024-05-01", "0001-01-01"], pa.date32()),
        (["2024-05-01T12:30", "2024-05-01 12:30:00.25"], pa.timestamp("us")),
        (["2024-05-01T12:30Z", "2024-05-01T12:30:00.25+02:00"], pa.timestamp("us", "UTC")),
        (["01234", "5"], pa.string()),
        (["-01"], pa.string()),
        (["1", "9223372036854775808"], pa.float64()),
        (["1", "9223372036854775809"], pa.string()),
        (["9007199254740993", "0.5"], pa.string()),
        (["0.5", "1e400"], pa.string()),
        (["0.5", "-Infinity", "inf"], pa.float64()),
        (["1", "true"], pa.string()),
        (["2024-05-01", "2024-13-01"], pa.string()),
        (["2024-05-01", "2024-05-01T00:00"], pa.string()),
        (["2024-05-01T00:00", "2024-05-01T00:00Z"], pa.string()),
        (["2024-05-01T00:00:00.123456789"], pa.string()),
        (["1,5"], pa.string()),
        (["0x10"], pa.string()),
        (["1_000"], pa.string()),
        (["+5"], pa.string()),
        (["NA", "1"], pa.string()),
        (["", ""], pa.string()),
        (["東京", "é"], pa.string()),
    ],
)
def test_types_hold_every_cell_of_the_column(
    tmp_path: Path, cells: list[str], kind: pa.DataType
) -> None:
    rows = read_rows(save(tmp_path, "n,v\n" + "".join(f'1,"{cell}"\n' for cell in ["", *cells])))
    assert rows.schema.field("v").type == kind
    values = column_of(rows, "v")
    assert values[0] is None
    if pa.types.is_string(kind):
        assert values[1:] == [cell or None for cell in cells]


@pytest.mark.parametrize("column", ["relation", "filter", "where", "attribute"])
@pytest.mark.parametrize("cell", ["212101212", "true", "1.5", "2024-05-01"])
def test_columns_that_hold_text_by_their_meaning_stay_text(
    tmp_path: Path, column: str, cell: str
) -> None:
    assert column_of(read_rows(save(tmp_path, f"n,{column}\n1,{cell}\n")), column) == [cell]


@pytest.mark.parametrize("column", ["id", "subscriber"])
@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2"], [1, -2]),
        (["1", "01"], ["1", "01"]),
        (["1.5"], ["1.5"]),
        (["true"], ["true"]),
        (["2024-05-01"], ["2024-05-01"]),
        (["2024-05-01T00:00Z"], ["2024-05-01T00:00Z"]),
    ],
)
def test_ids_are_integers_or_text(
    tmp_path: Path, column: str, cells: list[str], expected: list[Any]
) -> None:
    content = f"n,{column}\n" + "".join(f"1,{cell}\n" for cell in cells)
    assert column_of(read_rows(save(tmp_path, content)), column) == expected


def test_values_are_those_of_the_text(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        "n,f,b,d,t,z,s\n"
        "9007199254740993,0.1,true,2024-05-01,2024-05-01T12:30,2024-05-01T12:30+02:00,"
        '"a ""b"",\nc"\n',
    )
    row = {name: column_of(read_rows(path), name)[0] for name in "nfbdtzs"}
    assert row == {
        "n": 2**53 + 1,
        "f": 0.1,
        "b": True,
        "d": dt.date(2024, 5, 1),
        "t": dt.datetime(2024, 5, 1, 12, 30),  # noqa: DTZ001 - the file has no zone
        "z": dt.datetime(2024, 5, 1, 10, 30, tzinfo=dt.UTC),
        "s": 'a "b",\nc',
    }


def test_the_last_row_may_widen_the_type(tmp_path: Path) -> None:
    path = save(tmp_path, "n,m\n" + "1,1\n" * 300_000 + "007,1.5\n")
    rows = read_rows(path, batch_rows=100_000)
    assert rows.count == 300_001
    assert [batch.num_rows for batch in rows.batches()] == [100_000, 100_000, 100_000, 1]
    assert column_of(rows, "n")[-1] == "007"
    assert column_of(rows, "m")[-1] == 1.5


@given(st.lists(st.one_of(st.none(), st.integers().map(str), st.floats().map(repr)), max_size=20))
def test_numbers_are_never_changed(cells: list[str | None]) -> None:
    column = ColumnTypes()
    array = pa.array(cells, pa.string())
    for half in (array[: len(array) // 2], array[len(array) // 2 :]):
        column.see(half)
    kind = column.best()
    values = (convert if column.misfits is None else to_numbers)(array, kind).to_pylist()
    for cell, value in zip(cells, values, strict=True):
        if isinstance(value, int):
            assert str(value) == cell
        elif isinstance(value, float):
            assert cell is not None
            assert repr(value) == repr(float(cell))
            is_integer = cell.lstrip("-").isdigit()
            assert not is_integer or int(cell) == value or abs(int(cell)) >= 2**63
        else:
            assert value == cell or column.misfits is not None


@pytest.mark.parametrize("name", ["x.tsv", "x.TSV.GZ", "x.csv.gz"])
def test_tabs_and_gzip_are_known_by_the_suffix(tmp_path: Path, name: str) -> None:
    delimiter = "\t" if "tsv" in name.lower() else ","
    content = delimiter.join(["id", "lon", "lat"]) + "\n" + delimiter.join(["é", "1", "2"]) + "\n"
    raw = content.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.lower().endswith("gz") else raw)
    rows = read_rows(tmp_path / name)
    assert column_of(rows, "id") == ["é"]
    assert texts(rows) == ["POINT (1 2)"]


@pytest.mark.parametrize(
    ("content", "count"),
    [
        ("a,b", 0),
        ("a,b\n", 0),
        ("a,b\n\n\r\n", 0),
        ("a,b\n1,2", 1),
        ("\ufeffa,b\r\n1,2\r\n", 1),
        ("\n\na,b\n\n1,2\n\n3,4\n", 2),
        ('"a","b"\n"1","2"\n', 1),
        ('"a\nb",b\n1,2\n', 1),
    ],
)
def test_headers_blank_lines_and_marks(tmp_path: Path, content: str, count: int) -> None:
    rows = read_rows(save(tmp_path, content))
    assert rows.count == count
    assert rows.schema.names[1] == "b"
    assert column_of(rows, "b") == [2, 4][:count]


def test_a_stray_quote_inside_a_cell_is_text(tmp_path: Path) -> None:
    rows = read_rows(save(tmp_path, 'a,b\n5" pipe,1\n'))
    assert column_of(rows, "a") == ['5" pipe']


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b'a,b\n1,2\n3,"4\n5,6\n', "line 3: a quote is not closed"),
        (b"a,b\n1,2\nZ\xfcrich,2\n", "line 3 is not UTF-8"),
        (b"a,b\nZ\xfcrich,2\n", "line 2 is not UTF-8"),
        (b"a,b\n\n\nZ\xfcrich,2\n", "line 4 is not UTF-8"),
        (b"Z\xfcrich,b\n1,2\n", "the header is not UTF-8"),
        (b"a,b,a\n1,2,3\n", 'two columns are named "a"'),
        (b'"a,b\n1,2\n', "the header cannot be read"),
    ],
)
def test_a_damaged_file_is_refused_with_the_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        read_rows(path)


@pytest.mark.parametrize("cut", [5, 15, -4])
def test_a_damaged_gzip_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "x.csv.gz"
    content = "a,b\n" + "".join(f"{n},{n * n}\n" for n in range(9999))
    path.write_bytes(gzip.compress(content.encode())[:cut])
    with pytest.raises(InvalidInput, match=r"x\.csv\.gz: (damaged gzip|the header cannot be read)"):
        read_rows(path)
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InvalidInput, match="the header cannot be read"):
        read_rows(path)


def test_a_row_may_be_longer_than_a_block(tmp_path: Path) -> None:
    line = f"LINESTRING ({', '.join(f'{n} {n}' for n in range(400_000))})"
    assert len(line) > BLOCK_BYTES
    path = save(tmp_path, f'id,wkt\n1,POINT (0 0)\n5" pipe,"{line}"\n3,POINT (1 1)\n')
    rows = read_rows(path)
    assert rows.count == 3
    assert column_of(rows, "geometry") == ["POINT (0 0)", line, "POINT (1 1)"]


def test_a_file_that_changed_since_it_was_opened_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path, "n\n1\n")
    rows = read_rows(path)
    save(tmp_path, "n\nx\n")
    with pytest.raises(InvalidInput, match="the file has changed"):
        list(rows.batches())


def test_columns_can_be_chosen(tmp_path: Path) -> None:
    path = save(tmp_path, "id,lon,lat\na,1,2\n")
    rows = read_rows(path, columns=["geometry", "id"])
    assert rows.schema.names == ["geometry", "id"]
    assert texts(rows) == ["POINT (1 2)"]
    assert read_rows(path, columns=["id"]).geometry_columns == ()


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": ['é, "x"', "東\n京"],
            "n": [2**53 + 1, None],
            "f": [0.1, 1e-300],
            "t": pa.array(
                [dt.datetime(2024, 5, 1, tzinfo=dt.UTC), None], pa.timestamp("us", "UTC")
            ),
            "geometry": ["POINT (0.1 0.2)", None],
        }
    )
    path = tmp_path / "x.csv"
    with open_output(path, table.schema, geometry_column="geometry") as output:
        output.write(table)
    rows = read_rows(path)
    for column in table.schema.names:
        assert column_of(rows, column) == table.column(column).to_pylist()


def test_lines_that_end_with_cr_alone_are_refused_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes(b"id,lon,lat\r1,2,3\r")
    with pytest.raises(InvalidInput, match=r"old\.csv: .* CR alone; end them with LF or CR LF"):
        read_rows(path)
