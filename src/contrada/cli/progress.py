"""Progress on stderr: a bar for rows, a bar for the tasks of Spark jobs, a line for the rest."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from contrada.cli.terminal import one_line, say
from contrada.errors import MissingPackage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tqdm import tqdm

_POLL_S = 0.3
_MOMENT_S = 1.0


def require_tqdm() -> None:
    """Raise MissingPackage, with the remedy, where tqdm is not installed."""
    try:
        import tqdm  # noqa: F401
    except ImportError as error:
        raise MissingPackage(
            "this command needs tqdm, which is not installed: pip install tqdm"
        ) from error


def bar(label: str, total: int | None, unit: str = "rows") -> "tqdm[Any]":
    """Make a bar that appears when the work takes longer than a moment."""
    require_tqdm()
    from tqdm import tqdm

    return tqdm(
        total=total,
        desc=one_line(label),
        unit=f" {unit}",
        unit_scale=True,
        delay=_MOMENT_S,
        mininterval=0.2 if sys.stderr.isatty() else 5,
        leave=True,  # what is said next begins a line
        dynamic_ncols=True,
    )


@contextmanager
def saying(line: str) -> Iterator[None]:
    """Print what is being done, if it takes longer than a moment."""
    timer = threading.Timer(_MOMENT_S, say, [line])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Show how long something takes whose progress is unknown."""
    done = threading.Event()
    watcher = threading.Thread(target=_tick, args=(label, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _tick(label: str, done: threading.Event) -> None:
    with bar(label, None) as shown:
        shown.bar_format = "{desc}: {elapsed}"
        while not done.wait(_POLL_S):
            if sys.stderr.isatty():
                shown.refresh()
        if sys.stderr.isatty():
            shown.clear()


@contextmanager
def spark_jobs(spark: "SparkSession", label: str) -> Iterator[None]:
    """Show the tasks of the Spark jobs that are running."""
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, label, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(spark: "SparkSession", label: str, done: threading.Event) -> None:
    with suppress(Exception):  # a session that stops meanwhile: the work itself will tell
        _show_stages(spark.sparkContext.statusTracker(), label, done)


def _show_stages(tracker: Any, label: str, done: threading.Event) -> None:
    finished: dict[int, int] = {}
    totals: dict[int, int] = {}
    with bar(label, None, "tasks") as shown:
        shown.unit_scale = False
        while not done.wait(_POLL_S):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    totals[stage], finished[stage] = info.numTasks, info.numCompletedTasks
            for stage in finished.keys() - set(tracker.getActiveStageIds()):
                finished[stage] = totals[stage]
            shown.total = sum(totals.values())
            shown.update(sum(finished.values()) - shown.n)
        shown.update(sum(totals.values()) - shown.n)
