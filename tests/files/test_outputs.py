"""Files out: formats, exactness, and whole or not at all."""

import csv
import datetime as dt
import json
import math
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import InvalidInput, Unavailable
from contrada.files import open_output, read_rows

SUFFIXES = [".parquet", ".geoparquet", ".csv", ".jsonl", ".ndjson"]
SCHEMA = pa.table({"event": [1], "geometry": [b""]}).schema


def rows_of(*events: int) -> pa.RecordBatch:
    shapes = [shapely.to_wkb(shapely.Point(event, 0.1)) for event in events]
    return pa.record_batch([pa.array(events, pa.int64()), pa.array(shapes)], schema=SCHEMA)


def write(path: Path, *batches: pa.RecordBatch | pa.Table, **options: Any) -> None:
    with open_output(path, batches[0].schema, **options) as output:
        for batch in batches:
            output.write(batch)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    assert not list(tmp_path.glob(".*")), "no temporary file stays behind"


def test_parquet_is_plain_and_compressed(folder: Path) -> None:
    path = folder / "pairs.parquet"
    write(path, rows_of(2**53 + 1), rows_of(2, 3))
    assert pq.read_table(path).column("event").to_pylist() == [2**53 + 1, 2, 3]
    metadata = pq.ParquetFile(path).metadata
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert b"geo" not in (metadata.metadata or {})


def test_many_small_writes_make_few_row_groups(folder: Path) -> None:
    path = folder / "pairs.parquet"
    write(path, *[rows_of(n) for n in range(500)])
    assert pq.ParquetFile(path).metadata.num_row_groups == 1


@pytest.mark.parametrize("crs", ["EPSG:2154", "EPSG:4326", "OGC:CRS84", None])
def test_geoparquet_is_read_by_geopandas_with_its_crs(folder: Path, crs: str | None) -> None:
    path = folder / "found.geoparquet"
    write(path, rows_of(5, 6), rows_of(-7), geometry_column="geometry", crs=crs)
    frame = geopandas.read_parquet(path)
    assert list(frame["event"]) == [5, 6, -7]
    assert list(frame.geometry) == [shapely.Point(n, 0.1) for n in (5, 6, -7)]
    if crs is None:
        assert frame.crs is None
    else:
        assert frame.crs == crs
    again = read_rows(path)
    assert again.count == 3
    assert again.crs == crs


def test_only_longitude_and_latitude_go_without_saying(folder: Path) -> None:
    def stated(crs: str | None) -> Any:
        path = folder / "found.geoparquet"
        write(path, rows_of(5), geometry_column="geometry", crs=crs)
        geo = json.loads(pq.read_metadata(path).metadata[b"geo"])
        return geo["columns"]["geometry"].get("crs", "left out")

    assert stated("OGC:CRS84") == "left out"
    assert stated(None) is None
    assert stated("EPSG:4326")["id"] == {"authority": "EPSG", "code": 4326}


def test_the_schema_says_of_geometries_what_the_footer_says(folder: Path) -> None:
    path = folder / "found.geoparquet"
    write(path, rows_of(5, 6), geometry_column="geometry", crs="EPSG:4326")
    seen = pq.read_schema(path).metadata
    assert seen[b"geo"] == pq.read_metadata(path).metadata[b"geo"]
    column = json.loads(seen[b"geo"])["columns"]["geometry"]
    assert (column["geometry_types"], column["bbox"]) == (["Point"], [5, 0.1, 6, 0.1])
    assert pq.read_table(path).schema.field("geometry").type == pa.large_binary()


