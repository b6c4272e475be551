"""What the rows of a collection take from its subscription: they are packed with it."""

from collections.abc import Mapping
from typing import Any

from contrada.errors import Conflict
from contrada.files.crs import CRS84
from contrada.matcher.packed_rows import SharedTerms
from contrada.model.event import GEOMETRY
from contrada.model.row_columns import DEFAULT_RELATION
from contrada.showing import brief


def terms_of(id_: str, body: Mapping[str, Any]) -> SharedTerms:
    """Return what rows share by the body of their subscription; an empty one has the defaults.

    Coordinates of rows are those of events, longitude and latitude. A subscription with a filter
    cannot have rows.
    """
    if "filter" in body:
        raise Conflict(
            f"the subscription {brief(id_)} has a filter: only one without can have rows"
        )
    return SharedTerms(
        relation=body.get("relation", DEFAULT_RELATION),
        attribute=body.get("attribute", GEOMETRY),
        where=body.get("where"),
        crs=CRS84,
    )
