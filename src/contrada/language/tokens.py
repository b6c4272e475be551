"""CQL2 text with its atoms masked, so that `cql2` parses the structure and we read the atoms.

The `cql2` package rounds integers above 2^53, refuses WKT numbers with exponents and forgets
positions. So every name, number, string and geometry is replaced by a numbered stand-in before
parsing, and put back from the original text, exactly and with its position, afterwards.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass

from contrada.errors import InvalidInput

DEPTH_MAX = 200
FIRST = 1000  # stand-ins count from here, so that the -1 of a unary minus is none of them

_RESERVED = frozenset("and or not like between in is null true false div".split())
_BUILT_IN = re.compile(r"(s|t|a)_[a-z]+|casei|accenti|date|timestamp|interval|bbox", re.IGNORECASE)
_TOKEN = re.compile(
    r"""
      (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*")
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>[^\W\d][\w.:]*)
    | (?P<other>\s+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_WKT = re.compile(
    r"(?:(?:multi)?(?:point|linestring|polygon|curve|surface)|geometrycollection|circularstring|"
    r"compoundcurve|curvepolygon)(?:\s*(?:zm|z|m))?\s*(?=\(|empty\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Atom:
    """A piece of the original text: what it is, what it says, where it stands."""

    kind: str  # "string", "name", "number" or "geometry"
    text: str
    position: int
    is_negative: bool = False


@dataclass(frozen=True, slots=True)
class Masked:
    """The text for `cql2`, the atoms behind its stand-ins, and the way back to the original."""

    text: str
    atoms: tuple[Atom, ...]
    original: str
    starts: tuple[int, ...]  # offsets in `text` at which a token begins …
    origins: tuple[int, ...]  # … and the offsets in `original` from which it came

    def origin(self, offset: int) -> int:
        """Give the place in the original text from which a place in the masked text came."""
        token = bisect_right(self.starts, offset) - 1
        return self.origins[token] if token >= 0 else 0


def mask(text: str) -> Masked:
    """Replace every atom of a CQL2 text by a stand-in."""
    pieces: list[str] = []
    atoms: list[Atom] = []
    starts: list[int] = []
    origins: list[int] = []
    length = position = depth = 0
    while position < len(text):
        piece, end = _next(text, position, atoms)
        depth += (piece == "(") - (piece == ")")
        if depth > DEPTH_MAX:
            raise InvalidInput(f"more than {DEPTH_MAX} levels deep at character {position}")
        starts.append(length)
        origins.append(position)
        pieces.append(piece)
        length += len(piece)
        position = end
    starts.append(length)
    origins.append(len(text))
    return Masked("".join(pieces), tuple(atoms), text, tuple(starts), tuple(origins))


def _next(text: str, position: int, atoms: list[Atom]) -> tuple[str, int]:
    """Give the stand-in for the token at a position, and where the token ends."""
    found = _TOKEN.match(text, position)
    assert found is not None
    kind, word, end = found.lastgroup, found.group(), found.end()
    if kind == "name":
        wkt = _WKT.match(text, position)
        if wkt is not None:
            end = _geometry_end(text, wkt.end())
            return f"POINT({_add(atoms, 'geometry', text[position:end], position)} 0)", end
        is_call = text[end:].lstrip().startswith("(")
        if word.lower() in _RESERVED or (is_call and _BUILT_IN.fullmatch(word)):
            return word, end
        letter = "f" if is_call else "p"
        return f"{letter}{_add(atoms, 'name', word, position)}", end
    if kind == "quoted":
        letter = "f" if text[end:].lstrip().startswith("(") else "p"
        name = word[1:-1].replace('""', '"')
        return f"{letter}{_add(atoms, 'name', name, position)}", end
    if kind == "string":
        return f"'{_add(atoms, 'string', word[1:-1].replace(chr(39) * 2, chr(39)), position)}'", end
    if kind == "number":
        return str(_add(atoms, "number", word, position)), end
    return word, end


def _add(atoms: list[Atom], kind: str, text: str, position: int) -> int:
    atoms.append(Atom(kind, text, position))
    return FIRST + len(atoms) - 1


def _geometry_end(text: str, start: int) -> int:
    """Find the end of a WKT literal whose coordinates, or EMPTY, begin at `start`."""
    if text[start] != "(":
        return start + len("empty")
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return position + 1
    raise InvalidInput(
        f'the geometry at character {start} has no end, near "{text[start : start + 24]}"'
    )


def is_plain_name(name: str) -> bool:
    """Tell whether a name may stand in a text without quotes."""
    found = _TOKEN.match(name)
    is_whole = found is not None and found.lastgroup == "name" and found.end() == len(name)
    return is_whole and name.lower() not in _RESERVED and not name.endswith((".", ":"))
