"""`contrada reproduce`: the papers' experiments.

What can be refused is refused before any of them starts.
"""

import argparse
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from contrada.cli.progress import bar, require_tqdm, saying
from contrada.cli.terminal import NobodyReads, say, show, visible, writing_stdout
from contrada.errors import InvalidInput, Unavailable, blame
from contrada.pictures.plate import require_matplotlib
from contrada.reproduce.crtree.paper import DATA_SETS
from contrada.reproduce.reporting import Reporter

_POLL_S = 0.3


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for, after all that can be refused has been."""

    folder: Path
    is_quick: bool
    data: Path | None
    seed: int
    spark: str | None


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose experiments can be repeated.

    `layers` are the files that --data must contain; without any it takes no data.
    """

    layers: tuple[str, ...]
    duration: str
    run: Callable[[Order, Reporter], None]
    takes_spark: bool = False


def _run_crtree(order: Order, reporter: Reporter) -> None:
    from contrada.reproduce.crtree.experiments import reproduce
    from contrada.reproduce.crtree.plan import FULL, QUICK

    reproduce(order.folder, QUICK if order.is_quick else FULL, order.data, reporter, order.seed)


def _run_ahs(order: Order, reporter: Reporter) -> None:
    from contrada.cli.spark_start import our_errors, our_log
    from contrada.reproduce.ahs.experiments import reproduce
    from contrada.reproduce.ahs.plan import FULL, QUICK

    plan = QUICK if order.is_quick else FULL
    with our_log(), our_errors():
        reproduce(order.folder, plan, reporter, order.seed, order.spark)


def _run_drtree(order: Order, reporter: Reporter) -> None:
    from contrada.reproduce.drtree.experiments import reproduce
    from contrada.reproduce.drtree.plan import FULL, QUICK

    reproduce(order.folder, QUICK if order.is_quick else FULL, reporter, order.seed)


PAPERS = {
    "crtree": Paper(
        tuple(data_set.stand_in for data_set in DATA_SETS),
        "about 11 minutes; --quick takes under two",
        _run_crtree,
    ),
    "ahs": Paper((), "about three minutes; --quick takes one", _run_ahs, takes_spark=True),
    "drtree": Paper((), "about half an hour; --quick takes one minute", _run_drtree),
}


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", summary: str
) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "reproduce",
        help=summary,
        description="Repeat a paper's experiments: tables on stdout, figures in a folder, "
        "what the paper states beside ours.",
        epilog=" ".join(
            f"{name}: {paper.duration}.{_describe_data(paper)}" for name, paper in PAPERS.items()
        ),
    )
    parser.add_argument("paper", choices=list(PAPERS), help="which paper")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, under two minutes (default: full sizes)",
    )
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        help="real layers instead of generated ones: a folder with the files named below "
        "(default: generated)",
    )
    parser.add_argument("--folder", help="where figures go (default: reproduce-PAPER)")
    parser.add_argument(
        "--spark",
        metavar="MASTER",
        help="ahs: also measure what Spark costs, e.g. on 'local[2]' (default: off)",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the workloads (default: 1)")
    parser.set_defaults(run=run)


def _describe_data(paper: Paper) -> str:
    if not paper.layers:
        return " It takes no --data."
    return (
        f" Its --data must contain {_list_files(paper)}: GeoParquet, polygons in any coordinates; "
        "they are scaled into the unit square."
    )


def _list_files(paper: Paper) -> str:
    *others, last = (f"{name}.parquet" for name in paper.layers)
    return f"{', '.join(others)} and {last}" if others else last


def run(options: argparse.Namespace) -> None:
    """Run the experiments of one paper."""
    paper = PAPERS[options.paper]
    require_tqdm()
    require_matplotlib()
    if options.seed < 0:
        raise InvalidInput(f"--seed must be a number >= 0, not {options.seed}")
    data = None if options.data is None else _check_data(options, paper)
    _check_spark(options, paper)
    folder = _make_folder(options.folder or f"reproduce-{options.paper}")
    if not options.quick:
        say(paper.duration)
    paper.run(Order(folder, options.quick, data, options.seed, options.spark), _ScreenReporter())
    show(f"\nfigures: {folder}")


def _check_data(options: argparse.Namespace, paper: Paper) -> Path:
    from contrada.reproduce.real_layers import check_layers

    if not paper.layers:
        raise InvalidInput(
            f"--data {options.data}: reproduce {options.paper} makes its own geometries and takes "
            "no layers"
        )
    data = Path(options.data)
    if not data.is_dir():
        raise InvalidInput(f"--data {options.data}: no such folder")
    check_layers(data, paper.layers)
    return data


def _check_spark(options: argparse.Namespace, paper: Paper) -> None:
    from contrada.cli.spark_start import check_master

    if options.spark is None:
        return
    if not paper.takes_spark:
        raise InvalidInput(f"--spark {options.spark}: reproduce {options.paper} uses no Spark")
    check_master("--spark", options.spark)


def _make_folder(name: str) -> Path:
    """Make the folder for the figures, and see that it can be written to."""
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"--folder {name}: is a file, not a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise blame(fault, f"--folder {name}: cannot be created: {fault.strerror}") from fault
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as fault:
        raise Unavailable(f"--folder {name}: cannot be written to: {fault.strerror}") from fault
    return folder


class _ScreenReporter:
    """Tables on stdout, progress on stderr."""

    def say(self, line: str) -> None:
        """Print a line without tearing a bar on the same screen."""
        from tqdm import tqdm

        if sys.stderr.isatty():
            with suppress(NobodyReads), writing_stdout() as stdout:
                tqdm.write(visible(line), file=stdout)
                stdout.flush()
        else:
            show(line)

    @contextmanager
    def watch(self, label: str, steps: int) -> Iterator[Callable[[], None]]:
        """Show a bar, whose clock goes on where a step is long; in a log, a line first."""
        done = threading.Event()
        counter = _Counter()
        watcher = threading.Thread(target=_show, args=(label, steps, counter, done), daemon=True)
        watcher.start()
        with nullcontext() if sys.stderr.isatty() else saying(f"{label} ..."):
            try:
                yield counter.step
            finally:
                done.set()
                watcher.join()


class _Counter:
    """Counts steps in one thread for another one to read."""

    def __init__(self) -> None:
        self.value = 0

    def step(self) -> None:
        """Count one."""
        self.value += 1


def _show(label: str, steps: int, counter: _Counter, done: threading.Event) -> None:
    with bar(label, steps, "steps") as shown:
        shown.leave = shown.unit_scale = False
        shown.miniters, shown.dynamic_miniters = 0, False
        while not done.wait(_POLL_S):
            shown.update(counter.value - shown.n)
