"""Masked CQL2 text in runs that `cql2` reads in a time that grows with their length.

`cql2` tries every parenthesis as an array and as an expression, one after the other. Where one
way fails, the time doubles with each level: of twenty open parentheses for a missing one, and of
arrays within arrays. So, in a text with more than a few levels, each parenthesis is a run of its
own, which has a stand-in wherever it stood. Parentheses of calls stay.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain

from contrada.errors import InvalidInput

FIRST = 1000  # stand-ins count from here, so that the -1 of a unary minus is none of them
_LEVELS_MAX = 2  # that `cql2` is given at once
_STAND_INS = {"plain": " g{} ", "list": "(h{})"}
_BEFORE_PLAIN = frozenset("and or not like between is div null true false".split())


@dataclass(frozen=True, slots=True)
class Piece:
    """A token of the text for `cql2`, and where in the original text it stands."""

    text: str
    origin: int


@dataclass(frozen=True, slots=True)
class TextRun:
    """A text for `cql2`, and the way back to the original."""

    text: str
    starts: tuple[int, ...]  # offsets in `text` at which a piece begins …
    origins: tuple[int, ...]  # … and the offsets in the original from which it came

    def origin(self, offset: int) -> int:
        """Return the place in the original text that a place in this one came from."""
        piece = bisect_right(self.starts, offset) - 1
        return self.origins[piece] if piece >= 0 else 0


@dataclass(slots=True)
class _Group:
    """An open parenthesis, with the pieces behind it so far."""

    origin: int
    kind: str  # "plain", "list" behind an IN, or "call"
    pieces: list[Piece] = field(default_factory=list)


def divide(pieces: Sequence[Piece], length: int) -> list[TextRun]:
    """Divide a text of some length into runs, the innermost first and the whole last.

    Run number n has the stand-in `g` and FIRST + n in the runs behind it, the list of an IN `h`
    in parentheses.
    """
    end = Piece("", length)
    if _count_levels(pieces) <= _LEVELS_MAX:
        return [_join([*pieces, end])]
    runs: list[TextRun] = []
    open_ = [_Group(0, "plain")]
    for piece, kind in zip(pieces, _kinds(pieces), strict=True):
        if piece.text == "(":
            open_.append(_Group(piece.origin, kind))
        if piece.text != ")":
            open_[-1].pieces.append(piece)
            continue
        group = open_.pop()
        if not open_:
            raise InvalidInput(f"unmatched ) at character {piece.origin}")
        group.pieces.append(piece)
        if group.kind == "call":
            open_[-1].pieces += group.pieces
            continue
        stand_in = _STAND_INS[group.kind].format(FIRST + len(runs))
        runs.append(_join([*group.pieces, Piece("", piece.origin + 1)]))
        open_[-1].pieces.append(Piece(stand_in, group.origin))
    if len(open_) > 1:
        raise InvalidInput(f"unmatched ( at character {open_[-1].origin}")
    return [*runs, _join([*open_[0].pieces, end])]


def spell_lone_arrays(pieces: Sequence[Piece], calls: Collection[str]) -> list[Piece]:
    """Write `(x)` as `(x, x)` where some calls take an array: `cql2` would take it for x.

    This is for names and NULL: that any other value is not an array can be seen in the tree.
    """
    words = [piece for piece in pieces if not piece.text.isspace()]
    lone: dict[int, Piece] = {}
    open_ = [False]  # of each open parenthesis, whether it belongs to one of the calls
    for n, word in enumerate(words):
        if word.text == "(":
            open_.append(n > 0 and words[n - 1].text in calls)
        elif word.text == ")":
            open_ = open_[:-1] or [False]
        elif open_[-2:] == [True, False] and _is_name_or_null(word.text):
            around = "".join(piece.text for piece in (*words[n - 2 : n], *words[n + 1 : n + 3]))
            if around in {"((),", "(())", ",(),", ",())"}:
                lone[word.origin] = word
    doubled = ([p, Piece(",", p.origin), p] if lone.get(p.origin) is p else [p] for p in pieces)
    return list(chain.from_iterable(doubled))


def _is_name_or_null(text: str) -> bool:
    return text[0] == "p" or text.lower() == "null"


def _count_levels(pieces: Sequence[Piece]) -> int:
    """Count how many parentheses are open at once, at most, those of calls aside."""
    if (count := sum(piece.text == "(" for piece in pieces)) <= _LEVELS_MAX:
        return count  # no need to look closer
    open_: list[bool] = []
    count = most = 0
    for piece, kind in zip(pieces, _kinds(pieces), strict=True):
        if piece.text == "(":
            open_.append(kind != "call")
            count += open_[-1]
            most = max(most, count)
        elif piece.text == ")" and open_:
            count -= open_.pop()
    return most


def _kinds(pieces: Sequence[Piece]) -> list[str]:
    """Classify what a parenthesis at each piece would be: plain, a list, or that of a call."""
    kinds: list[str] = []
    before = ""
    for piece in pieces:
        is_plain = not before[:1].isalpha() or before in _BEFORE_PLAIN
        kinds.append("plain" if is_plain else "list" if before == "in" else "call")
        before = before if piece.text.isspace() else piece.text.lower()
    return kinds


def _join(pieces: Sequence[Piece]) -> TextRun:
    texts: list[str] = []
    starts: list[int] = []
    length = 0
    for piece in pieces:
        if texts and _is_wordlike(texts[-1][-1:]) and _is_wordlike(piece.text[:1] or " "):
            texts.append(" ")  # two stand-ins in a row must not become one
            length += 1
        starts.append(length)
        texts.append(piece.text)
        length += len(piece.text)
    return TextRun("".join(texts), tuple(starts), tuple(piece.origin for piece in pieces))


def _is_wordlike(character: str) -> bool:
    return character.isalnum() or character in "_'."
