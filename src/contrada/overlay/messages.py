"""What peers say to each other. A level counts from the leaves, which have level 0.

A *node* is a peer at one level; the children of a node of level l are nodes of level l - 1. Every
peer has one node at each level from 0 to its top, and a parent for the node at its top.
"""

from dataclasses import dataclass
from typing import Any, NewType

from contrada.overlay.boxes import Box
from contrada.overlay.cell_windows import Cells

PeerId = NewType("PeerId", int)
Wide = tuple[tuple[PeerId, Box], ...]  # peers with filters as wide as the universe


@dataclass(frozen=True, slots=True)
class Entry:
    """A node as its parent knows it: the box of its subtree, and how many children it has.

    `cells` says more closely what the filters in the box touch, if it is known. `wide` are the
    peers of the subtree that hang outside the boxes; None if they are too many to name, so that
    every event must come.
    """

    id: PeerId
    box: Box
    count: int
    cells: Cells | None = None
    wide: Wide | None = ()


@dataclass(frozen=True, slots=True)
class Report:
    """To the parent: I am your child, of this level, and this is how I am.

    `calm` is how long nothing has changed below, `deputy` who leads in case of a crash, `filter`
    the box of the peer itself.
    """

    level: int
    entry: Entry
    calm: float = 0.0
    deputy: PeerId | None = None
    filter: Box | None = None


@dataclass(frozen=True, slots=True)
class Accept:
    """To a child: you are mine. Or to a peer that asked with a ticket: this one is your parent.

    `calm` is how long nothing has changed in the whole tree, as far as is known; `deputy` is whom
    to turn to if the parent crashes.
    """

    level: int
    parent: PeerId
    ticket: int = 0
    calm: float = 0.0
    deputy: PeerId | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """To a peer that reports: I have no such level; ask my parent."""

    level: int
    above: PeerId


@dataclass(frozen=True, slots=True)
class Join:
    """A root asks for a parent, for itself and all below it.

    `at` is the level at which the receiver is to take it, -1 while it is on its way to the root;
    `climbed` is then the top of who passed it on, so that it climbs no ring.
    """

    entry: Entry
    level: int
    ticket: int
    at: int = -1
    hops: int = 0
    climbed: int = -1


@dataclass(frozen=True, slots=True)
class Leave:
    """To the parent: I am no longer your child."""

    level: int


@dataclass(frozen=True, slots=True)
class Lead:
    """To a child: be the node of the levels from `base` on, with these children besides yourself.

    `above` is the parent; the receiver itself if it is to be the root.
    """

    base: int
    lists: tuple[tuple[Entry, ...], ...]
    above: PeerId


@dataclass(frozen=True, slots=True)
class Copy:
    """To the deputy: what you are to lead if I crash, as in `Lead` from level 1 on.

    `heir` is the deputy of the parent above, in case that has crashed as well.
    """

    lists: tuple[tuple[Entry, ...], ...]
    above: PeerId
    heir: PeerId | None = None


@dataclass(frozen=True, slots=True)
class Took:
    """To the parent: I lead those from now on."""

    base: int


@dataclass(frozen=True, slots=True)
class Moved:
    """To a child: your parent is another now."""

    level: int
    to: PeerId


@dataclass(frozen=True, slots=True)
class Replaced:
    """To the parent: another takes my place among your children."""

    level: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class Grown:
    """To the parent: I have been split, and this is my new sibling."""

    level: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class Dissolve:
    """To a child: give all your children of your top level to these siblings, and yourself.

    If it is not forced, only if the siblings would need to grow less than the child is large.
    """

    level: int
    siblings: tuple[Entry, ...]
    is_forced: bool = True


@dataclass(frozen=True, slots=True)
class Give:
    """To a child: give so many children to a sibling, those that suit its box best."""

    level: int
    entry: Entry
    count: int


@dataclass(frozen=True, slots=True)
class Handed:
    """To the parent: these children of mine go to these siblings; I am gone myself if I had to."""

    level: int
    homes: tuple[PeerId, ...]
    entries: tuple[Entry, ...]
    is_gone: bool


@dataclass(frozen=True, slots=True)
class Adopt:
    """To a child: these are yours now."""

    level: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Seek:
    """A parent asks for a place where one of its children costs less.

    `path` are the nodes from the parent up as they would be without the child, `gain` is what they
    would be rid of, and `loss` what the nodes on the way down would cost more. `at` is the level of
    the receiving node on the way down, -1 on the way up.
    """

    asker: PeerId
    ticket: int
    entry: Entry
    level: int
    path: tuple[Entry, ...]
    gain: float
    loss: float = 0.0
    at: int = -1


@dataclass(frozen=True, slots=True)
class Offer:
    """To who was seeking: I take your child."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Event:
    """An event on its way: numbered by its publisher, with a box and whatever it carries.

    `level` is that of the node it is for on its way down, or that it comes from on its way up.
    """

    publisher: PeerId
    number: int
    box: Box
    payload: Any
    level: int
    is_rising: bool


Message = (
    Report
    | Accept
    | Refuse
    | Join
    | Leave
    | Lead
    | Copy
    | Took
    | Moved
    | Replaced
    | Grown
    | Dissolve
    | Give
    | Handed
    | Adopt
    | Seek
    | Offer
    | Event
)
