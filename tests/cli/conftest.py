"""A small city in every format: zones that want positions, and the pairs that must come out."""

from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

ZONES, POSITIONS = 12, 200
FIRST_ID = 2**60  # no float keeps the ids that follow


@pytest.fixture(autouse=True)
def _patient(patience: None) -> None:
    """Commands are patient in all tests of this room."""


def make_zones() -> geopandas.GeoDataFrame:
    rng = np.random.default_rng(7)
    west, south = rng.uniform(0, 8, (2, ZONES))
    wheres = ["speed > 50", None, "kind = 'bus' OR speed <= 20"]
    columns = {
        "id": [f"zone-{n:02}" for n in range(ZONES)],
        "where": [wheres[n % 3] for n in range(ZONES)],
    }
    shapes = shapely.box(west, south, west + 2, south + 2)
    return geopandas.GeoDataFrame(columns, geometry=shapes, crs="EPSG:4326")


def make_positions() -> geopandas.GeoDataFrame:
    rng = np.random.default_rng(8)
    columns = {
        "id": np.arange(FIRST_ID + 1, FIRST_ID + 1 + POSITIONS),
        "speed": rng.integers(0, 400, POSITIONS) / 4,
        "kind": rng.choice(["bus", "tram"], POSITIONS),
    }
    shapes = shapely.points(rng.uniform(0, 10, (POSITIONS, 2)))
    return geopandas.GeoDataFrame(columns, geometry=shapes, crs="EPSG:4326")


@pytest.fixture(scope="session")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `zones` (subscriptions) and `positions` (events), in every format."""
    folder = tmp_path_factory.mktemp("city")
    for name, frame in (("zones", make_zones()), ("positions", make_positions())):
        frame.to_parquet(folder / f"{name}.parquet")
        frame.to_parquet(folder / f"{name}.geoparquet")
        frame.to_file(folder / f"{name}.geojson", driver="GeoJSON", COORDINATE_PRECISION=17)
        frame.to_file(folder / f"{name}.ndjson", driver="GeoJSONSeq", COORDINATE_PRECISION=17)
        frame.to_file(folder / f"{name}.fgb", driver="FlatGeobuf")
        frame.to_file(folder / f"{name}.gpkg", driver="GPKG", layer=name)
        sheet = pd.DataFrame(frame.drop(columns="geometry"))
        sheet["wkt"] = shapely.to_wkt(frame.geometry.to_numpy(), rounding_precision=-1)
        sheet.to_csv(folder / f"{name}.csv", index=False)
    positions = make_positions()
    sheet = pd.DataFrame(positions.drop(columns="geometry"))
    sheet["lon"], sheet["lat"] = positions.geometry.x, positions.geometry.y
    sheet.to_csv(folder / "positions-lonlat.csv", index=False, float_format="%.17g")
    return folder


@pytest.fixture(scope="session")
def city_pairs() -> list[tuple[int, str]]:
    """All pairs of event and subscription, found without Contrada."""
    zones, positions = make_zones(), make_positions()
    conditions = {
        "speed > 50": positions.speed > 50,
        None: positions.speed == positions.speed,
        "kind = 'bus' OR speed <= 20": (positions.kind == "bus") | (positions.speed <= 20),
    }
    pairs = []
    for zone in zones.itertuples():
        where = zone.where if isinstance(zone.where, str) else None
        found = shapely.intersects(zone.geometry, positions.geometry.to_numpy())
        pairs += [(int(id_), zone.id) for id_ in positions.id[found & conditions[where]]]
    assert 50 < len(pairs) < ZONES * POSITIONS / 4
    return sorted(pairs)
