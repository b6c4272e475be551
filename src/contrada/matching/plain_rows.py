"""Rows of subscriptions that need no look at each: packed form by form, as columns.

A row is plain if its id and subscriber are as they should be, and it has either a good geometry
with a known relation, and perhaps conditions, or a predicate as text. Whatever is wrong with a
row, or unusual about it, is left to whoever reads rows one by one, and says so.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Mask, Positions
from contrada.errors import InvalidInput
from contrada.language.operand_columns import NumberColumn, OperandColumn
from contrada.language.skeletons import LiteralKind
from contrada.language.templates import read_by_template
from contrada.matching.columns import GeometryColumn, read_geometries
from contrada.matching.grouping import find_used
from contrada.matching.id_columns import SubscriberColumns
from contrada.matching.ids import read_id_column
from contrada.matching.operand_pools import OperandPools
from contrada.matching.row_forms import make_marks, pack_form, study
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.attribute_names import is_attribute
from contrada.model.expression_parts import Operand, OperandType
from contrada.model.geometry import are_areas, as_array
from contrada.model.packed_geometries import PackedGeometries, concatenate, pack
from contrada.model.relation import Family, SpatialRelation, find_relation
from contrada.model.row_columns import BESIDE_GEOMETRY, DEFAULTS, Holds, columns_that_hold
from contrada.model.subscription import Predicate

_SHARED_MIN = 8  # rows: a text that so many have is worth a form of its own
_NULL = -1
_TYPES = {
    LiteralKind.NUMBER: OperandType.NUMBER,
    LiteralKind.TEXT: OperandType.TEXT,
    LiteralKind.GEOMETRY: OperandType.GEOMETRY,
    LiteralKind.MOMENT: OperandType.MOMENT,
}

PlainPart = tuple[SubscriptionColumns, Positions]  # with the row that each came from


class ReadsPredicates(Protocol):
    """What makes predicates of texts and geometries."""

    def parse(self, source: str) -> Predicate:
        """Make a predicate of CQL2."""

    def join(
        self,
        geometry: BaseGeometry,
        relation: SpatialRelation,
        attribute: str,
        rest: Predicate | None,
    ) -> Predicate:
        """Make the predicate of a geometry with a relation, and perhaps conditions besides."""


@dataclass(frozen=True, slots=True)
class _Codes:
    """A column of texts: the distinct ones, and the number of each row's; -1 for null."""

    codes: Positions
    texts: list[str]

    @staticmethod
    def of(array: pa.Array | None, length: int) -> "_Codes | None":
        """Read a column; None where it holds something other than texts."""
        if array is None or pa.types.is_null(array.type):
            return _Codes(np.full(length, _NULL, np.int64), [])
        if not pa.types.is_dictionary(array.type):
            if not _is_text(array.type):
                return None
            array = array.dictionary_encode()
        if not _is_text(array.type.value_type) or array.dictionary.null_count:
            return None
        codes = np.asarray(array.indices.cast(pa.int64()).fill_null(_NULL), np.int64)
        return _Codes(codes, array.dictionary.to_pylist())


