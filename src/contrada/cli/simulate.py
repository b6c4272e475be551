"""`contrada simulate`: the overlay in virtual time, harmed and healed, checked from the outside.

A run that fails says why on stderr, with the command that replays it, and exits with 1.
"""

import argparse
import os
import shlex
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

from contrada.cli.overwriting import refuse_overwriting
from contrada.cli.progress import bar, require_tqdm, waiting
from contrada.cli.remedies import naming
from contrada.cli.simulate_report import as_json, as_table
from contrada.cli.terminal import say, show
from contrada.errors import InvalidInput, Unavailable
from contrada.machine import write_whole
from contrada.overlay.splitting import SPLITS
from contrada.pictures.overlay import DRAWN_SUFFIXES, render_story
from contrada.pictures.plate import require_matplotlib
from contrada.simulation.outcome import FAULTS, Outcome, Round
from contrada.simulation.planning import JOINS, SimulationPlan
from contrada.simulation.recording import Recorder
from contrada.simulation.run import simulate
from contrada.simulation.workloads import WORKLOADS

EXIT_FAILED = 1
PEERS_DRAWN_MAX = 5_000

_NUMBERS = {
    "peers": ("N", "how many peers"),
    "events": ("E", "how many events, published when the overlay is at rest"),
    "seed": ("S", "seed of all random choices: same seed, same run"),
    "leave": ("SHARE", "share of the peers that leave cleanly, all at once"),
    "crash": ("SHARE", "share of the peers that crash, all at once; one always survives"),
    "corrupt": ("SHARE", "share of the living whose memory becomes garbage"),
    "restart": ("SHARE", "share of the crashed that come back, under new ids"),
    "churn": ("RATE", "peers that join, and as many that crash, in a round on average"),
    "loss": ("SHARE", "share of the messages that are lost"),
    "duplicate": ("SHARE", "share of the messages that arrive twice"),
    "delay": ("ROUNDS", "longest delay of a message"),
    "rounds": ("R", "how long churn, loss, duplication and partition go on after the faults"),
    "rounds_max": ("R", "fail if the overlay is not legal after this many more rounds"),
    "min_children": ("m", "fewest children of a node"),
    "max_children": ("M", "most children of a node"),
}
_CHOICES = {
    "workload": (tuple(WORKLOADS), "how filters and events lie in the plane"),
    "join": (JOINS, "whom a peer asks for a parent: any other peer, or the root"),
    "split": (tuple(SPLITS), "how an overfull node is divided"),
}


def add_parser(commands: Any, summary: str) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "simulate",
        help=summary,
        description="Build an overlay of peers in virtual time, crash and corrupt some of them, "
        "let it heal, and publish events. Whether it is legal, and who should receive what, is "
        "checked from the outside. A round is the time in which every peer runs every check once.",
    )
    defaults = SimulationPlan()
    for name, (metavar, text) in _NUMBERS.items():
        value = getattr(defaults, name)
        _add(parser, name, f"{text} (default: {value:g})", type=type(value), metavar=metavar)
    for name, (choices, text) in _CHOICES.items():
        _add(parser, name, f"{text} (default: {getattr(defaults, name)})", choices=choices)
    _add(parser, "partition", "cut the network in two for the rounds of trouble", is_flag=True)
    _add(parser, "plain", "the paper's tree: no summaries, no deputies, nobody moves", is_flag=True)
    parser.set_defaults(
        **{field.name: getattr(defaults, field.name) for field in fields(SimulationPlan)}
    )
    parser.add_argument(
        "--dump", metavar="FILE", help="write states and events as JSON (default: nowhere)"
    )
    parser.add_argument(
        "--animate",
        metavar="FILE",
        help="show the run: an interactive page (.html) or a still image (.png) (default: neither)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="end stdout with one JSON object (default: show a table)",
    )
    parser.set_defaults(run=run)