def test_geoparquet_metadata_is_complete(folder: Path) -> None:
    path = folder / "found.geoparquet"
    texts = ["POINT (1 2)", None, "POLYGON Z ((0 0 1, 9 0 1, 9 9 1, 0 0 1))", "LINESTRING EMPTY"]
    write(path, pa.table({"shape": texts}), geometry_column="shape", crs="OGC:CRS84")
    geo = json.loads((pq.read_metadata(path).metadata or {})[b"geo"])
    assert geo == {
        "version": "1.1.0",
        "primary_column": "shape",
        "columns": {
            "shape": {
                "encoding": "WKB",
                "geometry_types": ["LineString", "Point", "Polygon Z"],
                "bbox": [0.0, 0.0, 9.0, 9.0],
            }
        },
    }
    frame = geopandas.read_parquet(path)
    assert shapely.to_wkt(frame.geometry[2], trim=True) == texts[2]
    assert frame.geometry[1] is None


def test_geoparquet_without_a_row_is_valid(folder: Path) -> None:
    path = folder / "found.geoparquet"
    with open_output(path, SCHEMA, geometry_column="geometry", crs="EPSG:3857"):
        pass
    frame = geopandas.read_parquet(path)
    assert len(frame) == 0
    assert frame.crs == "EPSG:3857"


def test_geoparquet_without_a_geometry_column_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="needs a geometry column"):
        open_output(folder / "pairs.geoparquet", SCHEMA)


def every_type() -> pa.Table:
    moment = dt.datetime(2024, 5, 1, 12, 30, 0, 250_000, tzinfo=dt.UTC)
    return pa.table(
        {
            "n": pa.array([2**53 + 1, None]),
            "big": pa.array([2**64 - 1, 0], pa.uint64()),
            "f": [0.1, math.nan],
            "s": ['Zürich, "東京"\n', ""],
            "d": pa.array(["a", None]).dictionary_encode(),
            "b": [True, None],
            "when": pa.array([moment, None], pa.timestamp("ms", "Europe/Rome")),
            "local": pa.array([moment.replace(tzinfo=None), None], pa.timestamp("us")),
            "day": [moment.date(), None],
            "raw": [b"\x00\xff", None],
            "list": [[1, 2**53 + 1], None],
            "struct": [{"x": math.inf, "y": "é", "t": moment}, None],
            "price": pa.array([Decimal("12.50"), Decimal("3.00")]),
            "nothing": pa.nulls(2),
            "geometry": ["POINT (0.1 1e-7)", None],
        }
    )


def test_json_lines_write_every_type(folder: Path) -> None:
    path = folder / "all.jsonl"
    write(path, every_type(), geometry_column="geometry")
    first, second = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert first == {
        "n": 2**53 + 1,
        "big": 2**64 - 1,
        "f": 0.1,
        "s": 'Zürich, "東京"\n',
        "d": "a",
        "b": True,
        "when": "2024-05-01T12:30:00.250Z",
        "local": "2024-05-01T12:30:00.250000",
        "day": "2024-05-01",
        "raw": "00ff",
        "list": [1, 2**53 + 1],
        "struct": {"x": None, "y": "é", "t": "2024-05-01T12:30:00.250000+00:00"},
        "price": 12.5,
        "nothing": None,
        "geometry": {"type": "Point", "coordinates": [0.1, 1e-7]},
    }
    assert {key for key, value in second.items() if value is not None} == {"big", "s", "price"}


def test_csv_writes_every_type(folder: Path) -> None:
    path = folder / "all.csv"
    write(path, every_type(), geometry_column="geometry")
    with path.open(newline="", encoding="utf-8") as file:
        first, second = list(csv.DictReader(file, strict=True))
    assert first["n"] == str(2**53 + 1)
    assert first["big"] == str(2**64 - 1)
    assert first["s"] == 'Zürich, "東京"\n'
    assert first["when"] == "2024-05-01T12:30:00.250Z"
    assert first["local"] == "2024-05-01T12:30:00.250000"
    assert first["day"] == "2024-05-01"
    assert first["raw"] == "00ff"
    assert json.loads(first["list"]) == [1, 2**53 + 1]
    assert json.loads(first["struct"])["y"] == "é"
    assert first["price"] == "12.50"
    assert shapely.from_wkt(first["geometry"]) == shapely.Point(0.1, 1e-7)
    assert {key for key, value in second.items() if value} == {"big", "f", "price"}


