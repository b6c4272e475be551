"""What an engine is: a way to index a fixed set of subscriptions and ask it about events."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Protocol

from contrada.arrays import Geometries, Positions
from contrada.errors import InvalidInput
from contrada.matching.anchors import AnchorList, list_anchors
from contrada.matching.columns import EventBatch
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import Event
from contrada.model.geometry import Fault
from contrada.model.subscription import Constraint, Filter, Subscription
from contrada.showing import brief


class Index(Protocol):
    """Subscriptions by position, ready to be matched. It never changes after it is made."""

    def find(self, event: Event, groups: Positions) -> Positions:
        """Find a position of each group that an event satisfies, in any order.

        `groups` numbers the group of each position, below the number of positions; a group that
        is found need not be looked at again, and a position with a negative group not at all.
        """

    def match_batch(self, batch: EventBatch) -> tuple[Positions, Positions]:
        """Find all pairs of row and position that match, each once, in any order."""

    def prepare(self, like: "Sequence[Index]") -> None:
        """Make now what those who ask will need, as far as that can be told beforehand.

        What has been asked of indexes that are `like` this one will be asked of it, too.
        """

    def without(self, positions: Collection[int]) -> "Index":
        """Make an index that need not find some positions; this one stays as it is."""

    def breadth(self) -> int:
        """Count the filters that any event may satisfy, whatever it holds."""

    def stats(self) -> dict[str, int]:
        """Count what the index holds."""


MakeIndex = Callable[[SubscriptionColumns], Index]
Describe = Callable[[Filter], list[str]]
Effort = Callable[[Constraint], int]
FindFaults = Callable[[Geometries], dict[int, Fault]]
ListAnchors = Callable[[SubscriptionColumns], AnchorList]


def find_no_faults(_: Geometries) -> dict[int, Fault]:
    """Find nothing wrong with any geometry of an event."""
    return {}


@dataclass(frozen=True, slots=True)
class Engine:
    """How to index subscriptions, and what others must know of the index that comes out of it.

    `describe` says in words what serves each constraint of a filter. `effort` ranks constraints:
    of two that say the same the simplifier keeps the one with the lower rank. An engine without
    it gets predicates as they are, since the simplifier reasons about relations exactly, and where
    they are approximate it would change answers. `check` refuses subscriptions,
    `find_event_faults` events. `list_anchors` says where in space subscriptions can be satisfied
    at all.
    """

    make_index: MakeIndex
    describe: Describe
    effort: Effort | None
    check: Callable[[Subscription], None] | None = None
    find_event_faults: FindFaults = find_no_faults
    list_anchors: ListAnchors = list_anchors

    @property
    def is_exact(self) -> bool:
        """Whether its answers are those of evaluation."""
        return self.effort is not None


@dataclass(frozen=True, slots=True)
class EngineKind:
    """An engine by name: one line about it, and how it is made; its options are the arguments."""

    name: str
    line: str
    make: Callable[..., Engine]

    def options(self) -> list[str]:
        """List the names of the options."""
        return list(signature(self.make).parameters)

    def with_options(self, options: Mapping[str, Any]) -> Engine:
        """Make the engine, and refuse options that it does not have."""
        known = self.options()
        for option in options:
            if option not in known:
                offered = ", ".join(known) or "none"
                raise InvalidInput(
                    f"engine {self.name!r} has no option {option!r}; it has: {offered}"
                )
        return self.make(**options)


def check_choice(option: str, value: Any, choices: Collection[str]) -> None:
    """Refuse what is none of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInput(f"unknown {option} {brief(value)}; choose one of {', '.join(choices)}")
