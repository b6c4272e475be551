"""A cluster on loopback: a standalone master and two workers run the demo as one machine does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import IO, TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from contrada.spark import java

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.soak, pytest.mark.spark]

LOOPBACK = "127.0.0.1"
START_TIMEOUT_S = 300
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


class Watcher(Thread):
    """Reads what a daemon logs, so that it never waits for us, until a line says what we want."""

    def __init__(self, log: IO[str], wanted: str) -> None:
        super().__init__(daemon=True)
        self.found: re.Match[str] | None = None
        self.lines: list[str] = []
        self._log, self._wanted = log, wanted
        self._is_known = Event()
        self.start()

    def run(self) -> None:
        for line in self._log:
            self.lines.append(line)
            if self.found is None and (found := re.search(self._wanted, line)):
                self.found = found
                self._is_known.set()
        self._is_known.set()

    def wait(self) -> re.Match[str]:
        assert self._is_known.wait(START_TIMEOUT_S), "".join(self.lines)
        assert self.found is not None, "".join(self.lines)
        return self.found


@contextmanager
def daemon(folder: Path, wanted: str, *arguments: str) -> Iterator[re.Match[str]]:
    """Run a daemon of Spark on ports of its own choice; give the line that says it is ready."""
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    home = Path(spark.origin).parent
    environment = os.environ | {
        "JAVA_HOME": str(java.launcher_home(java.find())),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    command = [str(home / "bin" / "spark-class"), *arguments]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
    )
    assert process.stderr is not None
    watcher = Watcher(process.stderr, wanted)
    try:
        yield watcher.wait()
    finally:
        process.terminate()
        process.wait()
        watcher.join()
        process.stderr.close()


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master with two workers of one core each; give the URL of the master."""
    ports = ["--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:
        ready = stack.enter_context(daemon(folder, r"master at (spark://[\d.:]+)", MASTER, *ports))
        for number in (1, 2):
            size = ["--cores", "1", "--memory", "1500M"]
            arguments = [WORKER, *ports, *size, ready[1]]
            registered = r"Successfully registered with master"
            stack.enter_context(daemon(folder / str(number), registered, *arguments))
        yield ready[1]


def run_demo(folder: Path, master: str, *options: str) -> tuple[dict[str, int], set[object]]:
    """Run the demo as a user would; give its figures and the pairs that it wrote."""
    command = [sys.executable, "-m", "contrada.cli", "demo", "--folder", str(folder), "--json"]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK}
    ended = subprocess.run(
        [*command, "--master", master, *options],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(ended.stdout.splitlines()[-1])
    pairs = pq.read_table(figures["output"], columns=["event", "subscription"])
    assert pairs.num_rows == figures["matches"]
    return figures, {tuple(row.values()) for row in pairs.to_pylist()}


def test_the_demo_finds_the_same_pairs_on_a_cluster_as_on_one_machine(tmp_path: Path) -> None:
    expected, expected_pairs = run_demo(tmp_path / "one", "local[2]")
    staging = tmp_path / "staging"
    with cluster(tmp_path) as master:
        conf = f"spark.contrada.staging={staging.as_uri()}"
        found, pairs = run_demo(tmp_path / "many", master, "--conf", conf)
    assert pairs == expected_pairs
    assert len(pairs) == found["matches"] == expected["matches"] > 0
    assert list(staging.glob("*")), "the workers had nothing from there"
