"""What is wrong with a geometry is told in words, wherever a broker reads one."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contrada.broker import Broker
from contrada.broker.geojson_words import find_geojson_fault
from contrada.broker.incoming_events import read_body
from contrada.errors import InvalidInput

RING = [[0, 0], [1, 1], [1, 0], [0, 0]]


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        ({"type": "Point"}, "a Point has an array 'coordinates', not nothing"),
        ({"type": "Point", "coordinates": {}}, "a Point has an array 'coordinates', not {}"),
        ({"type": "Point", "coordinates": [1, "b"]}, "coordinates[1]: a number is wanted, not 'b'"),
        ({"type": "Point", "coordinates": [[1, 2]]}, "coordinates[0]: a number is wanted"),
        ({"type": "Point", "coordinates": [1]}, "coordinates: a position has two numbers, not one"),
        ({"type": "MultiPoint", "coordinates": [1, 2]}, "coordinates[0]: an array is wanted"),
        ({"type": "LineString", "coordinates": [[0, 0]]}, "coordinates: a line has two positions"),
        ({"type": "Polygon", "coordinates": [RING[:3]]}, "coordinates[0]: a ring has four"),
        ({"type": "Polygon", "coordinates": [[*RING[:3], [5, 5]]]}, "coordinates[0]: a ring has"),
        ({"type": "MultiPolygon", "coordinates": [[RING], [RING[:2]]]}, "coordinates[1][0]: a "),
        ({"type": "GeometryCollection"}, "a GeometryCollection has an array 'geometries'"),
        (
            {"type": "GeometryCollection", "geometries": [{"type": "Point"}]},
            "geometries[0]: a Point has an array 'coordinates'",
        ),
        ({"type": "GeometryCollection", "geometries": [5]}, "geometries[0]: a geometry is a JSON"),
    ],
)
def test_a_geometry_that_is_wrong_is_told_of_in_words(
    tmp_path: Path, geometry: dict[str, Any], words: str
) -> None:
    feature = {"type": "Feature", "properties": {}, "geometry": geometry}
    (bad,) = read_body(json.dumps(feature).encode(), None, {}, None).errors
    assert bad.detail.startswith("geometry: ")
    assert words in bad.detail
    with closing(Broker.open(tmp_path)) as broker:
        broker.put_subscription("all", {"geometry": {"type": "Point", "coordinates": [1, 2]}})
        broker.put_subscriber("last", {}).result()
        for ask in (
            lambda: broker.put_subscription("a", {"geometry": geometry}),
            lambda: broker.match({"event": feature}),
        ):
            with pytest.raises(InvalidInput) as refused:
                ask()
            assert words in refused.value.message
            assert "Exception" not in refused.value.message


def test_a_geometry_of_no_type_is_told_of() -> None:
    words = "there is no geometry of the type 'Circle'"
    assert find_geojson_fault({"type": "Circle", "coordinates": []}) == words


@pytest.mark.parametrize(
    "geometry",
    [
        {"type": "Point", "coordinates": []},
        {"type": "Point", "coordinates": [1, 2, 3]},
        {"type": "MultiPolygon", "coordinates": [[RING], []]},
        {"type": "GeometryCollection", "geometries": []},
    ],
)
def test_a_form_that_is_right_has_no_fault(geometry: dict[str, Any]) -> None:
    assert find_geojson_fault(geometry) is None