def test_plain_csv_has_no_quotes(folder: Path) -> None:
    path = folder / "pairs.csv"
    write(path, pa.table({"event": [1, 2], "subscription": ["a", "b"]}))
    assert path.read_text() == "event,subscription\n1,a\n2,b\n"


def test_quotes_do_not_depend_on_other_rows_of_a_csv(folder: Path) -> None:
    path = folder / "pairs.csv"
    tables = [
        pa.table({"event": ["e0", "e1"], "name": ["plain", None]}),
        pa.table({"event": ["e2", "e,3"], "name": ["", 'say "hi"']}),
        pa.table({"event": ["e4", "e5"], "name": pa.array([None, "two\nlines"])}),
    ]
    write(path, *tables)
    assert path.read_text() == (
        'event,name\ne0,plain\ne1,\ne2,""\n"e,3","say ""hi"""\ne4,\ne5,"two\nlines"\n'
    )


@given(
    st.lists(
        st.tuples(
            st.none() | st.text('a",\r\n é', max_size=4),
            st.none() | st.floats(),
            st.none() | st.integers(-(2**63), 2**63 - 1),
        ),
        max_size=6,
    )
)
def test_csv_is_read_back_by_others(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]
) -> None:
    schema = pa.schema([("s", pa.string()), ("f", pa.float64()), ("n", pa.int64())])
    columns = [pa.array([row[i] for row in rows], schema.types[i]) for i in range(3)]
    table = pa.table(columns, schema=schema)
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    write(path, pa.concat_tables([table.slice(0, 2), table.slice(2)]))
    with path.open(newline="", encoding="utf-8") as file:
        back = list(csv.reader(file, strict=True))[1:]
    assert len(back) == len(rows)
    for (text, real, whole), cells in zip(rows, back, strict=True):
        assert cells[0] == (text or "")
        assert cells[1] == "" if real is None else repr(float(cells[1])) == repr(real)
        assert cells[2] == ("" if whole is None else str(whole))


