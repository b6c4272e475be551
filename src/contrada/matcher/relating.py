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
    """Give the Egenhofer relation of two regions: which one of the eight holds of a to b."""
    regions = [_read_region(value, name) for value, name in ((a, "a"), (b, "b"))]
    if are_entangled(as_array(regions[:1]), as_array(regions[1:]))[0]:
        raise InvalidInput(
            "the edges of a and b meet, or come near each other, too often to tell their relation: "
            f"more than {PAIR_CONTACTS_MAX:,} or {PAIR_BOXES_MAX:,} times (PAIR_CONTACTS_MAX, "
            "PAIR_BOXES_MAX)"
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
