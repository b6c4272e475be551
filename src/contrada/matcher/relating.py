"""`relate`: which of the eight Egenhofer relations holds between two regions."""

from typing import Any

import shapely
from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput
from contrada.limits import PAIR_BOXES_MAX, PAIR_CONTACTS_MAX
from contrada.model.crossings import are_entangled
from contrada.model.geometry import Fault, as_array, find_faults, is_area, read_geometry
from contrada.model.relation import Relation, egenhofer
from contrada.showing import brief, brief_text


def relate(a: Any, b: Any) -> Relation:
    """Return which of the eight Egenhofer relations region a has to region b.

    Of the OGC relations, which `Matcher.add` takes by name, several can hold at once; of these
    exactly one holds for each pair of regions, with or without holes and of any number of parts. A
    region is a polygon or multipolygon: a Shapely geometry, WKB, WKT or GeoJSON.

    Raises `InvalidInput` for what is not a valid region, and for two regions whose edges meet too
    often to decide (the limits `PAIR_CONTACTS_MAX`,
    `PAIR_BOXES_MAX` and `PAIR_PARTS_MAX`).

    >>> contrada.relate("POLYGON((0 0, 4 0, 4 4, 0 0))", "POLYGON((0 0, 9 0, 9 9, 0 0))")
    <Relation.COVERED_BY: 'coveredBy'>
    """
    regions = [_read_region(value, name) for value, name in ((a, "a"), (b, "b"))]
    if are_entangled(as_array(regions[:1]), as_array(regions[1:]))[0]:
        raise InvalidInput(
            "the edges of a and b meet, or come near each other, too often to tell their relation: "
            f"more than {PAIR_CONTACTS_MAX:,} or {PAIR_BOXES_MAX:,} times (PAIR_CONTACTS_MAX, "
            "PAIR_BOXES_MAX), or they have too many parts (PAIR_PARTS_MAX)"
        )
    return egenhofer(str(shapely.relate(*regions)))


def _read_region(value: Any, name: str) -> BaseGeometry:
    region = read_geometry(value)
    if region is None or isinstance(region, Fault):
        reason = "not a geometry" if region is None else region.message
        raise InvalidInput(f"{name}: {reason}: {brief(value)}")
    fault = find_faults(as_array([region])).get(0)
    if fault is not None:
        raise InvalidInput(f"{name}: {fault.message}")
    if region.is_empty or not is_area(region):
        raise InvalidInput(
            f"{name} must be a region (polygon or multipolygon): {brief_text(region, 80)}"
        )
    return region
