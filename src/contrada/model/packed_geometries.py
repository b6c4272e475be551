"""Geometries as columns: what many of them are in memory or in a file, without an object for each.

They have been tidied and judged before: a packed geometry is planar, not empty and has no empty
part. What a file holds is believed only after `packed_checks` has looked at it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.arrays import Floats, Geometries, Integers, Mask, Positions
from contrada.collecting import untrack
from contrada.model.encodings import read_wkbs
from contrada.model.geometry import are_areas
from contrada.model.packed_checks import (
    COLLECTION,
    IS_AREA,
    PACKED_KINDS,
    are_tidy,
    check_columns,
    write_wkbs,
)
from contrada.model.packed_lists import (
    are_equal_lists,
    digest_lists,
    find_first_equals,
    join_lists,
    list_steps,
    reduce_lists,
    repeat,
    split_bytes,
    starts_of,
    take_lists,
)

_VERTICES_AT_ONCE = 10_000  # so that no other thread waits for long while objects are made
_VERTICES_MIN = 5  # a smaller geometry takes as long as one of so many


@dataclass(frozen=True, slots=True)
class PackedGeometries:
    """Geometries as coordinates and offsets, as in GeoArrow, with the same levels for every kind.

    A geometry has parts, a part has rings, a ring has vertices: a line is a part of one ring, a
    point is one of one vertex. Each level lists where the members of each begin in the next, and
    at last where they end. Collections have no parts here; each is its WKB, in two dimensions,
    least byte first and without an SRID. The arrays may be read-only views of a file's memory.
    """

    kinds: NDArray[np.uint8]  # the number that Shapely has for the type of each geometry
    parts: Positions  # where the parts of each geometry begin
    rings: Positions  # where the rings of each part begin
    vertices: Positions  # where the vertices of each ring begin
    coordinates: Floats  # x and y of each vertex
    collections: Positions  # the numbers of the geometries that are collections, in order
    wkb_starts: Positions  # where the bytes of each collection begin
    wkb: NDArray[np.uint8]  # the bytes of the collections

    @classmethod
    def from_columns(cls, columns: Mapping[str, NDArray[Any]], place: str) -> "PackedGeometries":
        """Check columns that may be damaged or a stranger's, and wrap them without a copy.

        Raises `InvalidInput`, with the place and the column, where they are not what `columns`
        returns. Whether rings cross, and whatever else `find_faults` judges, is not looked at.
        """
        check_columns(columns, place)
        return cls(**{field.name: np.asarray(columns[field.name]) for field in fields(cls)})

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name, as `from_columns` takes them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def nbytes(self) -> int:
        """How many bytes the columns have."""
        return sum(column.nbytes for column in self.columns().values())

    def take(self, numbers: Positions) -> "PackedGeometries":
        """Copy some geometries, in the order of their numbers; a number may come again."""
        kinds = self.kinds[numbers]
        parts, of_parts = take_lists(self.parts, numbers)
        rings, of_rings = take_lists(self.rings, of_parts)
        vertices, of_vertices = take_lists(self.vertices, of_rings)
        collections = np.flatnonzero(kinds == COLLECTION)
        of_collections = np.searchsorted(self.collections, numbers[collections])
        wkb_starts, of_bytes = take_lists(self.wkb_starts, of_collections)
        return PackedGeometries(
            kinds=kinds,
            parts=parts,
            rings=rings,
            vertices=vertices,
            coordinates=self.coordinates.take(of_vertices, axis=0),  # faster than [] by half
            collections=collections,
            wkb_starts=wkb_starts,
            wkb=self.wkb[of_bytes],
        )

    def shapes(self, numbers: Positions | None = None) -> Geometries:
        """Make new Shapely geometries of some, in the order of their numbers; by default of all."""
        numbers = np.arange(len(self)) if numbers is None else numbers
        shapes = np.empty(len(numbers), object)
        begins, ends = (self.vertices[self.rings[self.parts[n]]] for n in (numbers, numbers + 1))
        for first, last in list_steps(np.maximum(ends - begins, _VERTICES_MIN), _VERTICES_AT_ONCE):
            shapes[first:last] = self.take(numbers[first:last])._shapes()
            untrack(shapes[first:last])
        return shapes

    def _shapes(self) -> Geometries:
        """Make all geometries at once."""
        kinds = np.flatnonzero(np.bincount(self.kinds)).tolist()
        if len(kinds) == 1:
            return self._shapes_of(kinds[0])
        shapes = np.empty(len(self), object)
        for kind in kinds:
            of_kind = np.flatnonzero(self.kinds == kind)
            shapes[of_kind] = self.take(of_kind)._shapes_of(kind)
        return shapes

    def _shapes_of(self, kind: int) -> Geometries:
        """Make all geometries, which are of this kind."""
        if kind == COLLECTION:
            return self._collected()
        levels: dict[int, tuple[Positions, ...]] = {
            0: (),
            1: (self.vertices,),
            3: (self.vertices, self.rings),
            4: (self.parts,),
            5: (self.vertices, self.parts),
            6: (self.vertices, self.rings, self.parts),
        }
        kind = shapely.GeometryType(kind)
        return np.asarray(shapely.from_ragged_array(kind, self.coordinates, levels[kind]), object)

    def _collected(self) -> Geometries:
        """Make the collections."""
        return read_wkbs(split_bytes(self.wkb, self.wkb_starts))

    def boxes(self) -> Floats:
        """The box of each geometry: west, south, east, north."""
        boxes = np.empty((len(self), 4))
        has_parts = self.kinds != COLLECTION
        starts, own = self._starts(), np.flatnonzero(has_parts)
        boxes[own, :2] = reduce_lists(np.minimum, self.coordinates, starts[own])
        boxes[own, 2:] = reduce_lists(np.maximum, self.coordinates, starts[own])
        boxes[self.collections] = shapely.bounds(self._collected())
        return boxes

    def sizes(self) -> Integers:
        """The number of vertices of each geometry."""
        sizes = np.diff(self._starts())
        sizes[self.collections] = shapely.get_num_coordinates(self._collected())
        return sizes

    def are_areas(self) -> Mask:
        """Which geometries are regions: polygons, multipolygons and collections of nothing else."""
        areas = IS_AREA[self.kinds]
        areas[self.collections] = are_areas(self._collected())
        return areas

    def _starts(self) -> Positions:
        """Where the vertices of each geometry begin."""
        return self.vertices[self.rings[self.parts]]

    def firsts(self) -> Positions:
        """For each geometry, the number of the first one that is the same bit for bit.

        The same ring from another vertex on, or with -0.0 in place of 0.0, is not the same.
        """
        firsts, flat = np.arange(len(self)), np.flatnonzero(self.kinds != COLLECTION)
        digests = digest_lists(self._starts(), self.coordinates.view(np.uint64), flat)
        firsts[flat] = flat[find_first_equals(digests ^ self.kinds[flat])]
        others = np.flatnonzero(firsts != np.arange(len(self)))
        # By chance there are no strays, but a stranger can make as many equal digests as they like.
        strays = others[~self._are_same(others, firsts[others])]
        strays = np.union1d(strays, self.collections)
        seen: dict[bytes, int] = {}
        for number, wkb in zip(strays.tolist(), write_wkbs(self.shapes(strays)), strict=True):
            firsts[number] = seen.setdefault(wkb, number)
        return firsts

    def _are_same(self, a: Positions, b: Positions) -> Mask:
        """Which geometries of `a` are the same as those of `b`; none of them is a collection."""
        same: Mask = self.kinds[a] == self.kinds[b]
        for starts, members in (
            (self.parts, np.diff(self.rings)),
            (self.rings[self.parts], np.diff(self.vertices)),
            (self._starts(), self.coordinates.view(np.uint64)),
        ):
            same &= are_equal_lists(starts, members, a, b)
        return same


def pack(geometries: Geometries) -> PackedGeometries:
    """Put geometries into columns; all of them are tidied, judged and not empty."""
    kinds = shapely.get_type_id(geometries)
    assert np.isin(kinds, PACKED_KINDS).all(), "not tidied"
    assert (shapely.get_coordinate_dimension(geometries) == 2).all(), "not planar"
    is_collection = kinds == COLLECTION
    flat, collections = geometries[~is_collection], geometries[is_collection]
    part_counts = shapely.get_num_geometries(flat)
    parts = _open(flat, part_counts, kinds[~is_collection] > 3, shapely.get_parts)
    ring_counts = shapely.get_num_interior_rings(parts) + 1
    rings = _open(parts, ring_counts, ring_counts > 1, shapely.get_rings)
    vertex_counts = shapely.get_num_coordinates(rings)
    wkbs = write_wkbs(collections)
    assert part_counts.all() and vertex_counts.all() and are_tidy(wkbs).all(), "not tidied"
    return PackedGeometries(
        kinds=kinds.astype(np.uint8),
        parts=starts_of(np.where(is_collection, 0, shapely.get_num_geometries(geometries))),
        rings=starts_of(ring_counts),
        vertices=starts_of(vertex_counts),
        coordinates=shapely.get_coordinates(flat),
        collections=np.flatnonzero(is_collection),
        wkb_starts=starts_of(np.array([len(wkb) for wkb in wkbs], np.int64)),
        wkb=np.frombuffer(b"".join(wkbs), np.uint8),
    )


def _open(
    geometries: Geometries, counts: NDArray[Any], are_open: Mask, members_of: Callable[..., Any]
) -> Geometries:
    """Put members in the place of some geometries, of which each has so many."""
    if not are_open.any():
        return geometries
    is_member = repeat(are_open, counts)
    opened = np.empty(len(is_member), object)
    opened[is_member] = members_of(geometries[are_open])
    opened[~is_member] = geometries[~are_open]
    return opened


def concatenate(pieces: Sequence[PackedGeometries]) -> PackedGeometries:
    """Put the geometries of several pieces into one, in their order."""
    pieces = [pack(np.empty(0, object)), *pieces]
    shifts = starts_of(np.array([len(piece) for piece in pieces]))
    return PackedGeometries(
        kinds=np.concatenate([piece.kinds for piece in pieces]),
        parts=join_lists([piece.parts for piece in pieces]),
        rings=join_lists([piece.rings for piece in pieces]),
        vertices=join_lists([piece.vertices for piece in pieces]),
        coordinates=np.concatenate([piece.coordinates for piece in pieces]),
        collections=np.concatenate(
            [piece.collections + shift for piece, shift in zip(pieces, shifts, strict=False)]
        ),
        wkb_starts=join_lists([piece.wkb_starts for piece in pieces]),
        wkb=np.concatenate([piece.wkb for piece in pieces]),
    )
