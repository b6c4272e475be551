"""Many texts of CQL2 as few templates and columns of operands, without parsing each of them.

The first text of a skeleton is read as always, and shows whether there is a template. The literals
of the others are then read column by column. Whatever is not plainly right is left alone, so that
reading it alone says what it means, or what is wrong with it and where.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from contrada.arrays import Mask, Positions
from contrada.errors import InvalidInput
from contrada.language.forms import Template, make_template
from contrada.language.operand_columns import (
    OperandColumn,
    join,
    pick,
    read_moments,
    read_numbers,
    read_shapes,
    read_texts,
    value_at,
)
from contrada.language.skeletons import LiteralKind, Skeleton, SkeletonRows, group_by_skeleton
from contrada.model.expression import Value
from contrada.model.subscription import Predicate

ReadAlone = Callable[[str], Predicate]

_CHARACTERS_MAX = 2**24  # of texts whose literals are in memory at once …
_ROW_CHARACTERS = 100  # … each with what it takes besides
_LENGTH_MAX = 2**20  # of a text: who writes more than this has few of them
_SKELETONS_MAX = 10_000  # that are remembered


@dataclass(frozen=True, slots=True)
class TemplateRows:
    """The texts of one template, by row, in order; a column of operands for each of its slots.

    Geometries are tidied and judged, and not prepared.
    """

    template: Template
    rows: Positions
    operands: tuple[OperandColumn, ...]

    def values(self, place: int) -> tuple[Value, ...]:
        """The literals of one of the texts."""
        return tuple(value_at(column, place) for column in self.operands)


@dataclass(frozen=True, slots=True)
class TemplatedTexts:
    """Texts by template, and the rows of those to be read alone, in order."""

    groups: list[TemplateRows]
    alone: Positions


def read_by_template(texts: Sequence[str], read_alone: ReadAlone) -> TemplatedTexts:
    """Find templates for texts; `read_alone` reads one of them completely, or refuses it.

    It is called for the first text of each skeleton, for up to three more where that has faults or
    a special meaning, and for none of a skeleton that a single text has: nothing is gained there.
    """
    reader = _TemplateReader(texts, read_alone)
    found: dict[Template, list[TemplateRows]] = {}
    is_alone = np.ones(len(texts), bool)
    for rows in _chunks(texts):
        for members in group_by_skeleton(texts, rows, reader.rows_min()):
            served = reader.read(members)
            if served is not None:
                found.setdefault(served.template, []).append(served)
                is_alone[served.rows] = False
    return TemplatedTexts([_join(parts) for parts in found.values()], np.flatnonzero(is_alone))


class _TemplateReader:
    """Reads the texts of skeletons, and remembers the template of each, or that it has none."""

    def __init__(self, texts: Sequence[str], read_alone: ReadAlone) -> None:
        self._texts = texts
        self._read_alone = read_alone
        self._known: dict[Skeleton, Template | None] = {}
        self._last: tuple[int, Predicate | None] = -1, None  # the row last read alone

    def rows_min(self) -> int:
        """How many texts a skeleton must have that there may be something to gain."""
        return 1 if self._known else 2

    def read(self, members: SkeletonRows) -> TemplateRows | None:
        """Read texts of one skeleton; None where all of them are to be read alone."""
        skeleton = members.skeleton
        if skeleton in self._known:
            template = self._known[skeleton]
            return None if template is None else _serve(template, members)
        if len(members.rows) == 1 or not skeleton.is_plain():
            return None
        template = self._find(members)
        served = None if template is None else _serve(template, members)
        if template is None or served is None:
            return None
        is_right = template.predicate(served.values(0)) == self._parse(int(served.rows[0]))
        self._remember(skeleton, template if is_right else None)
        return served if is_right else None

    def _find(self, members: SkeletonRows) -> Template | None:
        """Make the template of the first, middle or last text: the first that has all literals.

        One may be refused, or have a value twice in a list, which is then made shorter.
        """
        rows = members.rows
        tried = dict.fromkeys((rows[0], rows[len(rows) // 2], rows[-1]))
        for predicate in filter(None, map(self._parse, tried)):
            template = make_template(predicate.expression)
            if template is None:
                self._remember(members.skeleton, None)
                return None
            if template.kinds() == members.skeleton.kinds:
                return template
        if len(tried) == 3:  # fewer may have been bad by chance
            self._remember(members.skeleton, None)
        return None

    def _parse(self, row: int) -> Predicate | None:
        """Read one text alone; None where it is refused."""
        if self._last[0] != row:
            try:
                self._last = row, self._read_alone(self._texts[row])
            except InvalidInput:
                self._last = row, None
        return self._last[1]

    def _remember(self, skeleton: Skeleton, template: Template | None) -> None:
        if len(self._known) >= _SKELETONS_MAX:
            self._known.clear()
        self._known[skeleton] = template


def _serve(template: Template, members: SkeletonRows) -> TemplateRows | None:
    """Read the literals of texts, and keep the rows that the template serves; None for none."""
    is_served = np.ones(len(members.rows), bool)
    operands: list[OperandColumn] = []
    for number, kind in enumerate(members.skeleton.kinds):
        column, is_sound = _read_literals(members, number, kind)
        operands.append(column)
        is_served &= is_sound
    is_served &= template.find_served(operands)
    if not is_served.any():
        return None
    rows = np.array(members.rows, np.int64)[is_served]
    return TemplateRows(template, rows, tuple(pick(column, is_served) for column in operands))


def _read_literals(
    members: SkeletonRows, number: int, kind: LiteralKind
) -> tuple[OperandColumn, Mask]:
    spellings = members.literals[number]
    match kind:
        case LiteralKind.NUMBER:
            return read_numbers(spellings, is_negative=members.skeleton.is_negative(number))
        case LiteralKind.TEXT:
            return read_texts(spellings)
        case LiteralKind.GEOMETRY:
            return read_shapes(spellings)
        case LiteralKind.MOMENT:
            return read_moments(spellings)


def _chunks(texts: Sequence[str]) -> Iterator[list[int]]:
    """List rows, as many at a time as may be in memory twice; very long texts are left out."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    rows = np.flatnonzero(lengths <= _LENGTH_MAX)
    chunks = np.cumsum(lengths[rows] + _ROW_CHARACTERS) // _CHARACTERS_MAX
    for chunk in np.split(rows, np.flatnonzero(np.diff(chunks)) + 1):
        yield chunk.tolist()


def _join(parts: Sequence[TemplateRows]) -> TemplateRows:
    """Bring the rows of one template together, in order."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows)
    columns = zip(*(part.operands for part in parts), strict=True)
    operands = tuple(pick(join(column), order) for column in columns)
    return TemplateRows(parts[0].template, rows[order], operands)
