"""What `make kafka` runs: fetches a Kafka broker and Spark's connector for Kafka, as jars.

Apache Ivy, which comes with PySpark, resolves and fetches them, so that nothing is needed but the
Java that runs Spark. What is there already is not fetched again; where nothing can be fetched,
a line says so and the code is still 0: tests that need the jars are skipped.
"""

import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
from install import say, show_until_over

from contrada.errors import ContradaError
from contrada.spark import java
from contrada.spark.kafka_jars import BROKER, CONNECTOR, FETCHED, connector_folder

TIMEOUT_S = 300  # of all attempts together
SPARK_JARS = Path(pyspark.__file__).with_name("jars")
SCALA = "2.13"
# The connector that ran on PySpark 4.3.0, where its own version could not be had.
LATEST_KNOWN = "4.2.0"
BESIDE_CONNECTOR = (
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Artifacts as `group:name:version`, with all that they need or alone.

    For Spark, what it has itself is left out, in whatever version.
    """

    artifacts: tuple[str, ...]
    is_transitive: bool = True
    is_for_spark: bool = True

    def write(self) -> str:
        """Write the module that Ivy is to resolve."""
        lines = []
        for artifact in self.artifacts:
            group, name, version = artifact.split(":")
            lines.append(
                f'<dependency org="{group}" name="{name}" rev="{version}" '
                f'conf="default->default" transitive="{str(self.is_transitive).lower()}"/>'
            )
        return (
            '<ivy-module version="2.0"><info organisation="contrada" module="kafka"/>'
            f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
        )


class Fetching:
    """How far Ivy is, by what lies in its cache."""

    def __init__(self, what: str, folder: Path) -> None:
        """Watch a folder."""
        self._what, self._folder = what, folder

    def __str__(self) -> str:
        sizes = [_size(path) for path in self._folder.rglob("*.jar")]
        return f"fetching {self._what}: {len(sizes)} jars, {sum(sizes) / 1e6:.0f} MB"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it has just been renamed
        return 0


def main() -> int:
    """Fetch what is not there yet."""
    try:
        program = java.find().program
    except ContradaError as fault:
        print(f"Kafka is not fetched, and tests of it will be skipped: {fault}")
        return 0
    FETCHED.mkdir(exist_ok=True)
    deadline = time.monotonic() + TIMEOUT_S
    missing = []
    for what, folder, attempts in _wishes():
        if folder.exists():
            continue
        print(f"fetching {what}: this takes half a minute", file=sys.stderr)
        if not any(_fetch(program, what, folder, attempt, deadline) for attempt in attempts):
            missing.append(what)
    if missing:
        print(f"cannot be fetched from here: {' and '.join(missing)}; tests of it will be skipped")
    return 0


def _wishes() -> Iterator[tuple[str, Path, list[Wanted]]]:
    """List what to fetch, where to, and ways to get it, best first."""
    version = pyspark.__version__
    broker = (
        f"org.apache.kafka:kafka_{SCALA}:4.3.1",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
    )
    yield "a Kafka broker", BROKER, [Wanted(broker, is_for_spark=False)]
    attempts = [Wanted((f"{CONNECTOR}:{version}",))]
    attempts += [
        Wanted((f"{CONNECTOR}:{known}", *BESIDE_CONNECTOR), is_transitive=False)
        for known in dict.fromkeys((version, LATEST_KNOWN))
    ]
    yield f"Spark's connector for PySpark {version}", connector_folder(), attempts


def _fetch(program: Path, what: str, folder: Path, wanted: Wanted, deadline: float) -> bool:
    """Fetch artifacts into a folder, which appears when all are there; False where it cannot."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=FETCHED, prefix="draft-") as text:
        draft = Path(text)
        (draft / "jars").mkdir()
        (draft / "ivy.xml").write_text(wanted.write())
        if not _run_ivy(program, draft, Fetching(what, draft), deadline):
            return False
        if wanted.is_for_spark:
            _remove_known(draft / "jars")
        try:
            (draft / "jars").rename(folder)
        except OSError:  # another process was faster
            return folder.exists()
    _, name, version = wanted.artifacts[0].split(":")
    place = f"{folder.parent.name}/{folder.name}"
    say(f"{what}: {name} {version} in {place}, {time.monotonic() - started:.0f} s")
    return True


def _run_ivy(program: Path, draft: Path, progress: Fetching, deadline: float) -> bool:
    """Let Ivy fetch jars into the folder `jars` of a draft; False where it fails, or too late."""
    ivy = next(SPARK_JARS.glob("ivy-*.jar"))
    command = [
        *(program, "-cp", ivy, "org.apache.ivy.Main"),
        *("-cache", draft / "cache", "-ivy", draft / "ivy.xml", "-confs", "default"),
        *("-retrieve", f"{draft}/jars/[artifact]-[revision].[ext]"),
        *("-types", "jar", "bundle", "-warn"),
    ]
    with subprocess.Popen(  # noqa: S603  the Java that runs Spark
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        waiting = threading.Thread(target=_wait, args=(process, deadline))
        waiting.start()
        try:
            show_until_over(waiting, progress, time.monotonic())
        finally:
            process.kill()
    return process.returncode == 0


def _wait(process: "subprocess.Popen[bytes]", deadline: float) -> None:
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()


def _remove_known(folder: Path) -> None:
    known = {_artifact(jar) for jar in SPARK_JARS.glob("*.jar")}
    for jar in folder.iterdir():
        if _artifact(jar) in known:
            jar.unlink()


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d[^/]*$", "", jar.stem)


if __name__ == "__main__":
    sys.exit(main())
