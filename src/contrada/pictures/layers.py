"""What a map is asked to show, and which of it is drawn when there is too much of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import shapely

from contrada.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Sized

    from numpy.typing import NDArray

Role = Literal["subscription", "event"]

# Differences of larger coordinates overflow; no map has them.
COORDINATE_MAX = 1e150


@dataclass(frozen=True, slots=True)
class Layer:
    """Shapes of one kind, drawn together: geometries, one label each, and which of them matched.

    The columns have equal lengths; lists are taken as arrays. A geometry that is None, empty or not
    finite is counted but not drawn. Labels and attributes are shown as text, never as markup.

    Where only some of the shapes are handed over, `total` and `matched_total` say how many there
    are. `partner_counts` says how many partners each shape has in all, where the pairs are not all
    handed over. `attributes` are columns of texts to show with a shape; an empty one is not shown.
    `noun` is what one shape is called, by default its role; `words` are what is said of the number
    of shapes that matched, and of the others.
    """

    name: str
    geometries: NDArray[np.object_]
    labels: Sequence[str]
    matched: NDArray[np.bool_]
    role: Role
    total: int | None = None
    matched_total: int | None = None
    partner_counts: NDArray[np.int64] | None = None
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    noun: str | None = None
    words: tuple[str, str] = ("matched", "did not")

    def __post_init__(self) -> None:
        """Refuse columns that do not fit together."""
        object.__setattr__(self, "geometries", np.asarray(self.geometries, dtype=np.object_))
        object.__setattr__(self, "matched", np.asarray(self.matched, dtype=np.bool_))
        lengths = (len(self.geometries), len(self.labels), len(self.matched))
        if len(set(lengths)) > 1:
            raise InvalidInput(
                f'layer "{self.name}" has {lengths[0]} geometries, '
                f"{lengths[1]} labels and {lengths[2]} matched flags; the numbers must be equal"
            )
        self._check_details()
        if self.role not in ("subscription", "event"):
            raise InvalidInput(
                f'layer "{self.name}" has the role "{self.role}"; '
                'the roles are "subscription" and "event"'
            )
        strange = np.flatnonzero(~shapely.is_valid_input(self.geometries))
        if len(strange):
            row = int(strange[0])
            raise InvalidInput(
                f'layer "{self.name}", row {row}: {self.geometries[row]!r} is not a geometry'
            )

    def _check_details(self) -> None:
        columns: dict[str, Sized] = dict(self.attributes)
        if self.partner_counts is not None:
            object.__setattr__(self, "partner_counts", np.asarray(self.partner_counts, np.int64))
            columns["partner_counts"] = self.partner_counts
        for name, column in columns.items():
            if len(column) != len(self.geometries):
                raise InvalidInput(
                    f'layer "{self.name}" has {len(self.geometries)} geometries and '
                    f'{len(column)} values of "{name}"; the numbers must be equal'
                )

    def __len__(self) -> int:
        return len(self.geometries)


def select_rows(layer: Layer, unmatched_max: int) -> NDArray[np.intp]:
    """Choose the rows of a layer to draw, in their order.

    All that matched, and of what did not an even sample of at most `unmatched_max`. The choice
    depends on nothing but the layer, so that two runs draw the same map.
    """
    drawable = _is_drawable(layer.geometries)
    others = sample_evenly(np.flatnonzero(drawable & ~layer.matched), unmatched_max)
    return np.sort(np.concatenate([np.flatnonzero(drawable & layer.matched), others]))


def sample_evenly(rows: NDArray[np.intp], count_max: int) -> NDArray[np.intp]:
    """Take all rows, or `count_max` of them in even steps."""
    if len(rows) <= count_max:
        return rows
    return rows[np.arange(count_max) * len(rows) // count_max]


def _is_drawable(geometries: NDArray[np.object_]) -> NDArray[np.bool_]:
    is_drawable = ~(shapely.is_missing(geometries) | shapely.is_empty(geometries))
    coordinates, owners = shapely.get_coordinates(geometries, return_index=True)
    # A comparison with NaN is false, so this asks for finite coordinates too.
    is_fine = np.all(np.abs(coordinates) < COORDINATE_MAX, axis=1)
    is_drawable[owners[~is_fine]] = False
    return is_drawable
