"""Overlays for the experiments: peers arrive, and the tree becomes legal."""

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from contrada.errors import ContradaError
from contrada.overlay.boxes import Box
from contrada.overlay.messages import PeerId
from contrada.overlay.state import Settings
from contrada.simulation.run import RootOracle
from contrada.simulation.simulator import Simulator
from contrada.simulation.workloads import UNIT, Workload

ROUNDS_MAX = 500
_CHECKED_MAX = 20_000  # peers that are checked after every round: it takes a second
_ARRIVALS_MIN, _ARRIVALS_SHARE = 4, 6
_FAULTS_SHOWN = 5
_BEYOND = ("summaries", "deputies", "moving", "swapping")


class OverlayFailed(ContradaError):
    """An overlay did not become legal in time: the protocol is at fault, not the input."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """A legal overlay of peers with one filter each, and what it took to build it.

    `origin` says how it was made. `seconds` of the processor are without the checks of whether it
    is legal.
    """

    simulator: Simulator
    workload: Workload
    filters: dict[PeerId, Box]
    rounds: int
    seconds: float
    origin: str = ""

    @property
    def height(self) -> int:
        """Count the levels above the leaves."""
        return max(peer.state.top for peer in self.simulator.peers.values())


def plain(split: str = "quadratic") -> Settings:
    """Return the settings of the paper's tree: nothing that goes beyond it."""
    return Settings(UNIT, split=split, summaries=False, deputies=False, moving=False)


def grow(settings: Settings, workload: str, count: int, rng: Generator) -> Overlay:
    """Let peers arrive and join from the root, until all is legal.

    In each round a sixth as many arrive as are there already. Afterwards a peer without a parent
    asks any other.
    """
    source, origin = Workload(workload, rng), _describe(settings, workload, count, rng)
    filters = [source.draw_filter() for _ in range(count)]
    simulator = Simulator(settings, rng)
    choose_contact = simulator.choose_contact
    simulator.choose_contact = RootOracle(simulator)
    known: dict[PeerId, Box] = {}
    start, rounds = time.process_time(), 0
    with _without_collector():
        for arrivals in _waves(filters):
            known.update({simulator.add(filter_): filter_ for filter_ in arrivals})
            simulator.run_rounds(1)
            rounds += 1
        waited, checking_s = _await_legal(simulator, origin, 1 + count // _CHECKED_MAX)
    simulator.choose_contact = choose_contact
    seconds = time.process_time() - start - checking_s
    return Overlay(simulator, source, known, rounds + waited, seconds, origin)


def _describe(settings: Settings, workload: str, count: int, rng: Generator) -> str:
    """Describe how an overlay is made, so that it can be made again."""
    beyond = [name for name in _BEYOND if getattr(settings, name)]
    tree = f"with {', '.join(beyond)}" if beyond else "nothing beyond the paper"
    numbers = getattr(rng.bit_generator.seed_seq, "entropy", None)
    return (
        f"N = {count:,}, {workload} filters, {settings.split} splits, {tree}, "
        f"random numbers of {numbers}"
    )


def await_legal(overlay: Overlay) -> int:
    """Return the rounds until the overlay is legal; one that is not in time has failed."""
    return _await_legal(overlay.simulator, overlay.origin, 1)[0]


def _await_legal(simulator: Simulator, origin: str, stride: int) -> tuple[int, float]:
    """Check after every so many rounds; return the rounds, and the seconds that checks took."""
    rounds, checking_s = 0, 0.0
    while True:
        start = time.process_time()
        faults = simulator.find_faults()
        checking_s += time.process_time() - start
        if not faults:
            return rounds, checking_s
        if rounds >= ROUNDS_MAX:
            raise OverlayFailed(
                f"an overlay ({origin}) is not legal after {rounds} rounds; {len(faults)} faults: "
                f"{'; '.join(map(str, faults[:_FAULTS_SHOWN]))}"
            )
        simulator.run_rounds(stride)
        rounds += stride


def choose(rng: Generator, ids: Sequence[PeerId], count: int) -> list[PeerId]:
    """Choose random peers, none twice."""
    return [PeerId(id_) for id_ in rng.permutation(np.array(ids))[:count].tolist()]


def _waves(filters: Sequence[Box]) -> Iterator[Sequence[Box]]:
    arrived = 0
    while arrived < len(filters):
        count = max(_ARRIVALS_MIN, arrived // _ARRIVALS_SHARE)
        yield filters[arrived : arrived + count]
        arrived += count


@contextmanager
def _without_collector() -> Iterator[None]:
    """Spare the walks over millions of objects that all stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
