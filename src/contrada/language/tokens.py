"""CQL2 text with its atoms masked, so that `cql2` parses the structure and we read the atoms.

The `cql2` package rounds integers above 2^53, refuses WKT numbers with exponents and forgets
positions. So every name, number, string and geometry is replaced by a numbered stand-in before
parsing, and put back from the original text, exactly and with its position, afterwards.
"""

import re
from dataclasses import dataclass

from contrada.errors import InvalidInput
from contrada.language.groups import FIRST, Piece, TextRun, divide, spell_lone_arrays
from contrada.language.lexemes import (
    CALL,
    NAME,
    NUMBER,
    QUOTED_NAME,
    RESERVED,
    STRING,
    WKT_OPENING,
)
from contrada.language.operators import ARRAY
from contrada.limits import (
    PREDICATE_ATOMS_MAX,
    PREDICATE_DEPTH_MAX,
    PREDICATE_JOINS_MAX,
    PREDICATE_LENGTH_MAX,
    PREDICATE_NESTING_MAX,
    PREDICATE_TOKENS_MAX,
)

EMPTY_ARRAY = "e0"  # the stand-in of `()`, which `cql2` does not take
SIGN_AFTER_NOT = "0 + -"  # `cql2` takes no sign right after NOT; the 0 is taken out of its tree

