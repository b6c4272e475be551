"""What a peer remembers: its children at each level, and its parent.

All of it may be garbage at any time, except who the peer is and what its filter is. Much of the
paper's state cannot be wrong here because it is not stored: a peer is its own child at every level
above its leaf, its own parent below its top, and its levels are contiguous.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any

from contrada.errors import InvalidInput
from contrada.overlay.boxes import (
    Box,
    Space,
    join,
    join_all,
    meets,
    nothing,
)
from contrada.overlay.cell_windows import Cells, cover, unite
from contrada.overlay.messages import Copy, Entry, PeerId, Wide
from contrada.overlay.splitting import SPLITS

NEVER = -1e9
PEER_FILTERS_MAX = 256  # of one peer
TICKET_MAX = 2**53
JUDGED_EVENTS_MAX = 64  # events by which a leader is judged
FORMERS_MAX = 64
LEAVING_MAX = 256
DUE_MAX = 64  # nodes on their way to a child that are remembered
WIDE_MAX = 64  # peers outside the boxes of which a node tells its parent
M_MAX = 32
_CROWD = 4  # times M: how many children a node may have until it is split
CHILDREN_MAX = _CROWD * M_MAX  # of any node, by which messages are bounded
HEIGHT_MAX = 48  # levels of a peer: enough for any number of peers, and a bound for garbage


@dataclass(frozen=True, slots=True)
class Settings:
    """What all peers of an overlay have in common.

    A node has from m to M children, the root from two. `period` is the time between two ticks; a
    neighbour that is silent for `patience` of them is given up.

    What goes beyond the paper can be switched off: `summaries` of cells on the links, `deputies`
    that take over from a crashed peer, and `moving` children to parents that need to grow less.
    `swapping` is the paper's reorganisation by observed false positives.
    """

    space: Space
    m: int = 4
    M: int = 10
    split: str = "rstar"
    period: float = 1.0
    patience: float = 3.5
    summaries: bool = True
    deputies: bool = True
    moving: bool = True
    swapping: bool = False

    @property
    def children_max(self) -> int:
        """How many children a node may have until it is split; more are turned away."""
        return _CROWD * self.M

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not (isinstance(self.m, int) and isinstance(self.M, int) and 2 <= self.m <= self.M // 2):
            raise InvalidInput(f"m must be at least 2 and at most M / 2: m={self.m}, M={self.M}")
        for name in ("period", "patience"):
            if not 0 < getattr(self, name) < inf:
                raise InvalidInput(f"{name} must be more than 0, not {getattr(self, name)}")
        if self.M > M_MAX:
            raise InvalidInput(f"M must be at most {M_MAX}, not {self.M}")
        if self.split not in SPLITS:
            raise InvalidInput(f"unknown split {self.split!r}; choose one of {', '.join(SPLITS)}")


@dataclass(slots=True)
class Child:
    """What a parent knows of a child, and when it last heard of it."""

    box: Box
    count: int
    heard: float
    cells: Cells | None = None
    wide: Wide | None = ()
    calm: float = 0.0
    is_sure: bool = False  # has reported itself
    deputy: PeerId | None = None
    filter: Box | None = None  # of the peer itself
    due: list[Entry] = field(default_factory=list)  # nodes that it has been told to adopt
    due_since: float = NEVER

    def entry(self, id_: PeerId) -> Entry:
        """Describe the node, as far as is known."""
        return Entry(id_, self.box, max(0, self.count), self.cells, self.wide)

    def meets(self, box: Box, space: Space) -> bool:
        """Whether an event may concern somebody below."""
        if self.wide is None:
            return True
        return meets(self.box, box) and (self.cells is None or self.cells.meets(box, space))

    def widen(self, entry: Entry, space: Space) -> None:
        """Count in a node that is on its way to some place below."""
        self.box = join(self.box, entry.box)
        if self.cells is not None:
            self.cells = unite([self.cells, entry.cells or cover(entry.box, space)])
        self.wide = unite_wide([self.wide, entry.wide])

    def expect(self, entries: Iterable[Entry], space: Space, now: float) -> None:
        """Count in nodes that this child has just been told to adopt."""
        self.due += entries
        del self.due[:-DUE_MAX]
        self.due_since = now
        for entry in self.due:
            self.widen(entry, space)


def unite_wide(lists: Iterable[Wide | None]) -> Wide | None:
    """Make one list of several; None if there are too many to name."""
    lists = list(lists)
    named = name_wide(lists)
    return None if None in lists or len(named) > WIDE_MAX else tuple(named.items())


def name_wide(lists: Iterable[Wide | None]) -> dict[PeerId, Box]:
    """Join what is known of each peer: some of it may be old."""
    named: dict[PeerId, Box] = {}
    for wide in lists:
        for id_, box in wide or ():
            named[id_] = join(named[id_], box) if id_ in named else box
    return named


def _note(memory: dict[PeerId, Any], id_: PeerId, value: Any, most: int) -> None:
    """Remember of a peer what is new, and forget the oldest if there is too much."""
    memory.pop(id_, None)
    memory[id_] = value
    while len(memory) > most:
        del memory[next(iter(memory))]


def make_child(entry: Entry, now: float) -> Child:
    """Make a child of a node that somebody has described."""
    return Child(entry.box, entry.count, now, entry.cells, entry.wide)


@dataclass(slots=True)
class Promise:
    """A lead that was offered to a child: of one half of a node, or of all levels from one on."""

    to: PeerId
    base: int
    above: PeerId  # the parent that it will have
    ids: tuple[PeerId, ...]
    is_split: bool
    since: float


@dataclass(slots=True)
class Seeking:
    """The last request for a better place for a child, and how long until the next."""

    ticket: int = 0
    level: int = 0
    child: PeerId | None = None
    turn: int = 0
    asked: float = NEVER
    done: int = 0  # the places of the children when no better ones were found
    home: PeerId | None = None  # who has offered a place
    offered: float = 0.0  # and when


@dataclass(slots=True)
class State:
    """The memory of a peer. `levels[l]` are its children at level l other than itself."""

    id: PeerId
    filters: tuple[Box, ...]
    settings: Settings
    is_wide: bool = field(init=False)  # some filter is as wide as the universe
    filter: Box = field(init=False)  # around all but those, which hang outside the boxes
    levels: list[dict[PeerId, Child]] = field(default_factory=lambda: [{}])
    parent: PeerId = field(init=False)
    formers: dict[PeerId, float] = field(default_factory=dict)  # former parents, and when they were
    bridge: PeerId | None = None  # the last of them that has answered, until the parent does
    heard: float = 0.0  # of the parent
    moved: float = NEVER  # to the parent
    redirects: int = 0  # since a parent has accepted
    promise: Promise | None = None
    ticket: int = 0  # of the last request to join
    asked: float = NEVER  # when that was
    contact: PeerId | None = None  # whom it was sent to
    compacted: float = NEVER  # when a child was last told to dissolve
    shape: int = 0  # of the children, at the last tick
    changed: float = NEVER  # when it was another
    calm: float = 0.0  # how long the whole tree has been calm, as the parent says
    seeking: Seeking = field(default_factory=Seeking)
    leaving: dict[PeerId, Child] = field(default_factory=dict)  # who has moved to another parent
    sent: Entry | None = None  # to the parent
    crowded: float = NEVER  # when that named no wide peers, as they were too many
    deputy: PeerId | None = None
    heir: PeerId | None = None  # the parent's deputy
    copy: Copy | None = None  # of the parent's lists, if this peer is the deputy
    recent: list[Box] = field(default_factory=list)  # events handled

    def __post_init__(self) -> None:
        """Begin as the root of a tree of one."""
        self.parent = self.id
        self.set_filters(self.filters)

    def set_filters(self, filters: tuple[Box, ...]) -> None:
        """Change the filters."""
        space = self.settings.space
        bounded = [box for box in filters if not space.is_wide(box)]
        self.filters = filters
        self.filter = join_all([nothing(space.dimensions), *bounded])
        self.is_wide = len(bounded) < len(filters)

    def wants(self, box: Box) -> bool:
        """Whether an event meets a filter of the peer itself."""
        return any(meets(filter_, box) for filter_ in self.filters)

    @property
    def top(self) -> int:
        """The highest level; what may lie above is garbage that no message can speak of."""
        return min(len(self.levels), HEIGHT_MAX) - 1

    @property
    def is_root(self) -> bool:
        """Whether there is no other parent."""
        return self.parent == self.id

    def count(self, level: int) -> int:
        """Count the children of the node at a level, the peer itself among them."""
        return len(self.levels[level]) + 1 if level else 0

    def children(self, level: int) -> dict[PeerId, Child]:
        """Return the children of the node at a level, none if there is no such node."""
        return self.levels[level] if 1 <= level <= self.top else {}

    def box(self, level: int) -> Box:
        """Return the box around the subtree of the node at a level."""
        box = self.filter
        for children in self.levels[1 : level + 1]:
            for child in children.values():
                box = join(box, child.box)
        return box

    def entry(self, level: int) -> Entry:
        """Describe the node at a level, in short."""
        return Entry(self.id, self.box(level), self.count(level))

    def describe(self, level: int) -> Entry:
        """Describe the node at a level as its parent should know it."""
        if level == 0 and not self.is_wide and len(self.filters) == 1:
            return Entry(self.id, self.filter, 0)
        box, cells, wide = self.box(level), self.cells(level), self.wide(level)
        return Entry(self.id, box, self.count(level), cells, wide)

    def entries(self, level: int) -> list[Entry]:
        """List the children of the node at a level, the peer itself first."""
        children = self.levels[level].items()
        others = [child.entry(id_) for id_, child in children if id_ != self.id]
        return [self.entry(level - 1), *others]

    def cells(self, level: int) -> Cells | None:
        """Return the cells that the filters below a node touch; None if a box says as much."""
        space = self.settings.space
        is_simple = level == 0 and len(self.filters) <= 1
        if not self.settings.summaries or is_simple:
            return None
        own = [cover(box, space) for box in self.filters if not space.is_wide(box)]
        below = [
            child.cells or cover(child.box, space)
            for children in self.levels[1 : level + 1]
            for child in children.values()
        ]
        return unite([*own, *below])

    def wide(self, level: int) -> Wide | None:
        """List the peers below a node that hang outside the boxes, with their filters' box."""
        return unite_wide(self._wide_lists(level))

    def named_wide(self, level: int) -> dict[PeerId, Box]:
        """List those of them that are named, however many they are."""
        return name_wide(self._wide_lists(level))

    def _wide_lists(self, level: int) -> list[Wide | None]:
        own: list[Wide | None] = [((self.id, join_all(self.filters)),)] if self.is_wide else []
        below = (*self.levels[1 : level + 1], self.leaving)  # those are on their way
        return own + [c.wide for children in below for c in children.values() if c.wide != ()]

    def see_shape(self) -> int:
        """Number the set of children; the number changes when the set does."""
        return hash(tuple(map(tuple, self.levels)))

    def see_places(self) -> int:
        """Number the children and their boxes; the number changes when one of them does."""
        return hash(tuple((id_, c.box) for level in self.levels for id_, c in level.items()))

    def stay_calm(self) -> None:
        """Do not take the last change for trouble: it was meant to be."""
        self.shape = self.see_shape()

    def calm_below(self, now: float) -> float:
        """Return for how long nothing has changed here or below."""
        calm = now - self.changed
        for children in self.levels:
            for child in children.values():
                calm = min(calm, child.calm)
        return max(0.0, calm)

    def calm_everywhere(self, now: float) -> float:
        """Return for how long nothing has changed in the tree, as far as is known."""
        below = self.calm_below(now)
        return below if self.is_root else max(0.0, min(below, self.calm))

    def choose_deputy(self) -> None:
        """Choose the child that is to lead all levels if this peer crashes."""
        sure = []
        if self.settings.deputies and self.top > 0:
            sure = [e for e in self.entries(1)[1:] if self.levels[1][e.id].is_sure]
        self.deputy = max(sure, key=self.rank).id if sure else None

    def rank(self, entry: Entry) -> tuple[float, float, int]:
        """Rank a node as a leader: by what it covers, and so that no two are equal."""
        return (*self.settings.space.size(entry.box), entry.id)

    def is_sure(self, level: int, id_: PeerId) -> bool:
        """Whether a child has itself said that it is one."""
        return id_ == self.id or self.levels[level][id_].is_sure

    def release(self, level: int, id_: PeerId, now: float) -> Child:
        """Let a child go; for a while what comes for it is passed on, and its reports are late."""
        child = self.levels[level].pop(id_)
        self.see_off(id_, child, now)
        return child

    def see_off(self, id_: PeerId, child: Child, now: float) -> None:
        """Pass on for a while what comes for a node that is on its way elsewhere."""
        child.heard = now
        _note(self.leaving, id_, child, LEAVING_MAX)

    def truncate(self, height: int, parent: PeerId, now: float) -> None:
        """Keep so many levels, below another parent; what comes for the others is passed on."""
        for children in self.levels[height:]:
            for id_, child in children.items():
                self.see_off(id_, child, now)
        del self.levels[height:]
        self.move_to(parent, now)

    def move_to(self, parent: PeerId, now: float) -> None:
        """Change the parent."""
        self.turn_from(self.parent, now)
        if self.bridge is None:
            self.bridge = self.parent
        self.parent = parent
        self.heard = self.moved = now

    def turn_from(self, parent: PeerId, now: float) -> None:
        """Remember a parent as a former one."""
        _note(self.formers, parent, now, FORMERS_MAX)

    def be_root(self) -> None:
        """Become a root, and ask for a parent soon."""
        self.parent = self.id
        self.asked = NEVER