def _add(
    parser: argparse.ArgumentParser, name: str, text: str, is_flag: bool = False, **how: Any
) -> None:
    if is_flag:
        how["action"] = "store_true"
    parser.add_argument(_option(name), help=text, **how)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def run(options: argparse.Namespace) -> int:
    """Run the simulation and return the exit code."""
    started = time.monotonic()
    plan = _check(options)
    recorder = None if options.animate is None else Recorder()
    with _StageBars(recorder) as screen:
        outcome = simulate(plan, screen.show)
    files = _write_files(options, outcome, recorder)
    table = as_table(outcome, time.monotonic() - started, files)
    show(table, on_stderr=options.json)
    replay = describe_command(plan)
    if outcome.problems:
        say("\n".join(["", "contrada: the overlay has failed", *outcome.problems]))
        say(f"seed {plan.seed}; to see it again:\n  {replay}")
    if options.json:
        show(as_json(outcome, time.monotonic() - started, files, replay))
    return EXIT_FAILED if outcome.problems else 0


def describe_command(plan: SimulationPlan) -> str:
    """Write the command that repeats a run: the seed, and what is not as by default."""
    words = ["contrada", "simulate"]
    for field in fields(SimulationPlan):
        value = getattr(plan, field.name)
        if value is True:
            words.append(_option(field.name))
        elif value != field.default or field.name in {"peers", "seed"}:
            words += [_option(field.name), str(value)]
    return shlex.join(words)


def _check(options: argparse.Namespace) -> SimulationPlan:
    """Refuse what cannot be run or written, before anything runs."""
    try:
        plan = SimulationPlan(
            **{field.name: getattr(options, field.name) for field in fields(SimulationPlan)}
        )
    except InvalidInput as error:
        raise InvalidInput(f"--{error}") from None
    if options.dump is not None:
        _check_file("--dump", options.dump)
    if options.animate is not None:
        _check_picture(options, plan)
    require_tqdm()
    return plan


def _check_picture(options: argparse.Namespace, plan: SimulationPlan) -> None:
    """Refuse a picture that cannot be drawn or put there."""
    _check_file("--animate", options.animate)
    suffix = Path(options.animate).suffix.lower()
    if suffix not in DRAWN_SUFFIXES:
        raise InvalidInput(
            f"--animate {options.animate}: must end in {' or '.join(DRAWN_SUFFIXES)}"
        )
    if plan.peers > PEERS_DRAWN_MAX:
        raise InvalidInput(
            f"--animate {options.animate}: draws at most {PEERS_DRAWN_MAX:,} peers, "
            f"but --peers is {plan.peers}"
        )
    if suffix == ".png":
        require_matplotlib()
    if options.dump:
        refuse_overwriting((), {"--dump": options.dump, "--animate": options.animate})


def _check_file(option: str, name: str) -> None:
    path = Path(name)
    if not path.parent.is_dir():
        raise InvalidInput(f"{option} {name}: there is no folder {path.parent}")
    if path.is_dir():
        raise InvalidInput(f"{option} {name}: is a folder")
    if not os.access(path.parent, os.W_OK):
        raise Unavailable(f"{option} {name}: the folder {path.parent} cannot be written to")


def _write_files(
    options: argparse.Namespace, outcome: Outcome, recorder: Recorder | None
) -> dict[str, str]:
    """Write what was asked for, also of a run that failed: it shows how; name the files."""
    files = {}
    if options.dump is not None:
        _write("--dump", Path(options.dump), outcome.dump())
        files["dump"] = options.dump
    if recorder is not None:
        with waiting(f"drawing {options.animate}"):
            story = recorder.tell(outcome)
            content = render_story(story, Path(options.animate).suffix.lower())
        _write("--animate", Path(options.animate), content)
        files["animate"] = options.animate
    return files


def _write(option: str, path: Path, content: bytes) -> None:
    """Write a file whole; where that fails, name the option that asked for it."""
    with naming(option):
        write_whole(path, content)


class _StageBars:
    """A bar on stderr for each stage; a recorder sees every round, too."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._stage = ""
        self._bar: Any = None

    def __enter__(self) -> "_StageBars":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, moment: Round) -> None:
        """Show how far a stage is."""
        if self._recorder is not None:
            self._recorder.record(moment)
        if moment.stage == FAULTS:
            return
        label = moment.stage if moment.total or moment.stage != "building" else "settling"
        if label != self._stage:
            self.__exit__()
            self._stage = label
            unit = {"building": "peers", "events": "events"}.get(label, "rounds")
            self._bar = bar(label, moment.total, unit)
        self._bar.update(moment.done - self._bar.n if moment.total else 1)