@dataclass(frozen=True, slots=True)
class _TextGroup:
    """Texts of one template, or a single text: a predicate for any operands, and theirs."""

    make: Callable[[Sequence[Operand]], Predicate]
    types: tuple[OperandType, ...] = ()
    operands: tuple[OperandColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class _GroupedTexts:
    """The group of each distinct text of a column, -1 for none, and its place in it."""

    groups: list[_TextGroup]
    group_of: Positions
    place_of: Positions


def _group_texts(codes: _Codes, chosen: Mask, reader: ReadsPredicates) -> _GroupedTexts:
    """Find the groups of the texts that the chosen rows have."""
    group_of = np.full(len(codes.texts) + 1, -1, np.int64)  # the last is for null
    place_of = np.zeros(len(codes.texts) + 1, np.int64)
    groups: list[_TextGroup] = []
    counts = np.bincount(codes.codes[chosen & (codes.codes >= 0)], minlength=len(codes.texts))
    wanted = np.flatnonzero(counts)
    found = read_by_template([codes.texts[i] for i in wanted.tolist()], reader.parse)
    for rows in found.groups:
        types = tuple(_TYPES[kind] for kind in rows.template.kinds())
        group_of[wanted[rows.rows]] = len(groups)
        place_of[wanted[rows.rows]] = np.arange(len(rows.rows))
        groups.append(_TextGroup(rows.template.predicate, types, rows.operands))
    for text in wanted[found.alone].tolist():
        if counts[text] < _SHARED_MIN:
            continue
        try:
            predicate = reader.parse(codes.texts[text])
        except InvalidInput:
            continue
        group_of[text] = len(groups)
        groups.append(_TextGroup(lambda _, predicate=predicate: predicate))  # type: ignore[misc]
    return _GroupedTexts(groups, group_of, place_of)


def pack_plain(
    columns: Mapping[str, pa.Array],
    geometries: "RowGeometries | None",
    ids: pa.Array,
    left_out: Collection[int],
    reader: ReadsPredicates,
) -> tuple[Mask, list[PlainPart]]:
    """Pack the plain rows of a table; tell which they are. Rows may be left out beforehand."""
    length = len(ids)
    nobody = np.zeros(length, bool)
    texts = _read_texts(columns, length)
    subscribers = read_subscribers(columns.get("subscriber"), length)
    if texts is None or subscribers is None:
        return nobody, []
    chosen = np.asarray(ids.is_valid())
    chosen[list(left_out)] = False
    rows = _PlainRows(ids, subscribers, geometries, reader)
    filters = texts["filter"]
    parts = rows.pack_geometries(
        chosen & (filters.codes < 0), texts["relation"], texts["attribute"], texts["where"]
    )
    is_bare = np.all([texts[column.name].codes < 0 for column in BESIDE_GEOMETRY], axis=0)
    if geometries is not None:
        is_bare &= geometries.are_absent()
    parts += rows.pack_texts(chosen & (filters.codes >= 0) & is_bare, filters)
    packed = nobody.copy()
    for _, own in parts:
        packed[own] = True
    return packed, parts


def _read_texts(columns: Mapping[str, pa.Array], length: int) -> dict[str, _Codes] | None:
    """Read the columns of texts; None where one of them holds something else."""
    found = {}
    for name in columns_that_hold(Holds.PREDICATE, Holds.RELATION, Holds.NAME):
        codes = _Codes.of(columns.get(name), length)
        if codes is None:
            return None
        found[name] = codes
    return found


@dataclass(frozen=True, slots=True)
class RowGeometries:
    """The geometries of rows: the distinct ones, decoded, and the number of each row's.

    Rows without any have -1, which is the last of the column: it is null.
    """

    column: GeometryColumn
    codes: Positions

    def are_good(self) -> Mask:
        """Which rows have a geometry that is as it came, and right."""
        is_good = self.column.is_known.copy()
        is_good[[*self.column.faults, *self.column.mended]] = False
        return np.asarray(is_good[self.codes])

    def are_absent(self) -> Mask:
        """Which rows have null in place of a geometry."""
        return np.asarray(self.codes < 0)


def read_row_geometries(array: pa.Array, place: str) -> RowGeometries | None:
    """Decode a column, each distinct value once; None where that cannot be told from another."""
    if not pa.types.is_dictionary(array.type):
        is_wkb = pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)
        if not (is_wkb or _is_text(array.type)):
            return None
        array = array.dictionary_encode()
    if array.dictionary.null_count:
        return None
    codes = np.asarray(array.indices.cast(pa.int64()).fill_null(_NULL), np.int64)
    used = np.unique(codes[codes >= 0])
    known = array.dictionary
    if len(used) < len(known):  # others may be of other rows
        known = known.take(pa.array(used))
        codes = np.where(codes < 0, _NULL, np.searchsorted(used, codes))
    values = pa.concat_arrays([known, pa.nulls(1, known.type)])
    return RowGeometries(read_geometries(values, place, is_meant=True), codes)


