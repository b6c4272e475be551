"""A run of the simulator: what it promises of faults, of events, and of being repeated."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contrada.errors import InvalidInput
from contrada.overlay.boxes import Space
from contrada.overlay.messages import PeerId
from contrada.overlay.state import Settings
from contrada.simulation.checker import OverlayFault
from contrada.simulation.outcome import BUILDING, EVENTS, FAULTS, HEALING, TROUBLE, Round
from contrada.simulation.planning import SimulationPlan
from contrada.simulation.publishing import Published, score
from contrada.simulation.recording import Recorder
from contrada.simulation.run import RootOracle, simulate
from contrada.simulation.simulator import Simulator

if TYPE_CHECKING:
    from pathlib import Path

SMALL = SimulationPlan(peers=24, events=12, plain=True)


def make(**changes: object) -> SimulationPlan:
    fields = {name: getattr(SMALL, name) for name in SimulationPlan.__slots__}
    return SimulationPlan(**{**fields, **changes})


@pytest.mark.parametrize("workload", ["uniform", "clustered", "containment"])
def test_a_run_without_faults_delivers_everything_once(workload: str) -> None:
    outcome = simulate(make(workload=workload, seed=3))
    assert outcome.problems == []
    assert outcome.built is not None
    assert outcome.built.still_after is not None
    assert outcome.healed is None
    assert len(outcome.events) == 12
    assert (outcome.score.missed, outcome.score.doubled, outcome.score.unwanted) == (0, 0, 0)
    assert all(event.publisher in event.visited for event in outcome.events)


def test_shares_are_rounded_down_and_somebody_survives() -> None:
    outcome = simulate(make(crash=0.3, corrupt=0.2))
    assert (outcome.crashed, outcome.corrupted) == (7, 3)
    assert len(outcome.states) == 17
    assert len(outcome.filters) == 24
    alone = simulate(make(peers=5, crash=1.0))
    assert (alone.crashed, len(alone.states), alone.problems) == (4, 1, [])


def test_peers_leave_in_good_order() -> None:
    outcome = simulate(make(leave=0.5, crash=0.25))
    assert (outcome.left, outcome.crashed, len(outcome.states)) == (12, 3, 9)
    assert outcome.problems == []
    assert simulate(make(peers=5, leave=1.0, crash=1.0)).left == 4


def test_a_share_that_binary_fractions_miss_is_not_rounded_down_twice() -> None:
    assert simulate(make(peers=100, crash=0.29, events=0)).crashed == 29


def test_trouble_of_every_kind_is_healed() -> None:
    stages: list[str] = []
    plan = make(
        crash=0.2, corrupt=0.2, restart=0.5, churn=1.0, loss=0.05, duplicate=0.1, partition=True
    )
    outcome = simulate(plan, lambda moment: stages.append(moment.stage))
    assert outcome.problems == []
    order = list(dict.fromkeys(stages))
    assert order == [BUILDING, FAULTS, TROUBLE, HEALING, EVENTS]
    assert stages.count(TROUBLE) == plan.rounds
    assert len(outcome.filters) > 24


def test_peers_that_join_from_the_root_become_legal() -> None:
    assert simulate(make(join="root", crash=0.2)).problems == []


def test_the_oracle_names_the_root_to_everybody_else() -> None:
    found = []

    def ask(moment: Round) -> None:
        if moment.stage == EVENTS:
            oracle = RootOracle(moment.simulator)
            found.append({id_: oracle(id_) for id_ in moment.simulator.living()})

    outcome = simulate(SMALL, ask)
    (answers,) = found
    (root,) = [id_ for id_, state in outcome.states.items() if state.levels[-1].parent == id_]
    assert answers.pop(root) is None
    assert set(answers.values()) == {root}


def test_the_same_plan_gives_the_same_bytes_whether_watched_or_not() -> None:
    plan = make(crash=0.3, corrupt=0.2, churn=1.0, seed=5)
    recorder = Recorder()
    watched = simulate(plan, recorder.record)
    assert simulate(plan).dump() == watched.dump()
    assert simulate(make(seed=6)).dump() != watched.dump()


def test_the_same_plan_gives_the_same_bytes_in_processes_that_hash_otherwise(
    tmp_path: Path,
) -> None:
    options = "--peers 24 --events 12 --leave 0.1 --crash 0.2 --corrupt 0.3 --churn 1 --rounds 5"
    command = [sys.executable, "-m", "contrada.cli", "simulate", *options.split(), "--dump"]
    runs = {
        seed: subprocess.Popen(
            [*command, str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for seed in ("1", "2")
    }
    assert [run.wait() for run in runs.values()] == [0, 0]
    one, other = ((tmp_path / seed).read_bytes() for seed in runs)
    assert one == other


def test_an_overlay_that_has_no_time_to_become_legal_is_a_failure() -> None:
    outcome = simulate(make(rounds_max=0))
    assert outcome.problems[0].startswith("building: not legal after 0 rounds; ")
    assert len(outcome.problems) > 1
    assert outcome.events == []


def test_an_overlay_that_has_no_time_to_heal_is_a_failure() -> None:
    built = simulate(SMALL).built
    assert built is not None
    outcome = simulate(make(rounds_max=built.legal_after, crash=0.5, corrupt=1.0))
    assert outcome.problems[0].startswith("healing: not legal after ")


def test_missed_doubled_and_vain_visits_are_counted_as_they_are_defined() -> None:
    one, two, three, four = (PeerId(id_) for id_ in range(1, 5))
    wide, far = (0.0, 0.0, 1.0, 1.0), (2.0, 2.0, 3.0, 3.0)
    filters = {one: wide, two: wide, three: far, four: far}
    events = [
        Published((0.5, 0.5), three, [one, one], {one, three, four}),
        Published((1.0, 1.0), one, [one, two, four], {one, two, four}),
    ]
    found = score(events, filters)
    assert (found.matches, found.missed, found.doubled, found.unwanted) == (4, 1, 1, 1)
    assert (found.false_positives, found.visits) == (2, 4)


def test_a_recorder_keeps_every_round_and_the_moment_of_the_faults() -> None:
    recorder = Recorder()
    outcome = simulate(make(crash=0.3, corrupt=0.3), recorder.record)
    frames = recorder.frames
    assert len(frames) == outcome.rounds + 1
    assert [frame.stage for frame in frames].count(FAULTS) == 1
    (fault,) = [frame for frame in frames if frame.stage == FAULTS]
    assert fault.faults > 0
    assert fault.at_fault
    last = frames[-1]
    assert (last.faults, last.roots, last.at_fault) == (0, 1, frozenset())
    assert last.peers == outcome.states


def test_peers_at_fault_are_those_that_the_checker_names(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = [
        OverlayFault("2 roots: [1, 5]"),
        OverlayFault("a leaf has children", PeerId(7)),
        OverlayFault("1 children", PeerId(9), 2),
        OverlayFault("3 peers are not in the tree"),
    ]
    recorder, simulator = (
        Recorder(),
        Simulator(Settings(Space((0.0, 0.0, 1.0, 1.0))), np.random.default_rng(1)),
    )
    monkeypatch.setattr(simulator, "find_faults", lambda: faults)
    recorder.record(Round(HEALING, 0, None, simulator))
    assert recorder.frames[0].at_fault == {7, 9}
    assert [str(fault) for fault in faults[1:3]] == [
        "7: a leaf has children",
        "9 at level 2: 1 children",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"peers": 1}, "peers 1: must be from 2 to 1,000,000"),
        ({"peers": 10**20 - 1}, r"peers 9{20}: must be from 2 to 1,000,000 .SIMULATED_MAX"),
        ({"events": 10**20}, r"events 10{20}: must be from 0 to 1,000,000 .SIMULATED_MAX"),
        ({"rounds": 10**20}, "rounds 10{20}: .*SIMULATED_MAX"),
        ({"rounds_max": 10**20}, "rounds-max 10{20}: .*SIMULATED_MAX"),
        ({"crash": 1.5}, "crash 1.5: must be a share from 0 to 1"),
        ({"corrupt": float("nan")}, "corrupt nan: must be a share from 0 to 1"),
        ({"min_children": 6}, "min-children 6: .* half of max-children 10"),
        ({"workload": "flat"}, "workload flat: must be one of uniform"),
        ({"loss": 1.0}, "loss 1.0: "),
        ({"delay": 0.0}, "delay 0.0: "),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make(**changes)


@pytest.mark.parametrize(
    "plan",
    [
        SimulationPlan(peers=20, events=10),
        SimulationPlan(peers=20, events=10, seed=727, workload="clustered", crash=0.3),
    ],
)
def test_children_do_not_move_for_ever(plan: SimulationPlan) -> None:
    outcome = simulate(plan)
    assert outcome.problems == []
    settled = outcome.healed or outcome.built
    assert settled is not None
    assert settled.still_after is not None
    assert settled.still_after < 100
