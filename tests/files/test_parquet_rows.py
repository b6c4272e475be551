"""Parquet in: single files, folders as Spark writes them, real layers, damage."""

from pathlib import Path
from typing import Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.errors import InvalidInput
from contrada.files import Rows, parquet, read_rows

LAYERS = Path(__file__).parents[3] / "shared" / "data"
POINT = shapely.to_wkb(shapely.Point(1, 2))


def column_of(rows: Rows, column: str) -> list[Any]:
    return [value for batch in rows.batches() for value in batch.column(column).to_pylist()]


def test_a_geoparquet_file_states_crs_and_count(tmp_path: Path) -> None:
    path = tmp_path / "cities.parquet"
    frame = geopandas.GeoDataFrame(
        {"name": ["Siena", "Zürich", "東京"], "n": [2**53 + 1, 2**63 - 1, -(2**63)]},
        geometry=geopandas.points_from_xy([11.3, 8.5, 139.7], [43.3, 47.4, 35.7]),
        crs="EPSG:4326",
    )
    frame.to_parquet(path)
    rows = read_rows(path)
    assert rows.name == str(path)
    assert rows.crs == "EPSG:4326"
    assert rows.count == 3
    assert rows.geometry_columns == ("geometry",)
    assert column_of(rows, "name") == ["Siena", "Zürich", "東京"]
    assert column_of(rows, "n") == [2**53 + 1, 2**63 - 1, -(2**63)]
    assert list(shapely.from_wkb(column_of(rows, "geometry"))) == list(frame.geometry)


def test_native_geoparquet_becomes_wkb(tmp_path: Path) -> None:
    path = tmp_path / "native.GeoParquet"
    series = geopandas.GeoSeries.from_wkt(["LINESTRING (0 0, 1 1)", None], crs=3857)
    geopandas.GeoDataFrame(geometry=series).to_parquet(path, geometry_encoding="geoarrow")
    rows = read_rows(path)
    assert rows.crs == "EPSG:3857"
    assert list(shapely.from_wkb(column_of(rows, "geometry"))) == [series[0], None]


def test_batches_are_bounded_whatever_the_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "n.parquet"
    pq.write_table(pa.table({"n": list(range(1000))}), path, row_group_size=300)
    rows = read_rows(path, batch_rows=128)
    assert [batch.num_rows for batch in rows.batches()] == [128] * 7 + [104]
    assert column_of(rows, "n") == list(range(1000))


def test_dictionaries_in_structs_of_several_row_groups_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    kinds = pa.array(["u", "v", None, "u"] * 5).dictionary_encode()
    column = pa.StructArray.from_arrays([kinds], ["kind"])
    pq.write_table(pa.table({"a": column}), path, row_group_size=6)
    assert column_of(read_rows(path), "a") == column.to_pylist()


def test_a_folder_of_part_files_is_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "events.parquet"
    folder.mkdir()
    for part in range(3):
        table = pa.table({"n": [10 * part, 10 * part + 1], "geometry": [POINT, POINT]})
        pq.write_table(table, folder / f"part-0000{part}-abc.c000.snappy.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-00000-abc.c000.snappy.parquet.crc").write_bytes(b"crc")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part-00009.parquet").write_bytes(b"half-written")
    rows = read_rows(folder)
    assert rows.count == 6
    assert column_of(rows, "n") == [0, 1, 10, 11, 20, 21]


def test_folder_names_give_the_columns_of_partition_by(tmp_path: Path) -> None:
    for year, place, n in [("2023", "a%2Fb", 1), ("2024", "__HIVE_DEFAULT_PARTITION__", 2)]:
        folder = tmp_path / f"year={year}" / f"place={place}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"n": [n, n]}), folder / "part-0.parquet")
    rows = read_rows(tmp_path)
    assert rows.schema.names == ["n", "year", "place"]
    assert column_of(rows, "year") == [2023, 2023, 2024, 2024]
    assert column_of(rows, "place") == ["a/b", "a/b", None, None]
    assert column_of(read_rows(tmp_path, columns=["year"]), "year") == [2023, 2023, 2024, 2024]
    assert column_of(read_rows(tmp_path, columns=["n"]), "n") == [1, 1, 2, 2]


def test_folder_names_with_leading_zeros_stay_text(tmp_path: Path) -> None:
    for zone in ("01", "10"):
        (tmp_path / f"zone={zone}").mkdir()
        pq.write_table(pa.table({"n": [1]}), tmp_path / f"zone={zone}" / "part-0.parquet")
    assert column_of(read_rows(tmp_path), "zone") == ["01", "10"]


def test_parts_with_other_columns_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(
        InvalidInput, match=r"b\.parquet does not have the columns of a\.parquet: n: int"
    ):
        read_rows(tmp_path)


