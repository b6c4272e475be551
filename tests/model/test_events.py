"""Events: mappings, Features and CloudEvents, their attributes and their geometries."""

from collections import ChainMap
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import InvalidInput
from contrada.model.event import Event, Names, read_event

POINT = {"type": "Point", "coordinates": [1, 2]}
BOW_TIE = "POLYGON((0 0,2 2,2 0,0 2,0 0))"


def feature(**members: Any) -> dict[str, Any]:
    return {"type": "Feature", "properties": {"wind": 5}, "geometry": POINT, **members}


# Reading


@pytest.mark.parametrize("wrap", [dict, MappingProxyType, ChainMap])
def test_a_mapping_gives_its_attributes(wrap: Any) -> None:
    event = read_event(wrap({"wind": 5, "area": "POINT(1 2)"}))
    assert event.value("wind") == 5
    assert event.value("rain") is None
    assert event.geometry("area") == shapely.Point(1, 2)
    assert event.id is None


def test_an_event_stays_itself() -> None:
    event = Event({"wind": 5})
    assert read_event(event) is event


def test_a_feature_gives_its_properties_its_geometry_and_its_id() -> None:
    event = read_event(feature(id="f-1"))
    assert event.value("wind") == 5
    assert event.geometry("geometry") == shapely.Point(1, 2)
    assert event.id == "f-1"
    assert event.value("id") == "f-1"
    assert event.value("type") is None
    assert event.value("properties") is None


@pytest.mark.parametrize("id", ["", 0, 7, "x"])
def test_any_id_that_is_there_counts(id: str | int) -> None:
    assert read_event(feature(id=id)).id == id
    assert read_event(feature(id=id)).value("id") == id


def test_a_property_named_id_counts_where_the_feature_itself_has_none() -> None:
    event = read_event(feature(id="f-1", properties={"id": "p-1"}))
    assert event.id == event.value("id") == "f-1"
    event = read_event(feature(properties={"id": "p-1"}))
    assert event.id is None
    assert event.value("id") == "p-1"


@pytest.mark.parametrize("properties", [None, {}])
def test_a_feature_may_have_no_properties(properties: Any) -> None:
    event = read_event(feature(properties=properties))
    assert event.value("wind") is None
    assert event.geometry("geometry") == shapely.Point(1, 2)


def test_a_feature_may_have_no_geometry() -> None:
    assert read_event(feature(geometry=None)).geometry("geometry") is None
    assert read_event({"type": "Feature", "properties": {"wind": 5}}).value("wind") == 5
    assert read_event({"type": "Feature", "geometry": POINT}).geometry("geometry") is not None


def test_the_geometry_of_a_feature_goes_before_a_property_of_that_name() -> None:
    event = read_event(feature(properties={"geometry": "POINT(9 9)"}))
    assert event.geometry("geometry") == shapely.Point(1, 2)


