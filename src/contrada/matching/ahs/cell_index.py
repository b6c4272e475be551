"""The aggregated cells of many geometries: AHS_SUB of the AHS paper, section 3.1.

Each distinct cell is stored once, with the shapes in whose lists it is. An event's cell list is
matched with all of them in a single process (section 3.2), at a cost that follows what it touches.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.arrays import CellKeys, Geometries, Integers, Positions
from contrada.kernels.area_matrices import find_parents, match_cells
from contrada.kernels.quadtree import INTERIOR
from contrada.matching.grid import WHOLE, CellLists, Grid, Prefix
from contrada.matching.grouping import expand, group_by

_AT_ONCE = 5_000  # geometries that are written while nobody else can run


@dataclass(frozen=True, slots=True)
class Matches:
    """The shapes that an event touches, each with the matrix II, IB, BI, BB of their areas."""

    shapes: Positions
    matrices: Integers


@dataclass(frozen=True, slots=True)
class CellIndex:
    """Items by the cells of their geometries; items with equal geometries may share a shape.

    Cell i is in the lists of the shapes `shapes[posting_starts[i] : posting_starts[i + 1]]`, as of
    `kinds`; `parents[i]` is the smallest other cell around it. Shape s belongs to the items
    `items[item_starts[s] : item_starts[s + 1]]`; `areas[s]` are those of its interior and boundary,
    indexed or not. Plain arrays all of them, so that they can be mapped from a file.
    """

    level: int
    cells: CellKeys
    parents: NDArray[np.int32]
    posting_starts: Positions
    shapes: NDArray[np.int32]
    kinds: NDArray[np.uint8]
    areas: Integers
    item_starts: Positions
    items: Positions
    _spare: list[NDArray[np.int32]] = field(default_factory=list, repr=False, compare=False)

    def match(self, keys: CellKeys) -> Matches:
        """Find the shapes that have cells in common with an event's list."""
        try:
            slots = self._spare.pop()  # nobody else has it until it is put back
        except IndexError:
            slots = np.zeros(len(self.areas), np.int32)
        touched, matrices = match_cells(
            keys,
            self.cells,
            self.parents,
            self.posting_starts,
            self.shapes,
            self.kinds,
            self.level,
            slots,
        )
        self._spare.append(slots)
        return Matches(touched, matrices)

    def items_of(self, shapes: Positions) -> tuple[Positions, Positions]:
        """List the items of some shapes: for each item the position of its shape, and the item."""
        which, at = expand(self.item_starts, shapes)
        return which, self.items[at]

    def stats(self) -> dict[str, int]:
        """Count the cells of all items' lists, of all shapes' lists, and the distinct ones."""
        per_shape = np.bincount(self.shapes, minlength=len(self.areas))
        listed = int(per_shape @ np.diff(self.item_starts))
        return {"cells_listed": listed, "postings": len(self.shapes), "cells": len(self.cells)}


def index_cells(
    grid: Grid,
    geometries: Geometries,
    *,
    needs_boundary: NDArray[np.bool_] | None = None,
    deduplicate: bool = True,
    prefix: Prefix = WHOLE,
    cut: Callable[[CellLists], CellLists] = lambda lists: lists,
) -> CellIndex:
    """Aggregate the cells of geometries below a prefix.

    The boundary of a shape is left out if none of its items needs it. Without `deduplicate` each
    item has a shape of its own, as in the paper. Of the cells only those are indexed that `cut`
    leaves; the areas are those of all.
    """
    shape_of, firsts = _number_shapes(geometries, deduplicate)
    lists = grid.decompose(geometries[firsts], prefix)
    is_needed = np.ones(len(firsts), bool)
    if needs_boundary is not None:
        is_needed = np.bincount(shape_of, needs_boundary, len(firsts)) > 0
    items, item_starts = group_by(shape_of, len(firsts))
    return _aggregate(cut(lists), lists.areas(), is_needed, items, item_starts)


def _number_shapes(geometries: Geometries, deduplicate: bool) -> tuple[Positions, Positions]:
    """Number the shape of each item; return the numbers, and an item of each shape."""
    if not deduplicate:
        numbers = np.arange(len(geometries))
        return numbers, numbers
    number_of: dict[bytes, int] = {}
    firsts: list[int] = []
    shape_of = np.empty(len(geometries), np.int64)
    steps = range(0, len(geometries), _AT_ONCE)
    written = (shapely.to_wkb(geometries[first : first + _AT_ONCE]) for first in steps)
    for item, wkb in enumerate(chain.from_iterable(written)):
        if wkb not in number_of:
            number_of[wkb] = len(firsts)
            firsts.append(item)
        shape_of[item] = number_of[wkb]
    return shape_of, np.array(firsts, np.int64)


def _aggregate(
    lists: CellLists,
    areas: Integers,
    needs_boundary: NDArray[np.bool_],
    items: Positions,
    item_starts: Positions,
) -> CellIndex:
    shapes = lists.owners().astype(np.int32)
    is_kept = (lists.kinds == INTERIOR) | needs_boundary[shapes]
    keys, shapes = lists.keys[is_kept], shapes[is_kept]
    order = np.argsort(keys & ~1, kind="stable")
    cells, firsts = np.unique(keys[order] & ~1, return_index=True)
    return CellIndex(
        lists.level,
        cells,
        find_parents(cells, lists.level),
        np.append(firsts, len(keys)).astype(np.int64),
        shapes[order],
        (keys[order] & 1).astype(np.uint8),
        areas,
        item_starts,
        items,
    )
