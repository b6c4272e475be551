"""One run of the overlay in virtual time: built, harmed, healed, and asked to deliver events.

Everything by chance comes from one seeded generator: same plan, same run, to the byte. Whoever
watches is called after each round and must change nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import floor

import numpy as np

from contrada.overlay.boxes import Box
from contrada.overlay.messages import PeerId
from contrada.overlay.state import HEIGHT_MAX
from contrada.simulation.checker import OverlayFault
from contrada.simulation.garbage import Garbage
from contrada.simulation.outcome import (
    BUILDING,
    EVENTS,
    FAULTS,
    HEALING,
    TROUBLE,
    Outcome,
    Round,
    Settled,
)
from contrada.simulation.planning import SimulationPlan
from contrada.simulation.publishing import Score, count_event_messages, publish, score
from contrada.simulation.simulator import Simulator
from contrada.simulation.workloads import Workload

REST_ROUNDS = 10  # without any change: longer than a peer waits for a neighbour or an answer
REST_ROUNDS_MOVING = 30  # peers that look for better places take their time
_RESTLESS_ROUNDS_MAX = 2_000
_ARRIVALS_MIN = 4
_FAULTS_SHOWN = 8


def simulate(plan: SimulationPlan, on_round: Callable[[Round], object] = lambda _: None) -> Outcome:
    """Run a plan to its end, or until the overlay fails to become legal."""
    return _Run(plan, on_round).run()


class _Run:
    def __init__(self, plan: SimulationPlan, on_round: Callable[[Round], object]) -> None:
        self._plan, self._on_round = plan, on_round
        self._rng = np.random.default_rng(plan.seed)
        self._workload = Workload(plan.workload, self._rng)
        self._simulator = Simulator(plan.settings(), self._rng, plan.network(is_calm=False))
        if plan.join == "root":
            self._simulator.choose_contact = RootOracle(self._simulator)
        self._outcome = Outcome(plan)

    def run(self) -> Outcome:
        plan, outcome, simulator = self._plan, self._outcome, self._simulator
        self._build()
        settled = outcome.built = self._settle(BUILDING, needs_rest=not plan.has_faults)
        if settled.legal_after is not None and plan.has_faults:
            self._harm()
            settled = outcome.healed = self._settle(HEALING, needs_rest=True)
        outcome.states = simulator.see()
        if settled.legal_after is not None:
            self._publish()
        outcome.overflown = simulator.traffic.overflown
        return outcome

    def _build(self) -> None:
        """Let peers arrive: in each round at most as many as are there already."""
        wanted, arrived = self._plan.peers, 0
        while arrived < wanted:
            count = min(wanted - arrived, max(_ARRIVALS_MIN, arrived))
            for _ in range(count):
                self._add(self._workload.draw_filter())
            arrived += count
            self._pass_round(BUILDING, arrived, wanted)

    def _add(self, filter_: Box) -> None:
        self._outcome.filters[self._simulator.add(filter_)] = filter_

    def _pass_round(self, stage: str, done: int = 0, total: int | None = None) -> None:
        self._simulator.run_rounds(1)
        self._outcome.rounds += 1
        self._on_round(Round(stage, done, total, self._simulator))

    def _settle(self, stage: str, *, needs_rest: bool) -> Settled:
        """Let the overlay become legal in a calm network, and come to rest if it needs to."""
        self._simulator.network = self._plan.network(is_calm=True)
        legal_after = self._await_legal(stage)
        if legal_after is None or not needs_rest:
            return Settled(legal_after, None)
        more = self._await_rest(stage)
        return Settled(legal_after, None if more is None else legal_after + more)

    def _await_legal(self, stage: str) -> int | None:
        rounds_max = self._plan.rounds_max
        faults = self._simulator.find_faults()
        for number in range(rounds_max):
            if not faults:
                return number
            self._pass_round(stage)
            faults = self._simulator.find_faults()
        if faults:
            self._outcome.problems = [
                f"{stage}: not legal after {rounds_max} rounds; {len(faults)} faults:",
                *_shorten(faults),
            ]
        return None if faults else rounds_max

    def _await_rest(self, stage: str) -> int | None:
        """Wait until nothing has changed for some rounds, and that is legal.

        An overlay that has no rest has failed, but is asked for events at a legal moment.
        """
        simulator, seen = self._simulator, self._simulator.see()
        needed = REST_ROUNDS if self._plan.plain else REST_ROUNDS_MOVING
        said, still = simulator.traffic.messages, 0
        for number in range(_RESTLESS_ROUNDS_MAX):
            if still >= needed and not simulator.find_faults():
                messages = simulator.traffic.messages - said
                self._outcome.messages_at_rest = messages / (still * len(seen))
                return number - still
            self._pass_round(stage)
            before, seen, still = seen, simulator.see(), still + 1
            if seen != before:
                said, still = simulator.traffic.messages, 0
        simulator.run_until_legal(self._plan.rounds_max)
        self._outcome.problems = [
            f"{stage}: not at rest {_RESTLESS_ROUNDS_MAX} rounds after it was legal",
            *_shorten(simulator.find_faults()),
        ]
        return None

    def _harm(self) -> None:
        """Let peers leave and crash, and corrupt; then whatever else goes on for a while."""
        plan, rng, simulator = self._plan, self._rng, self._simulator
        leaving = self._choose_but_one(plan.leave)
        for id_ in leaving:
            simulator.leave(id_)
        self._outcome.left = len(leaving)
        crashed = self._choose_but_one(plan.crash)
        for id_ in crashed:
            self._crash(id_)
        garbage = Garbage(simulator, rng)
        corrupted = self._choose(plan.corrupt)
        for id_ in corrupted:
            garbage.corrupt(id_)
        garbage.send(len(corrupted))
        self._outcome.corrupted = len(corrupted)
        self._on_round(Round(FAULTS, 0, None, simulator))
        if plan.has_trouble:
            self._trouble(crashed)

    def _choose(self, share: float) -> list[PeerId]:
        """Choose a share of the living, rounded down; 0.29 of 100 are 29."""
        living = self._simulator.living()
        count = floor(share * len(living) + 1e-9)
        return [PeerId(id_) for id_ in self._rng.permutation(living)[:count].tolist()]

    def _choose_but_one(self, share: float) -> list[PeerId]:
        """Choose so that somebody stays."""
        return self._choose(share)[: len(self._simulator.living()) - 1]

    def _crash(self, id_: PeerId) -> None:
        self._simulator.crash(id_)
        self._outcome.crashed += 1

    def _trouble(self, crashed: Sequence[PeerId]) -> None:
        """Lose and double messages, cut the network in two, churn; at the end some restart."""
        plan, simulator = self._plan, self._simulator
        simulator.network = plan.network(is_calm=False)
        is_whole = simulator.is_cut
        if plan.partition:
            simulator.is_cut = _are_apart
        for number in range(plan.rounds):
            self._churn()
            self._pass_round(TROUBLE, number + 1, plan.rounds)
        simulator.is_cut = is_whole
        for id_ in crashed[: floor(plan.restart * len(crashed) + 1e-9)]:
            self._add(self._outcome.filters[id_])

    def _churn(self) -> None:
        joins, crashes = self._rng.poisson(self._plan.churn, 2).tolist()
        for _ in range(joins):
            self._add(self._workload.draw_filter())
        for _ in range(crashes):
            living = self._simulator.living()
            if len(living) > 2:
                self._crash(living[int(self._rng.integers(len(living)))])

    def _publish(self) -> None:
        """Publish from random peers, and compare with the filters.

        A child may yet move to a better place meanwhile; the overlay must be legal after that.
        """
        plan, outcome, simulator = self._plan, self._outcome, self._simulator
        living = simulator.living()
        points = [self._workload.draw_point() for _ in range(plan.events)]
        publishers = [living[i] for i in self._rng.integers(len(living), size=plan.events).tolist()]
        said, done = count_event_messages(simulator), 0

        def show(count: int) -> None:
            nonlocal done
            done += count
            self._on_round(Round(EVENTS, done, plan.events, simulator))

        outcome.events = publish(simulator, list(points), publishers, show)
        outcome.event_messages = count_event_messages(simulator) - said
        outcome.score = score(outcome.events, {id_: outcome.filters[id_] for id_ in living})
        outcome.problems += describe_losses(outcome.score)
        if simulator.run_until_legal(plan.rounds_max) is None:
            faults = simulator.find_faults()
            outcome.problems += ["events: no longer legal:", *_shorten(faults)]


class RootOracle:
    """Names the root as the peer to ask: it climbs from where it found one before."""

    def __init__(self, simulator: Simulator) -> None:
        """Begin anywhere."""
        self._simulator = simulator
        self._last: PeerId | None = None

    def __call__(self, id_: PeerId) -> PeerId | None:
        """Name a root that this peer can reach; None where it is that root itself."""
        peers = self._simulator.peers
        at = self._last if self._last in peers else next(iter(peers))
        for _ in range(HEIGHT_MAX):
            above = peers[at].state.parent
            if above == at or above not in peers:
                break
            at = above
        self._last = at
        return None if at == id_ or self._simulator.is_cut(id_, at) else at


def describe_losses(found: Score) -> list[str]:
    """Describe in lines what is wrong with deliveries."""
    wrong: Mapping[str, int] = {
        "deliveries are missing": found.missed,
        "deliveries are doubled": found.doubled,
        "deliveries went to peers without a match": found.unwanted,
    }
    return [f"{count} of {found.matches} {name}" for name, count in wrong.items() if count]


def _shorten(faults: Sequence[OverlayFault]) -> Iterable[str]:
    rest = len(faults) - _FAULTS_SHOWN
    shown = map(str, faults[:_FAULTS_SHOWN])
    return [*shown, *([f"... and {rest} more"] if rest > 0 else [])]


def _are_apart(a: PeerId, b: PeerId) -> bool:
    """Cut the network between even and odd ids."""
    return (a - b) % 2 == 1