_OPERATOR = re.compile(r"not|like|between|in|is|div|[^\w\s'(),]", re.IGNORECASE)
_BEFORE_VALUES = frozenset(("", "(", ",", "and", "or", "not"))
_ARRAY_CALLS = frozenset(name.lower() for name in ARRAY)
_CALL = re.compile(CALL)
_EMPTY = re.compile(r"\(\s*\)")
_LITERAL = frozenset("date timestamp interval bbox".split())
_MOMENTS = frozenset(("date", "timestamp"))
_TOKEN = re.compile(
    rf"""
      (?P<string>{STRING})
    | (?P<quoted>{QUOTED_NAME})
    | (?P<number>{NUMBER})
    | (?P<name>{NAME})
    | (?P<other>\s+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_WKT = re.compile(WKT_OPENING)


@dataclass(frozen=True, slots=True)
class Atom:
    """A piece of the original text: what it is, what it says, where it stands."""

    kind: str  # "string", "name", "number" or "geometry"
    text: str
    position: int
    is_negative: bool = False


@dataclass(frozen=True, slots=True)
class Masked:
    """The runs of text for `cql2`, the whole last, and the atoms behind their stand-ins."""

    runs: list[TextRun]
    atoms: tuple[Atom, ...]
    original: str
    chained_at: int | None  # where a test follows another, as in `a < b < c`


@dataclass(slots=True)
class _Level:
    """What stands within an open parenthesis, since its last comma, AND or OR."""

    operators: int = 0
    betweens: int = 0  # those that still wait for their AND
    moment: str = ""  # DATE or TIMESTAMP, if it opens the parenthesis
    tested_at: int | None = None  # where the last sign or word of a test stands


class _Nesting:
    """How deep `cql2` must go: open parentheses, and operators that wait for their operands.

    It recurses without a limit of its own and would take the process with it. An AND or OR ends
    the operators before it, but for the AND of a BETWEEN.
    """

    def __init__(self) -> None:
        self.chained_at: int | None = None
        self._levels = [_Level()]
        self._depth = 0
        self._joins = 0
        self._last = ""  # the last word or sign

    def add(self, piece: str, position: int) -> None:
        """Take the next token into account; refuse it where it leads too deep."""
        word, level = piece.lower(), self._levels[-1]
        if word.isspace():
            return
        before, self._last = self._last, word
        if word == "," and level.moment:  # `cql2` would forget what follows
            raise InvalidInput(f"{level.moment} takes 1 argument at character {position}")
        if word == "(":
            self._levels.append(_Level(moment=before.upper() if before in _MOMENTS else ""))
            self._depth += 1
        elif word == ")":
            self._close()
        elif word == "and" and level.betweens:
            self._joins += 1
            level.betweens -= 1
        elif word in {"and", "or", ","}:
            self._joins += word != ","
            self._depth -= level.operators
            self._levels[-1] = _Level()
        elif _OPERATOR.fullmatch(word):
            self._depth += 1
            level.operators += 1
            level.betweens += word == "between"
            self._test(word, position)
        else:
            return
        if self._depth > PREDICATE_NESTING_MAX:
            what = f"{PREDICATE_NESTING_MAX} open parentheses and operators (PREDICATE_NESTING_MAX)"
            raise InvalidInput(f"more than {what} at character {position}")
        if self._joins > PREDICATE_JOINS_MAX:
            what = f"{PREDICATE_JOINS_MAX} ANDs and ORs (PREDICATE_JOINS_MAX)"
            raise InvalidInput(f"more than {what} at character {position}")

    def _close(self) -> None:
        closed = self._levels.pop()
        self._depth -= closed.operators + (len(self._levels) > 0)
        self._levels = self._levels or [_Level()]

    def _test(self, word: str, position: int) -> None:
        """Note a test right after another; the two signs of `<=` are one test."""
        is_sign = word in {"<", ">", "="}
        if not is_sign and word not in {"like", "between", "in", "is"}:
            return
        level = self._levels[-1]
        goes_on = is_sign and level.tested_at == position - 1
        if level.tested_at is not None and not goes_on and self.chained_at is None:
            self.chained_at = position
        level.tested_at = position


def check_length(text: str) -> None:
    """Refuse a text that is too long to be read."""
    if len(text) > PREDICATE_LENGTH_MAX:
        what = f"{PREDICATE_LENGTH_MAX:,} characters (PREDICATE_LENGTH_MAX)"
        raise InvalidInput(f"a predicate may have at most {what}, not {len(text):,}")


def mask(text: str) -> Masked:
    """Replace every atom of a CQL2 text by a stand-in."""
    check_length(text)
    pieces: list[Piece] = []
    atoms: list[Atom] = []
    nesting = _Nesting()
    position = 0
    last = before = ""  # the last piece that is not white space, and the one before it
    while position < len(text):
        piece, end = _next(text, position, atoms)
        empty = _EMPTY.match(text, position)
        if empty is not None and (not last[:1].isalpha() or last in RESERVED):
            piece, end = f"({EMPTY_ARRAY})" if last == "in" else EMPTY_ARRAY, empty.end()
        nesting.add(piece, position)
        if len(pieces) == PREDICATE_TOKENS_MAX:
            what = f"{PREDICATE_TOKENS_MAX:,} words, symbols and spaces (PREDICATE_TOKENS_MAX)"
            raise InvalidInput(f"more than {what} at character {position}")
        if piece == "-" and last == "not":
            piece = SIGN_AFTER_NOT
        if piece.lower() == "in" and (before if last == "not" else last) in _BEFORE_VALUES:
            raise InvalidInput(f"no value before IN at character {position}")
        if not piece.isspace():
            last, before = piece.lower(), last
        pieces.append(Piece(piece, position))
        position = end
    calls = {f"f{FIRST + i}" for i, atom in enumerate(atoms) if atom.text.lower() in _ARRAY_CALLS}
    if calls:
        pieces = spell_lone_arrays(pieces, calls)
    return Masked(divide(pieces, len(text)), tuple(atoms), text, nesting.chained_at)


def _next(text: str, position: int, atoms: list[Atom]) -> tuple[str, int]:
    """Return the stand-in for the token at a position, and where the token ends."""
    found = _TOKEN.match(text, position)
    assert found is not None
    kind, word, end = found.lastgroup, found.group(), found.end()
    if kind == "name":
        wkt = _WKT.match(text, position)
        if wkt is not None:
            end = _geometry_end(text, position, wkt.end())
            return f"POINT({_add(atoms, 'geometry', text[position:end], position)} 0)", end
        is_call = _CALL.match(text, end) is not None
        if word.lower() in RESERVED or (is_call and word.lower() in _LITERAL):
            return word, end
        letter = "f" if is_call else "p"
        return f"{letter}{_add(atoms, 'name', word, position)}", end
    if kind == "quoted":
        letter = "f" if _CALL.match(text, end) else "p"
        name = word[1:-1].replace('""', '"')
        return f"{letter}{_add(atoms, 'name', name, position)}", end
    if kind == "string":
        return f"'{_add(atoms, 'string', word[1:-1].replace(chr(39) * 2, chr(39)), position)}'", end
    if kind == "number":
        return str(_add(atoms, "number", word, position)), end
    return word, end


def _add(atoms: list[Atom], kind: str, text: str, position: int) -> int:
    if len(atoms) == PREDICATE_ATOMS_MAX:
        what = f"{PREDICATE_ATOMS_MAX:,} names, numbers, strings and geometries"
        raise InvalidInput(f"more than {what} (PREDICATE_ATOMS_MAX) at character {position}")
    atoms.append(Atom(kind, text, position))
    return FIRST + len(atoms) - 1


def _geometry_end(text: str, origin: int, start: int) -> int:
    """Find the end of a WKT literal at `origin` whose coordinates, or EMPTY, begin at `start`."""
    if text[start] != "(":
        return start + len("empty")
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return position + 1
        if depth > PREDICATE_DEPTH_MAX:
            what = f"{PREDICATE_DEPTH_MAX} levels deep (PREDICATE_DEPTH_MAX)"
            raise InvalidInput(f"nested more than {what} at character {position}")
    raise InvalidInput(
        f"the geometry that starts at character {origin} is not closed, "
        f'near "{text[origin : origin + 24]}"'
    )


def is_plain_name(name: str) -> bool:
    """Whether a name may stand in a text without quotes."""
    found = _TOKEN.match(name)
    is_whole = found is not None and found.lastgroup == "name" and found.end() == len(name)
    is_plain = is_whole and name[0].isalpha() and not name.endswith((".", ":"))
    return is_plain and name.lower() not in RESERVED
