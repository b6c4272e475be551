"""What peers say to each other. A level counts from the leaves, which have level 0.

A *node* is a peer at one level; the children of a node of level l are nodes of level l - 1. Every
peer has one node at each level from 0 to its top, and a parent for the node at its top.
"""

from dataclasses import dataclass
from typing import Any, NewType

from contrada.overlay.boxes import Box

PeerId = NewType("PeerId", int)


@dataclass(frozen=True, slots=True)
class Entry:
    """A child as its parent knows it: the box of its subtree, and how many children it has."""

    id: PeerId
    box: Box
    count: int


@dataclass(frozen=True, slots=True)
class Report:
    """To the parent: I am your child, of this level, and this is how I am."""

    level: int
    box: Box
    count: int


@dataclass(frozen=True, slots=True)
class Accept:
    """To a child: you are mine. Or to a peer that asked with a ticket: this one is your parent."""

    level: int
    parent: PeerId
    ticket: int = 0


@dataclass(frozen=True, slots=True)
class Refuse:
    """To a peer that reports: you are no child of mine."""

    level: int


@dataclass(frozen=True, slots=True)
class Join:
    """A root asks for a parent, for itself and all below it.

    `at` is the level at which the receiver is to take it, -1 while it is on its way to the root.
    """

    entry: Entry
    level: int
    ticket: int
    at: int = -1
    hops: int = 0


@dataclass(frozen=True, slots=True)
class Leave:
    """To the parent: I am your child no more."""

    level: int


@dataclass(frozen=True, slots=True)
class Lead:
    """To a child: be the node of the levels from `base` on, with these children beside yourself.

    Without anybody above it is to be the root.
    """

    base: int
    lists: tuple[tuple[Entry, ...], ...]
    above: PeerId | None


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
    """To a child: give all your children of your top level to a sibling, and yourself."""

    level: int
    into: PeerId


@dataclass(frozen=True, slots=True)
class Give:
    """To a child: give so many children to a sibling, those that suit its box best."""

    level: int
    entry: Entry
    count: int


@dataclass(frozen=True, slots=True)
class Handed:
    """To the parent: these children of mine go to a sibling; I am gone myself if I had to."""

    level: int
    to: PeerId
    entries: tuple[Entry, ...]
    is_gone: bool


@dataclass(frozen=True, slots=True)
class Adopt:
    """To a child: these are yours now."""

    level: int
    entries: tuple[Entry, ...]


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
    | Moved
    | Replaced
    | Grown
    | Dissolve
    | Give
    | Handed
    | Adopt
    | Event
)
