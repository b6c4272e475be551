"""What a run of the overlay shows while it goes on, and when it has ended."""

from dataclasses import dataclass, field

from contrada.overlay.boxes import Box
from contrada.overlay.messages import PeerId
from contrada.simulation.checker import PeerView
from contrada.simulation.dump import write_dump
from contrada.simulation.planning import SimulationPlan
from contrada.simulation.publishing import Published, Score
from contrada.simulation.simulator import Simulator

BUILDING, FAULTS, TROUBLE, HEALING, EVENTS = "building", "faults", "trouble", "healing", "events"


@dataclass(frozen=True, slots=True)
class Round:
    """A moment of a run: its stage, how far that is, and the overlay, to be looked at."""

    stage: str
    done: int
    total: int | None
    simulator: Simulator


@dataclass(frozen=True, slots=True)
class Settled:
    """Rounds until the overlay was legal, and until it was at rest; None where it never was.

    An overlay that is to be harmed is not waited for once it is legal.
    """

    legal_after: int | None
    still_after: int | None


@dataclass(slots=True)
class Outcome:
    """What a run has shown; `problems` say why it failed, and are empty if it did not.

    `states` are those of the living at rest, before events are published; `filters` are of all
    peers that ever were. Rounds are counted until the overlay is legal for the first time, and
    until nothing changes any more; messages at rest are those of one peer in one round,
    `overflown` those that were lost to full inboxes.
    """

    plan: SimulationPlan
    problems: list[str] = field(default_factory=list)
    filters: dict[PeerId, Box] = field(default_factory=dict)
    states: dict[PeerId, PeerView] = field(default_factory=dict)
    events: list[Published] = field(default_factory=list)
    score: Score = field(default_factory=Score)
    left: int = 0
    crashed: int = 0
    corrupted: int = 0
    rounds: int = 0
    built: Settled | None = None
    healed: Settled | None = None
    messages_at_rest: float | None = None
    event_messages: int = 0
    overflown: int = 0

    @property
    def height(self) -> int:
        """Count the levels above the leaves."""
        return max((len(state.levels) - 1 for state in self.states.values()), default=0)

    def dump(self) -> bytes:
        """Write states and events as `contrada simulate --dump` does."""
        return write_dump(self.plan.settings(), self.filters, self.states, self.events)