@pytest.mark.parametrize("properties", [[], [1], "x", 5, False])
def test_properties_must_be_an_object(properties: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^row 3: properties must be an object, not "):
        read_event(feature(properties=properties), place="row 3")


@pytest.mark.parametrize(
    "type_", ["feature", "Point", None, ["Feature"], np.array([1, 2]), pandas.NA]
)
def test_a_mapping_of_another_type_is_just_a_mapping(type_: Any) -> None:
    event = read_event({"type": type_, "properties": {"wind": 5}, "geometry": POINT})
    assert event.value("wind") is None
    assert event.value("properties.wind") == 5


def test_an_attribute_named_type_does_not_make_a_feature() -> None:
    assert read_event({"type": "Feature", "wind": 5}).value("wind") == 5


def test_a_cloud_event_gives_the_feature_that_it_carries() -> None:
    cloud = {"specversion": "1.0", "id": "c-1", "source": "/x", "type": "t", "data": feature()}
    event = read_event(cloud)
    assert event.value("wind") == 5
    assert event.geometry("geometry") == shapely.Point(1, 2)
    assert event.id == "c-1"
    assert read_event({**cloud, "data": feature(id="f-1")}).id == "f-1"
    assert read_event({**cloud, "data": {"wind": 6}}).value("wind") == 6


@pytest.mark.parametrize("data", [None, "text", [1], 5])
def test_without_a_type_and_an_object_as_data_it_is_no_cloud_event(data: Any) -> None:
    event = read_event({"specversion": "1.0", "id": "c-1", "source": "/x", "data": data})
    assert event.value("source") == "/x"


@pytest.mark.parametrize("depth", [2, 100_000])
def test_a_cloud_event_within_another_is_refused(depth: int) -> None:
    event: dict[str, Any] = {"a": 1}
    for _ in range(depth):
        event = {"specversion": "1.0", "id": "c", "source": "/x", "type": "t", "data": event}
    with pytest.raises(InvalidInput, match=r"row 3: the CloudEvent carries another one: .*inner"):
        read_event(event, place="row 3")
    event["data"] = event
    with pytest.raises(InvalidInput, match="carries another one"):
        read_event(event)


CLOUD = {"specversion": "1.0", "id": "c-1", "source": "/x", "type": "t"}


def test_a_cloud_event_may_carry_its_data_in_base64() -> None:
    event = read_event({**CLOUD, "data": None, "data_base64": "eyJ4IjoxfQ=="})
    assert (event.id, event.value("x"), event.value("source")) == ("c-1", 1, None)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "carries no data"),
        ({"data": None}, "carries no data"),
        ({"data": [1]}, r"data is not an object: \[1\]"),
        ({"data": "text"}, "data is not an object: 'text'"),
        ({"data": 5}, "data is not an object: 5"),
        ({"data_base64": "***"}, r'"data_base64" is not base64: .*\*\*\*'),
        ({"data_base64": "WzFd"}, r"data is not an object: \[1\]"),
        ({"data_base64": "e30=", "datacontenttype": "image/png"}, "is not JSON but .*image/png"),
        ({"data": {"x": 1}, "data_base64": "e30="}, "are both there"),
        ({"data": {"x": 1}, "specversion": "0.3"}, '"specversion" is .*0.3.*: only "1.0" is read'),
        ({"data_base64": "e30=", "specversion": 1.0}, '"specversion" is 1.0: only "1.0" is read'),
    ],
)
def test_a_cloud_event_that_carries_no_event_is_refused(
    members: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=f"^row 3(:| is a) .*{message}"):
        read_event({**CLOUD, **members}, place="row 3")


@pytest.mark.parametrize("others", [{"x": 1}, {"source": "/s"}, {"type": "t", "data": [1]}])
def test_an_attribute_named_specversion_does_not_make_a_cloud_event(others: dict[str, Any]) -> None:
    event = read_event({"specversion": "3.1", **others})
    assert event.value("specversion") == "3.1"


@pytest.mark.parametrize("event", [None, 5, "POINT(1 2)", [], [("a", 1)], shapely.Point(1, 2), {1}])
def test_what_is_no_mapping_is_refused(event: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^row 3 must be a mapping, not \w+: "):
        read_event(event, place="row 3")


# Attributes


@pytest.mark.parametrize(
    ("attributes", "name", "value"),
    [
        ({"a.b.c": 1}, "a.b.c", 1),
        ({"a": {"b": {"c": 2}}}, "a.b.c", 2),
        ({"a.b": {"c": 3}}, "a.b.c", 3),
        ({"a": {"b.c": 4}}, "a.b.c", 4),
        ({"a.b.c": 1, "a": {"b": {"c": 2}}}, "a.b.c", 1),
        ({"a": {"b": {"c": 2}, "b.c": 4}}, "a.b.c", 4),
        ({"a": {"x": 1}, "a.b": {"c": 3}}, "a.b.c", 3),
        ({"a": 5, "a.b": {"c": 3}}, "a.b.c", 3),
        ({"a": {"b": 5}}, "a.b.c", None),
        ({"a": [{"b": 1}]}, "a.b", None),
        ({"a": {"b": 1}}, "a", {"b": 1}),
        ({"a": {"b": 1}}, "b", None),
        ({}, "a.b.c", None),
        ({".": 1}, ".", 1),
        ({"": {"": 2}}, ".", 2),
        ({"a": {"": 3}}, "a.", 3),
        ({"größe": 6}, "größe", 6),
    ],
)
def test_a_dotted_name_is_a_key_first_and_then_a_path(
    attributes: dict[str, Any], name: str, value: Any
) -> None:
    assert Event(attributes).value(name) == value


def test_a_geometry_may_lie_on_a_path() -> None:
    assert Event({"site": {"area": POINT}}).geometry("site.area") == shapely.Point(1, 2)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(2**53 + 1), 2**53 + 1),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
    ],
)
def test_numpy_scalars_become_values_of_python(value: Any, expected: Any) -> None:
    found = Event({"a": value}).value("a")
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize("value", [np.datetime64(1, "ns"), np.timedelta64(1, "ns")])
def test_numpy_times_do_not_become_integers(value: Any) -> None:
    assert Event({"a": value}).value("a") is value


