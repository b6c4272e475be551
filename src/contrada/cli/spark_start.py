"""What the commands on Spark share: the master, its settings, the log, and one-line errors."""

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from contrada.cli.progress import waiting
from contrada.cli.terminal import VisibleFormatter
from contrada.errors import ContradaError, InvalidInput, blame, read_line
from contrada.matcher.match_run import MatchRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MASTER = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn")


def check_master(option: str, master: str) -> None:
    """Refuse what cannot be a Spark master, at which Spark itself would print a traceback."""
    if not _MASTER.fullmatch(master):
        raise InvalidInput(f"{option} {master} is not a Spark master; try 'local[*]'")


def read_conf(settings: Sequence[str] | None) -> dict[str, str]:
    """Read the settings of `--conf`."""
    found = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals or not name.startswith("spark."):
            raise InvalidInput(f"--conf {setting}: must be spark.NAME=VALUE")
        found[name] = value
    return found


def start(master: str, config: dict[str, str], label: str) -> "SparkSession":
    """Start Spark, or take the session that is running, and show how long it takes."""
    import contrada.spark

    with waiting(label):
        return contrada.spark.session(master, config=config)


def is_one_machine(spark: "SparkSession") -> bool:
    """Whether driver and executors have the same files."""
    return str(spark.sparkContext.master).startswith("local")


def shared_folder(spark: "SparkSession") -> str | None:
    """Name a folder for files that driver and executors pass on; None means any on one machine."""
    from contrada.spark.staging import STAGING, staging_uri

    if is_one_machine(spark):
        return None
    uri = urlsplit(staging_uri(spark))
    if uri.scheme not in ("", "file"):
        raise InvalidInput(
            f"{STAGING} is {uri.geturl()}, but this command needs a folder that all machines "
            "mount: set it to file:///…, or call contrada.spark.match"
        )
    folder = Path(unquote(uri.path))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise blame(fault, f"{STAGING} is {uri.geturl()}: {fault}") from None
    return str(folder)


@contextmanager
def our_errors(run: MatchRun | None = None) -> Iterator[None]:
    """Turn the traceback of a Spark worker back into the one line that the user needs.

    A bad event that is named by its row gets its place in the file of `run`, unless another one
    comes before it there: tasks fail in any order.
    """
    try:
        yield
    except Exception as error:
        found = None if isinstance(error, ContradaError) else read_line(str(error))
        if found is None:
            raise
        raise _place(found, run) from None


def _place(error: ContradaError, run: MatchRun | None) -> ContradaError:
    if run is None or not isinstance(error, InvalidInput) or error.row is None:
        return error
    run.refuse_bad_before(error.row)
    return error.within(run.rows.place(error.row))


@contextmanager
def our_log() -> Iterator[None]:
    """Show what we log and nothing else: Py4J and Java log an interrupt with their tracebacks."""
    handler = logging.StreamHandler()
    handler.setFormatter(VisibleFormatter("contrada: %(message)s"))
    handler.addFilter(logging.Filter("contrada"))
    logging.getLogger().addHandler(handler)
    try:
        yield
    except KeyboardInterrupt:
        _silence_java()
        raise
    finally:
        logging.getLogger().removeHandler(handler)


def _silence_java() -> None:
    """Let Spark end without a word about the tasks that it leaves undone."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None:
        with suppress(Exception):  # it may have gone already
            context.setLogLevel("OFF")