def test_parts_in_other_coordinate_systems_are_refused(tmp_path: Path) -> None:
    points = geopandas.GeoDataFrame(geometry=[shapely.Point(1, 2)], crs="EPSG:4326")
    points.to_parquet(tmp_path / "a.parquet")
    points.set_crs("OGC:CRS84", allow_override=True).to_parquet(tmp_path / "b.parquet")
    assert read_rows(tmp_path).count == 2, "the order of axes makes no difference"
    points.to_crs("EPSG:3857").to_parquet(tmp_path / "c.parquet")
    with pytest.raises(InvalidInput, match=r"c\.parquet is in EPSG:3857, a\.parquet in EPSG:4326"):
        read_rows(tmp_path)
    points.set_crs(None, allow_override=True).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(InvalidInput, match=r"c\.parquet is in no stated coordinate system"):
        read_rows(tmp_path)
    both = points.assign(other=points.geometry).set_geometry("other")
    both.to_parquet(tmp_path / "c.parquet")
    points.assign(other=points.to_wkb().geometry).to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(InvalidInput, match=r"c\.parquet has geometries in other, geometry"):
        read_rows(tmp_path)


def test_footers_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"a": [1, 2], "b": [3, 4]}), tmp_path / "a.parquet")
    rows = read_rows(tmp_path / "a.parquet")
    opened: list[Path] = []
    monkeypatch.setattr(parquet, "_read_footers", lambda *_: opened.append(tmp_path))
    assert [b.to_pydict() for b in rows.narrowed(["b"]).batches()] == [{"b": [3, 4]}]
    assert not opened


def test_a_folder_and_a_file_that_state_the_same_column_are_refused(tmp_path: Path) -> None:
    (tmp_path / "n=1").mkdir()
    pq.write_table(pa.table({"n": [1]}), tmp_path / "n=1" / "part-0.parquet")
    with pytest.raises(InvalidInput, match='"n" is both'):
        read_rows(tmp_path)


def test_parts_in_folders_of_other_names_are_refused(tmp_path: Path) -> None:
    for folder in ("a=1", "b=1"):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"n": [1]}), tmp_path / folder / "part-0.parquet")
    with pytest.raises(InvalidInput, match="named differently"):
        read_rows(tmp_path)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"half-written")
    with pytest.raises(InvalidInput, match=r": b\.parquet: not a Parquet file"):
        read_rows(tmp_path)


def test_a_folder_without_parts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no \.parquet file"):
        read_rows(tmp_path)


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"nowhere\.parquet: no such file"):
        read_rows("nowhere.parquet")


def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "roads.odd"
    path.touch()
    with pytest.raises(
        InvalidInput, match=r"roads\.odd: unknown suffix; known suffixes: \.parquet"
    ):
        read_rows(path)


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"id,geometry\n", b"PAR1" + b"\0" * 100 + b"PAR1"]
)
def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"x\.parquet: not a Parquet file"):
        read_rows(path)


def test_damage_in_the_middle_is_refused_with_the_row_it_reached(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(
        pa.table({"n": [f"{n * 7919 % 10007}" for n in range(4000)]}),
        path,
        row_group_size=1000,
        use_dictionary=False,
        compression="zstd",
    )
    start = pq.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 400] = b"\xff" * 400
    path.write_bytes(content)
    rows = read_rows(path, batch_rows=1000)
    with pytest.raises(InvalidInput, match=r"x\.parquet: reading failed after row 2000"):
        list(rows.batches())


def test_an_empty_and_a_one_row_file(tmp_path: Path) -> None:
    for count in (0, 1):
        path = tmp_path / f"{count}.parquet"
        pq.write_table(pa.table({"n": pa.array([7] * count, pa.int64())}), path)
        rows = read_rows(path)
        assert rows.count == count
        assert column_of(rows, "n") == [7] * count


@pytest.mark.parametrize(
    ("layer", "count"),
    [
        ("us_block_groups_2000", 58_733),
        ("adsb_paris_2021", 284_505),
        ("nws_counties", 3_284),
        ("fire_perimeters_2013", 250),
        ("london_streets", 4_524),
        ("ibtracs_storm_fixes", 149_703),
    ],
)
def test_real_layers_have_the_right_counts(layer: str, count: int) -> None:
    path = LAYERS / f"{layer}.parquet"
    if not path.exists():
        pytest.skip("the real layers are not here")
    rows = read_rows(path)
    assert rows.count == count
    assert rows.crs == "EPSG:4326"
    assert rows.geometry_columns == ("geometry",)
    assert sum(batch.num_rows for batch in rows.batches()) == count


def test_rows_narrowed_to_no_column_are_still_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"foo": [1, 2, 3], "bar": ["a", "b", "c"]}), path)
    rows = read_rows(path).narrowed([])
    assert rows.count == 3
    assert sum(batch.num_rows for batch in rows.batches()) == 3


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string()])
def test_a_small_file_of_one_long_value_in_many_rows_is_read_in_small_batches(
    tmp_path: Path, kind: pa.DataType
) -> None:
    path = tmp_path / "x.parquet"
    long = pa.array(["x" * 2**20], kind)
    column = pa.DictionaryArray.from_arrays(pa.array([0, None] * 150, pa.int32()), long)
    pq.write_table(
        pa.table({"n": list(range(300)), "t": column}),
        path,
        compression="zstd",
        dictionary_pagesize_limit=2**30,
        store_schema=False,
    )
    assert path.stat().st_size < 10_000
    rows, n, filled = read_rows(path), [], 0
    for batch in rows.batches():
        assert batch.schema == rows.schema
        assert batch.nbytes < 130 * 2**20
        n += batch.column("n").to_pylist()
        filled += len(batch) - batch.column("t").null_count
    assert (n, filled) == (list(range(300)), 150)
