"""The overlays and events that several experiments look at, each made once.

Overlays of one workload and size have the same filters and are given the same events.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from contrada.overlay.messages import PeerId
from contrada.overlay.state import Settings
from contrada.reproduce.drtree.growing import Overlay, await_legal, grow, plain
from contrada.reproduce.drtree.plan import DrtreeRun
from contrada.reproduce.drtree.tracing import trace_event
from contrada.simulation.publishing import Point, Published, Score, score
from contrada.simulation.simulator import Simulator
from contrada.simulation.workloads import UNIT, WORKLOADS, Workload


@dataclass(frozen=True, slots=True)
class Variant:
    """A tree, and whether events heed its summaries. Variants of one tree are asked in turn."""

    settings: Settings
    uses_cells: bool = False


LINEAR, QUADRATIC, RSTAR = "paper, linear", "paper, quadratic", "paper, R*"
RSTAR_CELLS = "R*, summaries"
MOVING, ALL = "with moving", "with all of ours"
_RSTAR_TREE, _OUR_TREE = replace(plain("rstar"), summaries=True), Settings(UNIT)
VARIANTS: Mapping[str, Variant] = {
    LINEAR: Variant(plain("linear")),
    QUADRATIC: Variant(plain("quadratic")),
    RSTAR: Variant(_RSTAR_TREE),
    RSTAR_CELLS: Variant(_RSTAR_TREE, uses_cells=True),
    MOVING: Variant(_OUR_TREE),
    ALL: Variant(_OUR_TREE, uses_cells=True),
}
_STILL_ROUNDS = 30
_REST_ROUNDS = 5  # until nobody sends events the old way as well, by a former parent


@dataclass(frozen=True, slots=True)
class Events:
    """Where events happen, and who publishes them: peers by their places in the order of ids."""

    points: list[Point]
    publishers: list[int]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How well some events found their receivers among so many peers, with how many messages."""

    score: Score
    messages: int
    peers: int
    events: int

    @property
    def false_positives(self) -> float:
        """The false positives in % of all pairs of peer and event."""
        return 100 * self.score.false_positives / (self.peers * self.events)

    @property
    def in_vain(self) -> float:
        """The false positives in % of all that handled an event, the publisher aside."""
        return 100 * self.score.false_positives / max(1, self.score.visits)

    @property
    def messages_per_match(self) -> float:
        """The messages for each pair of event and receiver."""
        return self.messages / max(1, self.score.matches)


class Gallery:
    """Builds what is asked for, and keeps it."""

    def __init__(self, run: DrtreeRun) -> None:
        """Start without overlays."""
        self._run = run
        self._overlays: dict[tuple[str, Settings, int], Overlay] = {}

    def overlay(self, workload: str, variant: str, count: int) -> Overlay:
        """Return a legal overlay at rest, in which children had time to move if they do."""
        settings = VARIANTS[variant].settings
        key = workload, settings, count
        if key not in self._overlays:
            rng = self._run.generator(3, list(WORKLOADS).index(workload), count)
            overlay = grow(settings, workload, count, rng)
            settle(overlay, self._run.plan.moving_rounds if settings.moving else _REST_ROUNDS)
            self._overlays[key] = overlay
        return self._overlays[key]

    def measure(self, workload: str, variant: str, count: int) -> Accuracy:
        """Publish the events of a workload and size in one variant."""
        overlay, events = self.overlay(workload, variant, count), self.events(workload, count)
        is_plain = not VARIANTS[variant].uses_cells
        with ignore_cells(overlay.simulator) if is_plain else nullcontext():
            return measure_accuracy(overlay, events)

    def events(self, workload: str, count: int) -> Events:
        """Return the events for all overlays of a workload and size."""
        index = list(WORKLOADS).index(workload)
        source = Workload(workload, self._run.generator(3, index, count))  # of the same places
        rng = self._run.generator(4, index, count)
        number = self._run.plan.accuracy_events
        points: list[Point] = [source.draw_point() for _ in range(number)]
        return Events(points, rng.integers(count, size=number).tolist())


def settle(overlay: Overlay, rounds_max: int) -> None:
    """Let children move until none has for a while; end with a legal state."""
    simulator = overlay.simulator
    still, before = 0, _see(simulator)
    for _ in range(rounds_max):
        simulator.run_rounds(1)
        now = _see(simulator)
        still = still + 1 if now == before else 0
        before = now
        if still >= _STILL_ROUNDS:
            break
    await_legal(overlay)


def _see(simulator: Simulator) -> list[PeerId]:
    return [peer.state.parent for peer in simulator.peers.values()]


@contextmanager
def ignore_cells(simulator: Simulator) -> Iterator[None]:
    """Let parents know only the boxes of their children, as long as no time passes."""
    states = [peer.state for peer in simulator.peers.values()]
    lists = [children for state in states for children in (*state.levels, state.leaving)]
    known = [(child, child.cells) for children in lists for child in children.values()]
    for child, _ in known:
        child.cells = None
    try:
        yield
    finally:
        for child, cells in known:
            child.cells = cells


def measure_accuracy(overlay: Overlay, events: Events) -> Accuracy:
    """Publish events one by one, and compare who handles them with the filters."""
    ids = list(overlay.filters)
    messages, published = 0, []
    for point, place in zip(events.points, events.publishers, strict=True):
        trace = trace_event(overlay.simulator, ids[place], (*point, *point))
        messages += trace.messages
        published.append(Published(point, ids[place], trace.received, trace.visited))
    found = score(published, overlay.filters)
    return Accuracy(found, messages, len(ids), len(published))
