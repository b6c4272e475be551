"""Masked CQL2 text in runs that `cql2` reads in a time that grows with their length.

`cql2` tries every parenthesis as an array and as an expression, one after the other. Where one
way fails, the time doubles with each level: of twenty open parentheses for a missing one, and of
arrays within arrays. So, in a text with more than a few levels, each parenthesis is a run of its
own, which has a stand-in wherever it stood. Parentheses of calls and of IN lists stay.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from contrada.errors import InvalidInput

FIRST = 1000  # stand-ins count from here, so that the -1 of a unary minus is none of them
_LEVELS_MAX = 2  # that `cql2` is given at once
_BEFORE_PLAIN = frozenset("and or not like between is div null true false".split())


@dataclass(frozen=True, slots=True)
class Piece:
    """A token of the text for `cql2`, and where in the original text it stands."""

    text: str
    origin: int


@dataclass(frozen=True, slots=True)
class Run:
    """A text for `cql2`, and the way back to the original."""

    text: str
    starts: tuple[int, ...]  # offsets in `text` at which a piece begins …
    origins: tuple[int, ...]  # … and the offsets in the original from which it came

    def origin(self, offset: int) -> int:
        """Give the place in the original text from which a place in this one came."""
        piece = bisect_right(self.starts, offset) - 1
        return self.origins[piece] if piece >= 0 else 0


@dataclass(slots=True)
class _Group:
    """An open parenthesis, with the pieces behind it so far."""

    origin: int
    is_plain: bool
    pieces: list[Piece] = field(default_factory=list)


def divide(pieces: Sequence[Piece], length: int) -> list[Run]:
    """Divide a text of some length into runs, the innermost first and the whole last.

    Run number n has the stand-in `g` and FIRST + n in the runs behind it.
    """
    end = Piece("", length)
    if _count_levels(pieces) <= _LEVELS_MAX:
        return [_join([*pieces, end])]
    runs: list[Run] = []
    open_ = [_Group(0, is_plain=True)]
    for piece, is_plain in zip(pieces, _are_plain(pieces), strict=True):
        if piece.text == "(":
            open_.append(_Group(piece.origin, is_plain))
        if piece.text != ")":
            open_[-1].pieces.append(piece)
            continue
        group = open_.pop()
        if not open_:
            raise InvalidInput(f"a parenthesis is closed but not open at character {piece.origin}")
        group.pieces.append(piece)
        if group.is_plain:
            runs.append(_join([*group.pieces, Piece("", piece.origin + 1)]))
            open_[-1].pieces.append(Piece(f" g{FIRST + len(runs) - 1} ", group.origin))
        else:
            open_[-1].pieces += group.pieces
    if len(open_) > 1:
        raise InvalidInput(f"a parenthesis is not closed at character {open_[-1].origin}")
    return [*runs, _join([*open_[0].pieces, end])]


def _count_levels(pieces: Sequence[Piece]) -> int:
    """Count how many plain parentheses are open at once, at most."""
    open_: list[bool] = []
    count = most = 0
    for piece, is_plain in zip(pieces, _are_plain(pieces), strict=True):
        if piece.text == "(":
            open_.append(is_plain)
            count += is_plain
            most = max(most, count)
        elif piece.text == ")" and open_:
            count -= open_.pop()
    return most


def _are_plain(pieces: Sequence[Piece]) -> list[bool]:
    """Tell of each piece whether a parenthesis there belongs neither to a call nor to an IN."""
    plain: list[bool] = []
    before = ""
    for piece in pieces:
        is_word = before[:1].isalpha()
        plain.append(not is_word or before.lower() in _BEFORE_PLAIN)
        before = before if piece.text.isspace() else piece.text
    return plain


def _join(pieces: Sequence[Piece]) -> Run:
    texts: list[str] = []
    starts: list[int] = []
    length = 0
    for piece in pieces:
        if texts and _is_wordlike(texts[-1][-1:]) and _is_wordlike(piece.text[:1]):
            texts.append(" ")  # two stand-ins in a row must not become one
            length += 1
        starts.append(length)
        texts.append(piece.text)
        length += len(piece.text)
    return Run("".join(texts), tuple(starts), tuple(piece.origin for piece in pieces))


def _is_wordlike(character: str) -> bool:
    return character.isalnum() or (character != "" and character in "_'")
