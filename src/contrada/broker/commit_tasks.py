"""What waits to be committed: events, changes and cursors, each with the future of its answer."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from contrada.broker.incoming_events import BadEvent, IncomingEvents


@dataclass(frozen=True, slots=True)
class Changed:
    """A change that is on disk: its position, and what it was.

    `is_new` says that the name was not there before, `is_changed` that anything changed at all.
    `details` are further members of the answer.
    """

    position: str
    is_new: bool = False
    is_changed: bool = True
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PublishAnswer:
    """Events that are on disk: how many, where the last one is, and how many matches they have.

    `repeated` counts those that were there already, which count as accepted; `errors` are those
    that are not stored, by their index in what was sent.
    """

    accepted: int
    position: str
    matches: int
    errors: list[BadEvent]
    repeated: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PublishTask:
    """Events of one request."""

    events: IncomingEvents
    all_or_none: bool
    future: "Future[PublishAnswer]" = field(default_factory=Future)

    @property
    def nbytes(self) -> int:
        """About how much memory it holds."""
        return sum(map(len, self.events.texts))


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """What became of a change in a transaction: the answer, and what to do once it is on disk."""

    answer: Any
    then: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ChangeTask:
    """A change of the set; `apply` writes it, or refuses it before it has written anything."""

    apply: Callable[[int], ChangeOutcome]  # with the time
    future: "Future[Any]" = field(default_factory=Future)


@dataclass(frozen=True, slots=True, eq=False)
class CursorTask:
    """A cursor that moves, or something else that no event depends on."""

    apply: Callable[[int], Any]
    future: "Future[Any]" = field(default_factory=Future)


CommitTask = PublishTask | ChangeTask | CursorTask
