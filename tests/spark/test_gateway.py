"""Spark starts or leaves one line: no traceback, no Java, and the next session starts."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from answering_port import LOOPBACK, SPARK_ANSWER, answering
from contrada.spark.gateway import HeldWords, find_cause

pytestmark = pytest.mark.spark

SCRIPT = """
import json
import logging
import sys

from pyspark import SparkContext

import contrada.spark
from contrada.cli import main
from contrada.errors import InvalidInput

master = sys.argv[1]
slow = "spark.contrada.start.seconds=0.1"
code = main(["match", "zones.csv", "events.csv", "--spark", master, "--conf", slow])
try:
    contrada.spark.session("local[1]", config={"spark.driver.memory": "plenty"})
except InvalidInput as error:
    refused = str(error)
is_gone = SparkContext._gateway is None
count = contrada.spark.session("local[1]").range(3).count()
handlers = len(logging.getLogger().handlers)
print(json.dumps([code, refused, is_gone, count, handlers]))
"""


def test_a_start_that_fails_is_one_line_and_the_next_one_succeeds(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text("id,filter\na,x > 1\n")
    (tmp_path / "events.csv").write_text("id,x\n1,2\n")
    with answering(SPARK_ANSWER) as port:
        master = f"spark://{LOOPBACK}:{port}"
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, master],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    said = [line for line in done.stderr.splitlines() if not line.startswith("reading ")]
    assert said[0] == f"starting Spark on {master}"
    assert said[1].startswith(f"contrada: {master} did not accept the application within 0.1 s: ")
    assert said[2:] == []
    code, refused, is_gone, count, handlers = json.loads(done.stdout)
    assert code == 2
    assert refused.startswith("Spark cannot start on local[1]: ")
    assert "plenty" in refused
    assert (is_gone, count, handlers) == (True, 3, 0)


@pytest.mark.parametrize("stated", ["soon", "-1", "nan"])
def test_how_long_to_wait_is_a_number_of_seconds(stated: str) -> None:
    script = (
        "import contrada.spark\n"
        f"config = {{'spark.contrada.start.seconds': {stated!r}}}\n"
        "contrada.spark.session('spark://127.0.0.1:1', config=config)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1].endswith(
        f"spark.contrada.start.seconds must be a number of seconds, not {stated!r}"
    )


def test_the_last_cause_is_shown_without_its_package_on_one_line() -> None:
    message = (
        "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
        ": org.apache.spark.SparkException: External scheduler cannot be instantiated\n"
        "\tat org.apache.spark.SparkContext.<init>(SparkContext.scala:1)\n"
        "Caused by: java.net.UnknownHostException: nowhere: Name or service not known\n"
        "\t... 20 more\n"
    )
    assert find_cause("", message) == "UnknownHostException: nowhere: Name or service not known"


def test_where_java_ends_its_own_words_are_the_cause() -> None:
    ended = "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."
    said = (
        'Exception in thread "main" org.apache.spark.SparkException: no settings of YARN\n'
        "\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)\n"
    )
    assert find_cause(said, ended) == "SparkException: no settings of YARN"
    said = (
        "Invalid maximum heap size: -Xmxplenty\n"
        "Error: Could not create the Java Virtual Machine.\n"
        "Error: A fatal exception has occurred. Program will exit.\n"
    )
    assert find_cause(said, ended) == "Invalid maximum heap size: -Xmxplenty"
    assert find_cause("", ended) == ended


def test_words_are_held_back_and_then_passed_on(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "contrada.spark.gateway")
    words = HeldWords()
    script = "import sys; sys.stderr.write('one\\n'); input(); sys.stderr.write('two\\r')"
    process = subprocess.Popen(
        [sys.executable, "-uc", script], stdin=subprocess.PIPE, stderr=words.stderr
    )
    words.leave_to_process()
    assert process.stdin is not None
    while not words._held:
        assert process.poll() is None
    words.pass_on()
    process.communicate(b"\n")
    assert words.end() == ""
    assert capfd.readouterr().err == "two\r"
    assert caplog.messages == ["Java said while Spark started: one\n"]
