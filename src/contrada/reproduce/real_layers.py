"""Layers of real polygons, from a folder of GeoParquet files, for any paper's experiments."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from contrada.arrays import Geometries
from contrada.errors import InvalidInput
from contrada.files import read_rows
from contrada.files.geometry_text import decode_geometries
from contrada.reproduce.scenarios import Regions, into_unit_square


@dataclass(frozen=True, slots=True)
class LayerFile:
    """A file `name`.parquet; of its rows those with a value in a column, where it has that one."""

    name: str
    only: tuple[str, str] | None = None


def check_layers(folder: Path, names: Sequence[str]) -> None:
    """Refuse a folder without some of the layers; name all that are missing."""
    missing = [f"{name}.parquet" for name in names if not (folder / f"{name}.parquet").exists()]
    if missing:
        raise InvalidInput(f"{folder}: there is no {', no '.join(missing)}")


def read_regions(folder: Path, layer: LayerFile) -> Regions:
    """Read the polygons of a layer into the unit square: parts apart, holes filled."""
    path = folder / f"{layer.name}.parquet"
    geometries = _read_geometries(path, layer)
    regions = into_unit_square(geometries)
    if len(regions) < 2:
        raise InvalidInput(
            f"{path}: at least two polygons are needed, and of its {len(geometries):,} geometries "
            f"{len(regions)} can be used"
        )
    return regions


def _read_geometries(path: Path, layer: LayerFile) -> Geometries:
    rows = read_rows(path)
    if not rows.geometry_columns:
        raise InvalidInput(
            f"{path}: no column holds geometries; there are: {', '.join(rows.schema.names)}"
        )
    column = rows.geometry_columns[0]
    wanted = [column]
    if layer.only is not None and layer.only[0] in rows.schema.names:
        wanted.append(layer.only[0])
    found: list[Geometries] = [np.zeros(0, object)]
    row = 0
    for batch in rows.narrowed(wanted).batches():
        table = pa.table(batch)
        geometries = decode_geometries(table[column], row, str(path))
        row += len(geometries)
        if layer.only is not None and len(wanted) > 1:
            values = table[wanted[1]].to_pylist()
            geometries = geometries[[value == layer.only[1] for value in values]]
        found.append(geometries)
    return np.concatenate(found)
