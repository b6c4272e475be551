"""What a peer remembers: its children at each level, and its parent.

All of it may be garbage at any time, except who the peer is and what its filter is. Much of the
paper's state cannot be wrong here because it is not stored: a peer is its own child at every level
above its leaf, its own parent below its top, and its levels are contiguous.
"""

from dataclasses import dataclass, field
from typing import Any

from contrada.errors import InvalidInput
from contrada.overlay.boxes import Box, Space, is_box, join
from contrada.overlay.messages import Entry, PeerId
from contrada.overlay.splitting import SPLITS

HEIGHT_MAX = 48  # levels of a peer: enough for any number of peers, and a bound for garbage


@dataclass(frozen=True, slots=True)
class Settings:
    """What all peers of an overlay have in common.

    A node has from m to M children, the root from two. `period` is the time between two ticks; a
    neighbour that was not heard of for `patience` of them is given up.

    What goes beyond the paper can be switched off: `summaries` of cells on the links, `deputies`
    that take over from a crashed peer, and `moving` children to parents that need grow less.
    `swapping` is the paper's reorganisation by observed false positives.
    """

    space: Space
    m: int = 4
    M: int = 10
    split: str = "quadratic"
    period: float = 1.0
    patience: float = 3.5
    summaries: bool = True
    deputies: bool = True
    moving: bool = True
    swapping: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not 2 <= self.m <= self.M // 2:
            raise InvalidInput(f"m must be at least 2 and at most M / 2: m={self.m}, M={self.M}")
        if self.split not in SPLITS:
            raise InvalidInput(f"unknown split {self.split!r}; there are {', '.join(SPLITS)}")


@dataclass(slots=True)
class Child:
    """What a parent knows of a child, and when it last heard of it."""

    box: Box
    count: int
    heard: float


@dataclass(slots=True)
class State:
    """The memory of a peer. `levels[l]` are its children at level l other than itself."""

    id: PeerId
    filter: Box
    settings: Settings
    levels: list[dict[PeerId, Child]] = field(default_factory=lambda: [{}])
    parent: PeerId = field(init=False)
    heard: float = 0.0  # of the parent
    moved: float = -1e9  # to the parent
    ticket: int = 0  # of the last request to join
    asked: float = -1e9  # when that was

    def __post_init__(self) -> None:
        """Begin as the root of a tree of one."""
        self.parent = self.id

    @property
    def top(self) -> int:
        """Give the highest level."""
        return len(self.levels) - 1

    @property
    def is_root(self) -> bool:
        """Tell whether there is no other parent."""
        return self.parent == self.id

    def count(self, level: int) -> int:
        """Count the children of the node at a level, the peer itself among them."""
        return len(self.levels[level]) + 1 if level else 0

    def box(self, level: int) -> Box:
        """Give the box around the subtree of the node at a level."""
        box = self.filter
        for children in self.levels[1 : level + 1]:
            for child in children.values():
                box = join(box, child.box)
        return box

    def entry(self, level: int) -> Entry:
        """Say how the node at a level is, as its parent should know it."""
        return Entry(self.id, self.box(level), self.count(level))

    def entries(self, level: int) -> list[Entry]:
        """List the children of the node at a level, the peer itself first."""
        others = [Entry(id_, c.box, c.count) for id_, c in self.levels[level].items()]
        return [self.entry(level - 1), *others]

    def rank(self, entry: Entry) -> tuple[float, float, int]:
        """Rank a node as a leader: by what it covers, and so that no two are equal."""
        return (*self.settings.space.size(entry.box), entry.id)

    def truncate(self, height: int, parent: PeerId, now: float) -> None:
        """Keep so many levels, below another parent."""
        del self.levels[height:]
        self.parent = parent
        self.heard = self.moved = now

    def sanitise(self, now: float) -> None:
        """Throw out what no peer could have written, wherever it came from."""
        levels: Any = self.levels
        if not isinstance(levels, list) or not levels:
            self.levels = [{}]
        del self.levels[HEIGHT_MAX:]
        self.levels[0] = {}
        dimensions = self.settings.space.dimensions
        for level, children in enumerate(self.levels):
            for id_ in [
                id_
                for id_, child in children.items()
                if id_ == self.id or not _is_sound(child, level, dimensions)
            ]:
                del children[id_]
            for child in children.values():
                child.heard = min(child.heard, now)
        self.heard = min(self.heard, now)
        self.moved = min(self.moved, now)
        self.asked = min(self.asked, now)


def _is_sound(child: Child, level: int, dimensions: int) -> bool:
    return level > 0 and is_box(child.box, dimensions) and child.count >= 0
