"""A run as a story of frames, for those who draw it.

A frame has the nodes of all living peers, and shares with the frame before whatever stayed as it
was; so long runs of a calm overlay take little memory.
"""

from dataclasses import dataclass, field

from contrada.overlay.boxes import Box
from contrada.overlay.messages import PeerId
from contrada.simulation.checker import PeerView
from contrada.simulation.outcome import EVENTS, FAULTS, Outcome, Round
from contrada.simulation.planning import SimulationPlan
from contrada.simulation.publishing import Published
from contrada.simulation.simulator import Simulator

_EVENTS_TOLD = 24


@dataclass(frozen=True, slots=True)
class RoundFrame:
    """The overlay after a round: who lives, who is at fault, how many faults and roots there are.

    A frame that shows faults being done has the round before as its number.
    """

    round: int
    stage: str
    peers: dict[PeerId, PeerView]
    at_fault: frozenset[PeerId]
    faults: int
    roots: int


@dataclass(frozen=True, slots=True)
class Story:
    """All that a picture of a run shows. The events are those with most receivers."""

    outcome: Outcome
    frames: list[RoundFrame]
    events: list[Published]

    @property
    def plan(self) -> SimulationPlan:
        """The plan of the run."""
        return self.outcome.plan

    @property
    def filters(self) -> dict[PeerId, Box]:
        """The filters of all peers that ever were."""
        return self.outcome.filters


@dataclass(slots=True)
class Recorder:
    """Takes a frame of every round but those in which events travel."""

    frames: list[RoundFrame] = field(default_factory=list)

    def record(self, moment: Round) -> None:
        """Take a frame."""
        if moment.stage == EVENTS:
            return
        simulator = moment.simulator
        last = self.frames[-1] if self.frames else None
        number = 0 if last is None else last.round
        faults = simulator.find_faults()
        self.frames.append(
            RoundFrame(
                number if moment.stage == FAULTS else number + 1,
                moment.stage,
                _share(simulator.see(), {} if last is None else last.peers),
                frozenset(fault.peer for fault in faults if fault.peer is not None),
                len(faults),
                _count_roots(simulator),
            )
        )

    def tell(self, outcome: Outcome) -> Story:
        """Make the story of a run that has ended."""
        events = sorted(outcome.events, key=lambda event: -len(event.received))[:_EVENTS_TOLD]
        return Story(outcome, self.frames, events)


def _share(peers: dict[PeerId, PeerView], before: dict[PeerId, PeerView]) -> dict[PeerId, PeerView]:
    return {id_: before[id_] if before.get(id_) == peer else peer for id_, peer in peers.items()}


def _count_roots(simulator: Simulator) -> int:
    return sum(peer.state.is_root for peer in simulator.peers.values())