# Geometries


@pytest.mark.parametrize(
    "value", [None, 5, "north", [1, 2], {}, "POINT EMPTY", shapely.Polygon(), {"type": "Feature"}]
)
def test_a_value_that_is_empty_or_no_geometry_is_none(value: Any) -> None:
    assert Event({"a": value}).geometry("a") is None
    assert Event({}).geometry("a") is None


BEYOND_REPAIR = [
    ("POINT(1", "cannot read the geometry: ParseException: Expected number"),
    (b"\x01", "cannot read the geometry: ParseException: "),
    ({"type": "Point"}, "cannot read the GeoJSON geometry: ParseException: "),
    ("LINESTRING(0 0,1 nan)", r"non-finite coordinate \(1.0, nan\) at vertex 1$"),
    ("CIRCULARSTRING(0 0,1 1,2 0)", "curves are not supported$"),
]


@pytest.mark.parametrize(("value", "message"), BEYOND_REPAIR)
@pytest.mark.parametrize("repair", [False, True])
def test_a_geometry_beyond_repair_is_refused_by_name(
    value: Any, message: str, repair: bool
) -> None:
    event = Event({"area": value}, place="row 3", repair=repair)
    with pytest.raises(InvalidInput, match=f"^row 3, attribute 'area': {message}"):
        event.geometry("area")


def test_an_invalid_geometry_is_refused_by_name_and_place() -> None:
    event = read_event({"area": BOW_TIE}, place="row 3")
    message = (
        r"^row 3, attribute 'area': invalid Polygon: self-intersection at \(1, 1\); repair=True"
    )
    with pytest.raises(InvalidInput, match=message):
        event.geometry("area")


def test_an_invalid_geometry_can_be_mended() -> None:
    mended = Event({"area": BOW_TIE}, repair=True).geometry("area")
    assert mended is not None
    assert mended.is_valid
    assert mended.equals(shapely.from_wkt("MULTIPOLYGON(((0 0,1 1,0 2,0 0)),((2 0,2 2,1 1,2 0)))"))


def test_a_geometry_is_read_once() -> None:
    event = Event({"area": "POINT(1 2)"})
    assert event.geometry("area") is event.geometry("area")
    given = shapely.Point(3, 4)
    assert Event({"area": BOW_TIE}, geometries={"area": given}).geometry("area") is given
    assert Event({"area": BOW_TIE}, geometries={"area": None}).geometry("area") is None


# Names

parts = st.sampled_from(["a", "b", "a.b", "", "."])
names = st.lists(parts, min_size=1, max_size=3).map(".".join)
nested = st.recursive(
    st.none() | st.integers(0, 1),
    lambda inner: st.dictionaries(parts | st.integers(0, 1), inner, max_size=3),
)


@given(st.dictionaries(parts, nested, max_size=3), st.sets(names, max_size=12))
def test_all_names_are_found_under_which_an_event_has_a_value(
    attributes: dict[str, Any], wanted: set[str]
) -> None:
    event = Event(attributes)
    found = event.find_names(Names(wanted))
    assert len(found) == len(set(found))
    assert {name for name in wanted if event.value(name) is not None} <= set(found) <= wanted
