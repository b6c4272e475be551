"""Coordinate systems: one spelling, and when two are the same."""

import json

import pytest
from pyproj import CRS

from contrada.errors import InvalidInput
from contrada.files import is_same_crs
from contrada.files.crs import spell_crs, to_projjson

LONGITUDE_LATITUDE = [
    "EPSG:4326",
    "OGC:CRS84",
    "urn:ogc:def:crs:OGC:1.3:CRS84",
    "+proj=longlat +datum=WGS84 +no_defs",
    CRS("EPSG:4326").to_json(),
    CRS("OGC:CRS84").to_json(),
    CRS("EPSG:4326").to_wkt(),
]


@pytest.mark.parametrize("a", LONGITUDE_LATITUDE)
@pytest.mark.parametrize("b", LONGITUDE_LATITUDE)
def test_longitude_and_latitude_are_one_system_however_spelt(a: str, b: str) -> None:
    assert is_same_crs(a, b)


@pytest.mark.parametrize("other", ["EPSG:3857", "EPSG:4258", "EPSG:2154", "EPSG:4979"])
def test_other_systems_are_not_the_same(other: str) -> None:
    assert is_same_crs(other, other)
    assert not is_same_crs("EPSG:4326", other)
    assert not is_same_crs(other, "OGC:CRS84")


@pytest.mark.parametrize(
    ("stated", "spelt"),
    [
        (None, None),
        ("", None),
        ("EPSG:3857", "EPSG:3857"),
        ("urn:ogc:def:crs:EPSG::3857", "EPSG:3857"),
        ("urn:ogc:def:crs:OGC:1.3:CRS84", "OGC:CRS84"),
        (CRS("EPSG:2154").to_json_dict(), "EPSG:2154"),
    ],
)
def test_a_system_with_a_code_is_spelt_by_it(stated: object, spelt: str | None) -> None:
    assert spell_crs(stated, "x") == spelt


def test_a_system_without_a_known_code_keeps_its_definition() -> None:
    definition = to_projjson("+proj=laea +lat_0=43 +lon_0=11")
    for identifier in ({}, {"id": {"authority": "OURS", "code": 1}}):
        stated = definition | identifier
        spelt = spell_crs(stated, "x")
        assert spelt is not None
        assert json.loads(spelt) == stated
        assert is_same_crs(spelt, "+proj=laea +lat_0=43 +lon_0=11")


@pytest.mark.parametrize(
    "stated", ["EPSG:99999999", "north of here", {"type": "GeographicCRS"}, 3.5]
)
def test_an_unknown_system_is_refused_with_its_text(stated: object) -> None:
    with pytest.raises(InvalidInput, match="the roads: unknown coordinate system"):
        spell_crs(stated, "the roads")


def test_comparing_with_an_unknown_system_is_refused() -> None:
    with pytest.raises(InvalidInput, match="unknown coordinate system"):
        is_same_crs("EPSG:4326", "north of here")


@pytest.mark.parametrize("stated", [["EPSG:4326"], 4.5, True, b"EPSG:4326", object()])
def test_what_names_no_system_by_its_type_is_refused(stated: object) -> None:
    with pytest.raises(InvalidInput, match="expected text or PROJJSON"):
        spell_crs(stated, "crs")


def test_a_bare_number_is_a_code_of_epsg() -> None:
    assert spell_crs(3857, "crs") == "EPSG:3857"