def test_a_header_that_needs_quotes_gets_them(folder: Path) -> None:
    path = folder / "odd.csv"
    write(path, pa.table({"a,b": [1], 'say "hi"': [2]}))
    assert path.read_text().splitlines()[0] == '"a,b","say ""hi"""'


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".geoparquet"])
def test_coordinates_are_written_exactly(folder: Path, suffix: str) -> None:
    seeded = np.random.default_rng(7)
    bits = seeded.integers(0, 2**64, size=20_000, dtype=np.uint64).view(np.float64)
    usual = seeded.normal(size=20_000) * 10.0 ** seeded.integers(-8, 9, size=20_000)
    values = np.concatenate([bits[np.isfinite(bits)], usual])
    points = values[: len(values) // 2 * 2].reshape(-1, 2)
    table = pa.table({"geometry": shapely.to_wkb(shapely.points(points))})
    path = folder / f"points{suffix}"
    write(path, table, geometry_column="geometry")
    if suffix == ".csv":
        with path.open(newline="") as file:
            back = shapely.from_wkt([row["geometry"] for row in csv.DictReader(file)])
    elif suffix == ".jsonl":
        shapes = [json.loads(line)["geometry"] for line in path.read_text().splitlines()]
        back = shapely.points([shape["coordinates"] for shape in shapes])
    else:
        back = geopandas.read_parquet(path).geometry.to_numpy()
    assert np.array_equal(shapely.get_coordinates(back), points)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_dictionaries_are_accepted_whichever_way_the_schema_has_it(
    folder: Path, suffix: str
) -> None:
    plain = pa.array(["POINT (0 0)", "POINT (1 1)", "POINT (0 0)"])
    options = {"geometry_column": "g"} if suffix == ".geoparquet" else {}
    for kind in (pa.string(), pa.dictionary(pa.int32(), pa.string())):
        schema = pa.schema([pa.field("s", kind), pa.field("g", kind)])
        path = folder / f"d{suffix}"
        with open_output(path, schema, **options) as output:
            encoded = plain.dictionary_encode()
            output.write(pa.table({"s": encoded, "g": encoded}))
            other = pa.array(["POINT (1 1)"]).dictionary_encode()
            output.write(pa.table({"s": other, "g": other}))
        if suffix in (".parquet", ".geoparquet"):
            assert pq.read_table(path).column("s").to_pylist() == [
                *plain.to_pylist(),
                "POINT (1 1)",
            ]
        else:
            assert path.read_text().count("POINT (1 1)") == 4


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("fault", [KeyboardInterrupt, ValueError, MemoryError])
def test_an_exception_leaves_the_old_file_and_nothing_else(
    folder: Path, suffix: str, fault: type[BaseException]
) -> None:
    path = folder / f"pairs{suffix}"
    path.write_text("the old file")

    def interrupted() -> None:
        with open_output(path, SCHEMA, geometry_column="geometry") as output:
            output.write(rows_of(1, 2, 3))
            assert len(list(folder.iterdir())) == 2
            raise fault

    with pytest.raises(fault):
        interrupted()
    assert path.read_text() == "the old file"
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_appears_at_the_path_before_the_end(folder: Path, suffix: str) -> None:
    path = folder / f"pairs{suffix}"
    with open_output(path, SCHEMA, geometry_column="geometry") as output:
        output.write(rows_of(1))
        assert not path.exists()
    assert path.exists()


def test_a_failure_at_the_very_end_leaves_the_old_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "pairs.csv"
    path.write_text("the old file")

    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(path, rows_of(1), geometry_column="geometry")
    assert path.read_text() == "the old file"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_the_old_file(
    folder: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / f"pairs{suffix}"
    path.write_text("the old file")

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(Unavailable, match=r"cannot be written: .*No space left"):
        write(path, rows_of(1), geometry_column="geometry")
    assert path.read_text() == "the old file"


def test_an_output_replaces_the_file_and_follows_a_link(folder: Path) -> None:
    target = folder / "real.csv"
    target.write_text("the old file")
    link = folder / "link.csv"
    link.symlink_to(target)
    write(link, pa.table({"n": [1]}))
    assert link.is_symlink()
    assert target.read_text() == "n\n1\n"


def test_an_output_has_the_permissions_of_an_ordinary_file(folder: Path) -> None:
    (folder / "ordinary").touch()
    write(folder / "n.csv", pa.table({"n": [1]}))
    assert (folder / "n.csv").stat().st_mode == (folder / "ordinary").stat().st_mode


def test_an_unknown_suffix_is_refused_before_anything_is_written(folder: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"pairs\.xlsx: unknown suffix; known suffixes: \.parquet, "
    ):
        open_output(folder / "pairs.xlsx", SCHEMA)
    assert list(folder.iterdir()) == []


def test_a_missing_folder_is_refused_at_open(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no folder"):
        open_output(folder / "nowhere" / "pairs.csv", SCHEMA)


def test_a_folder_at_the_path_is_refused_at_open(folder: Path) -> None:
    (folder / "pairs.csv").mkdir()
    with pytest.raises(InvalidInput, match="is a folder"):
        open_output(folder / "pairs.csv", SCHEMA)


def test_a_folder_that_cannot_be_written_to_is_refused_at_open(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(Unavailable, match="cannot be written to"):
        open_output(folder / "pairs.csv", SCHEMA)


def test_a_file_that_cannot_be_made_is_refused(folder: Path) -> None:
    output = open_output(folder / f"{'x' * 300}.csv", SCHEMA)
    with pytest.raises(InvalidInput, match="cannot be written"), output:
        pass


def test_an_unknown_geometry_column_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match='no column "shape"'):
        open_output(folder / "pairs.csv", SCHEMA, geometry_column="shape")


@pytest.mark.parametrize("suffix", [".geoparquet", ".csv", ".jsonl"])
def test_a_geometry_that_cannot_be_read_is_refused_with_its_row(folder: Path, suffix: str) -> None:
    broken = pa.record_batch([pa.array([7, 8]), pa.array([None, b"\x01\x02"])], schema=SCHEMA)
    with pytest.raises(InvalidInput, match="row 3 has no readable geometry"):
        write(folder / f"x{suffix}", rows_of(1, 2), broken, geometry_column="geometry")
    assert list(folder.iterdir()) == []


def test_a_curve_is_refused_with_its_row(folder: Path) -> None:
    curve = bytes.fromhex("010800000003000000" + "00" * 48)
    broken = pa.record_batch([pa.array([7]), pa.array([curve])], schema=SCHEMA)
    with pytest.raises(InvalidInput, match="row 0 has no readable geometry: Nonlinear"):
        write(folder / "x.geoparquet", broken, geometry_column="geometry")


def test_a_file_with_infinite_coordinates_states_no_box(folder: Path) -> None:
    path = folder / "far.geoparquet"
    texts = [pa.table({"shape": [text]}) for text in ("POINT (1 2)", "LINESTRING (0 0, 1 inf)")]
    write(path, *texts, geometry_column="shape")
    geo = json.loads((pq.read_metadata(path).metadata or {})[b"geo"], parse_constant=pytest.fail)
    assert "bbox" not in geo["columns"]["shape"]


def test_a_folder_of_geoparquet_is_read_by_geopandas(folder: Path) -> None:
    for number in range(2):
        path = folder / f"{number}.geoparquet"
        write(path, rows_of(number), geometry_column="geometry", crs="EPSG:2154")
    frame = geopandas.read_parquet(folder)
    assert (list(frame["event"]), frame.crs) == ([0, 1], "EPSG:2154")


def test_rows_of_another_type_are_refused(folder: Path) -> None:
    output = open_output(folder / "n.csv", pa.schema([("n", pa.int64())]))
    with pytest.raises(InvalidInput, match="cannot be written"), output:
        output.write(pa.table({"n": ["x"]}))


def test_a_map_is_an_object_in_text_formats(folder: Path) -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.int64()))
    speeds = pa.array([[("bus", [1, 2]), ("tram", None)], None, []], kind)
    table = pa.table({"id": [1, 2, 3], "speeds": speeds})
    write(folder / "x.jsonl", table)
    objects = [{"bus": [1, 2], "tram": None}, None, {}]
    lines = (folder / "x.jsonl").read_text().splitlines()
    assert [json.loads(line)["speeds"] for line in lines] == objects
    write(folder / "x.csv", table)
    with (folder / "x.csv").open(newline="") as file:
        cells = [row["speeds"] for row in csv.DictReader(file)]
    assert [json.loads(cell or "null") for cell in cells] == objects


def test_geoparquet_states_every_geometry_column(folder: Path) -> None:
    path = folder / "two.geoparquet"
    shapes = {"a": [shapely.Point(1, 2).wkb, None], "b": [None, shapely.box(0, 0, 1, 1).wkb]}
    write(path, pa.table(shapes), geometry_column="b", more_geometries=["a"], crs="EPSG:2154")
    found = geopandas.read_parquet(path)
    assert found.geometry.name == "b"
    assert found["a"].to_list() == [shapely.Point(1, 2), None]
    assert found.set_geometry("a").crs == found.crs == "EPSG:2154"
    geo = json.loads(pq.read_metadata(path).metadata[b"geo"])
    assert {name: column["geometry_types"] for name, column in geo["columns"].items()} == {
        "b": ["Polygon"],
        "a": ["Point"],
    }
    assert geo["columns"]["a"]["bbox"] == [1, 2, 1, 2]