class _PlainRows:
    """The rows of a table, and what goes with every predicate."""

    def __init__(
        self,
        ids: pa.Array,
        subscribers: SubscriberColumns,
        geometries: RowGeometries | None,
        reader: ReadsPredicates,
    ) -> None:
        self._ids, self._subscribers = ids, subscribers
        self._geometries, self._reader = geometries, reader

    def pack_texts(self, chosen: Mask, filters: _Codes) -> list[PlainPart]:
        """Pack rows that have a predicate as text."""
        grouped = _group_texts(filters, chosen, self._reader)
        groups = np.where(chosen, grouped.group_of[filters.codes], -1)
        parts = []
        for number, group in enumerate(grouped.groups):
            rows = np.flatnonzero(groups == number)
            marks = make_marks(group.types)
            operands = _Operands()
            places = grouped.place_of[filters.codes[rows]]
            texts, text_of = find_used(places, int(places.max()) + 1)
            operands.add_group(group, texts)
            parts.append(self._pack(rows, group.make(marks), marks, operands, text_of))
        return parts

    def pack_geometries(
        self, chosen: Mask, relations: _Codes, attributes: _Codes, where: _Codes
    ) -> list[PlainPart]:
        """Pack rows that have a geometry with a relation, and perhaps conditions."""
        if self._geometries is None or not (chosen & self._geometries.are_good()).any():
            return []
        chosen = chosen & self._geometries.are_good()
        grouped = _group_texts(where, chosen, self._reader)
        groups = np.where(where.codes < 0, len(grouped.groups), grouped.group_of[where.codes])
        known = _find_relations(relations.texts)
        sizes = len(relations.texts) + 1, len(attributes.texts) + 1, len(grouped.groups) + 1
        rows = np.flatnonzero(chosen & (groups >= 0))
        keys = np.ravel_multi_index(
            (relations.codes[rows] + 1, attributes.codes[rows] + 1, groups[rows]), sizes
        )
        distinct, which = np.unique(keys, return_inverse=True)
        forms = zip(*np.unravel_index(distinct, sizes), strict=True)
        areas = are_areas(self._geometries.column.shapes)
        parts = []
        for number, (relation, attribute, group) in enumerate(forms):
            found = known[relation - 1]
            name = attributes.texts[attribute - 1] if attribute else DEFAULTS["attribute"]
            if found is None or not is_attribute(name):
                continue
            own = rows[which == number]
            if found.family is Family.EGENHOFER:
                own = own[areas[self._geometries.codes[own]]]
            conditions = grouped.groups[group] if group < len(grouped.groups) else None
            places = grouped.place_of[where.codes[own]]
            part = self._pack_related(own, found, name, conditions, places)
            parts += [] if part is None else [part]
        return parts

    def _pack_related(
        self,
        rows: Positions,
        relation: SpatialRelation,
        attribute: str,
        group: _TextGroup | None,
        places: Positions,
    ) -> PlainPart | None:
        """Pack rows of one relation and one kind of conditions, if these read other attributes."""
        assert self._geometries is not None
        marks = make_marks((OperandType.GEOMETRY, *(() if group is None else group.types)))
        rest = None if group is None else group.make(marks[1:])
        if not rows.size or (rest is not None and attribute in rest.attributes()):
            return None
        assert isinstance(marks[0], BaseGeometry)
        predicate = self._reader.join(marks[0], relation, attribute, rest)
        operands = _Operands()
        operands.add_geometries(self._geometries, rows)
        if group is not None:
            operands.add_group(group, places)
        return self._pack(rows, predicate, marks, operands, np.arange(len(rows)))

    def _pack(
        self,
        rows: Positions,
        predicate: Predicate,
        marks: list[Operand],
        operands: "_Operands",
        sets: Positions,
    ) -> PlainPart:
        form = study(predicate, marks)
        ids = self._ids.take(pa.array(rows))
        subscribers = self._subscribers.take(rows)
        packed = pack_form(form, ids, subscribers, operands.columns, operands.pools(), sets)
        return packed, rows


