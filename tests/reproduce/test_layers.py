"""Layers are read whatever writes them, and a broken one is refused with its name."""

from pathlib import Path

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.errors import InvalidInput
from contrada.reproduce.real_layers import LayerFile, check_layers, read_regions

SQUARES = [shapely.box(x, 0, x + 1, 1) for x in range(4)]


def write(folder: Path, geometries: object, **columns: object) -> LayerFile:
    frame = geopandas.GeoDataFrame(columns, geometry=geometries, crs="EPSG:4326")
    frame.to_parquet(folder / "some.parquet")
    return LayerFile("some")


def write_table(folder: Path, **columns: object) -> LayerFile:
    pq.write_table(pa.table(columns), folder / "some.parquet")
    return LayerFile("some")


def test_a_folder_without_layers_is_refused_with_all_their_names(tmp_path: Path) -> None:
    write(tmp_path, SQUARES)
    with pytest.raises(InvalidInput, match=r"there is no a\.parquet, no b\.parquet$"):
        check_layers(tmp_path, ["a", "some", "b"])


def test_polygons_come_as_regions_of_the_unit_square(tmp_path: Path) -> None:
    regions = read_regions(tmp_path, write(tmp_path, SQUARES))
    assert len(regions) == 4
    assert shapely.total_bounds(regions).tolist() == [0, 0, 1, 1]


def test_holes_are_filled_and_parts_are_regions_of_their_own(tmp_path: Path) -> None:
    pierced = shapely.box(0, 0, 9, 9) - shapely.box(1, 1, 2, 2)
    pair = shapely.union_all([shapely.box(10, 0, 11, 1), shapely.box(12, 0, 13, 1)])
    regions = read_regions(tmp_path, write(tmp_path, [pierced, pair]))
    assert len(regions) == 3
    assert (shapely.get_num_interior_rings(regions) == 0).all()


def test_wkt_is_read_as_well(tmp_path: Path) -> None:
    layer = write_table(tmp_path, geometry=shapely.to_wkt(SQUARES).tolist())
    assert len(read_regions(tmp_path, layer)) == 4


def test_only_rows_with_a_value_are_taken_where_there_is_the_column(tmp_path: Path) -> None:
    write(tmp_path, SQUARES, country=["a", "b", "a", None])
    assert len(read_regions(tmp_path, LayerFile("some", ("country", "a")))) == 2
    assert len(read_regions(tmp_path, LayerFile("some", ("state", "a")))) == 4


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some.parquet").write_text("nothing of the kind")
    with pytest.raises(InvalidInput, match=r"some\.parquet: not a Parquet file"):
        read_regions(tmp_path, LayerFile("some"))


def test_a_file_without_geometries_is_refused_with_its_columns(tmp_path: Path) -> None:
    layer = write_table(tmp_path, name=["a"], size=[1])
    with pytest.raises(InvalidInput, match=r"no column holds geometries; there are: name, size"):
        read_regions(tmp_path, layer)


def test_a_column_that_holds_no_geometries_is_refused_with_the_row(tmp_path: Path) -> None:
    layer = write_table(tmp_path, geometry=[shapely.to_wkb(SQUARES[0]), b"no geometry"])
    with pytest.raises(InvalidInput, match=r"some\.parquet: row 1 has no readable geometry"):
        read_regions(tmp_path, layer)


@pytest.mark.parametrize(
    ("geometries", "said"),
    [
        ([], "of its 0 geometries 0"),
        ([shapely.Point(1, 1), shapely.Point(2, 2)], "of its 2 geometries 0"),
        ([None, shapely.Polygon()], "of its 2 geometries 0"),
        ([SQUARES[0], shapely.Point(2, 2)], "of its 2 geometries 1"),
    ],
    ids=["empty", "points", "nothing", "one polygon"],
)
def test_a_layer_of_less_than_two_polygons_is_refused(
    tmp_path: Path, geometries: list[object], said: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"at least two polygons are needed, and {said}"):
        read_regions(tmp_path, write(tmp_path, geometries))