class _Operands:
    """The operands of some rows, mark by mark, and the pools that they are in."""

    def __init__(self) -> None:
        self.columns: list[Positions] = []
        self._bits = [np.zeros(0, np.int64)]
        self._is_whole = [np.zeros(0, bool)]
        self._texts: list[str] = []
        self._moments: list[int] = []
        self._shapes: list[PackedGeometries] = [pack(as_array([]))]

    def add_geometries(self, geometries: RowGeometries, rows: Positions) -> None:
        """Add the geometries of rows, each distinct one once."""
        used, which = find_used(geometries.codes[rows], len(geometries.column.shapes))
        self._add_shapes(pack(geometries.column.take(used)), which)

    def _add_shapes(self, packed: PackedGeometries, which: Positions) -> None:
        self.columns.append(which + sum(map(len, self._shapes)))
        self._shapes.append(packed)

    def add_group(self, group: _TextGroup, places: Positions) -> None:
        """Add the operands of texts: those of the group, by place."""
        for type_, column in zip(group.types, group.operands, strict=True):
            if isinstance(column, NumberColumn):
                self.columns.append(places + sum(map(len, self._bits)))
                bits = column.real.view(np.int64)
                self._bits.append(np.where(column.is_whole, column.whole, bits))
                self._is_whole.append(column.is_whole)
            elif type_ is OperandType.TEXT:
                self.columns.append(places + len(self._texts))
                self._texts += column.tolist()
            elif type_ is OperandType.MOMENT:
                self.columns.append(places + len(self._moments))
                self._moments += [moment.ns for moment in column]
            else:
                self._add_shapes(pack(column), places)

    def pools(self) -> OperandPools:
        """Return all that was added."""
        return OperandPools(
            np.concatenate(self._bits),
            np.concatenate(self._is_whole),
            pa.array(self._texts, pa.large_string()),
            concatenate(self._shapes),
            np.array(self._moments, np.int64),
        )


def _find_relations(names: list[str]) -> list[SpatialRelation | None]:
    """Find relations by name; None for what is not one, and last the one of rows that name none."""
    found: list[SpatialRelation | None] = []
    for name in names:
        try:
            found.append(find_relation(name))
        except InvalidInput:
            found.append(None)
    return [*found, find_relation(DEFAULTS["relation"])]


def read_plain_ids(array: pa.Array | None, rows: Positions) -> pa.Array | None:
    """Read a column of ids, or the numbers of rows; None where rows must be looked at."""
    if array is None:
        return pa.array(rows)
    if pa.types.is_uint64(array.type):
        return None
    try:
        ids = read_id_column(array, "")
    except InvalidInput:
        return None
    return ids if pa.types.is_int64(ids.type) else ids.cast(pa.large_string())


def read_subscribers(array: pa.Array | None, length: int) -> SubscriberColumns | None:
    """Read a column of subscribers; None where rows must be looked at."""
    no_texts, no_wholes = pa.array([], pa.large_string()), np.zeros(0, np.int64)
    if array is None or pa.types.is_null(array.type):
        return SubscriberColumns(np.full(length, _NULL, np.int64), no_wholes, no_texts)
    ids = read_plain_ids(array, no_wholes)
    if ids is None:
        return None
    encoded = ids.dictionary_encode()
    codes = np.asarray(encoded.indices.cast(pa.int64()).fill_null(_NULL), np.int64)
    if pa.types.is_int64(ids.type):
        return SubscriberColumns(codes, encoded.dictionary.to_numpy(), no_texts)
    return SubscriberColumns(codes, no_wholes, encoded.dictionary)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
