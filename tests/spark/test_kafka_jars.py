"""A session finds the connector for Kafka where it was fetched, or where it is told to look."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyspark
import pytest

from contrada.errors import InvalidInput, MissingPackage
from contrada.spark import kafka_jars
from contrada.spark.kafka_jars import find_connector, load_kafka, with_connector

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "kafka.py"
OWN = {"spark.jars": "mine.jar"}


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two jars where `make kafka` would have put them, as URIs."""
    monkeypatch.delenv("CONTRADA_KAFKA_JARS", raising=False)
    monkeypatch.setattr(kafka_jars, "FETCHED", tmp_path)
    folder = tmp_path / f"connector-{pyspark.__version__}"
    folder.mkdir()
    jars = [folder / "client.jar", folder / "spark-sql-kafka.jar"]
    for jar in jars:
        jar.touch()
    return [jar.as_uri() for jar in jars]


def test_what_was_fetched_is_added_to_the_jars_of_a_session(fetched: list[str]) -> None:
    assert with_connector({}) == {"spark.jars": ",".join(fetched)}
    assert with_connector(OWN) == {"spark.jars": ",".join(["mine.jar", *fetched])}


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize(
    "settings",
    [
        {"spark.jars": "/opt/spark-sql-kafka-0-10_2.13-4.3.0.jar"},
        {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"},
    ],
)
def test_a_connector_that_the_user_names_stays_alone(settings: dict[str, str]) -> None:
    assert with_connector(settings) == settings


def test_nothing_is_added_where_nothing_was_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONTRADA_KAFKA_JARS", raising=False)
    monkeypatch.setattr(kafka_jars, "FETCHED", tmp_path)
    assert with_connector(OWN) == OWN


@pytest.mark.usefixtures("fetched")
def test_a_folder_that_is_named_comes_before_what_was_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "named"
    folder.mkdir()
    monkeypatch.setenv("CONTRADA_KAFKA_JARS", str(folder))
    with pytest.raises(InvalidInput, match=r"CONTRADA_KAFKA_JARS names .*, a folder that has no"):
        find_connector()
    (folder / "own.jar").touch()
    assert find_connector() == [folder / "own.jar"]


class RemoteReader:
    """A reader of Spark Connect, whose server says only when it is asked that it has no Kafka."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self

    @property
    def schema(self) -> None:
        raise pyspark.errors.AnalysisException("Failed to find data source: kafka.")


def test_that_the_server_of_a_session_has_no_connector_is_said_at_once() -> None:
    reader: Any = RemoteReader()
    with pytest.raises(MissingPackage, match="has no connector for Kafka"):
        load_kafka(reader, {})


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script behind `make kafka`, which finds its neighbour as Python lets scripts do."""
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        spec = importlib.util.spec_from_file_location("fetch_kafka", SCRIPT)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["fetch_kafka"] = module  # dataclasses look for it
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(SCRIPT.parent))
        sys.modules.pop("fetch_kafka", None)
    return module


def test_make_kafka_says_in_one_line_that_nothing_can_be_fetched(tmp_path: Path) -> None:
    """Java is told of a proxy that is not there, so that it reaches nobody."""
    program = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); from pathlib import Path; "
        "from contrada.spark import kafka_jars as k; "
        f"k.FETCHED = Path({str(tmp_path)!r}); k.BROKER = k.FETCHED / 'broker'; "
        "import kafka; sys.exit(kafka.main())"
    )
    nobody = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1 -Dhttp.proxyHost=127.0.0.1"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAVA_TOOL_OPTIONS": f"{nobody} -Dhttp.proxyPort=1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        (
            "cannot be fetched from here: a Kafka broker and Spark's connector for PySpark "
            f"{pyspark.__version__}; tests of it will be skipped"
        )
    ]
    assert list(tmp_path.iterdir()) == []


def test_what_spark_has_itself_is_not_fetched_beside_it(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_jars, jars = tmp_path / "spark", tmp_path / "jars"
    for folder, names in ((spark_jars, ["lz4-java-1.11.0"]), (jars, ["lz4-java-1.8.0", "pool-2"])):
        folder.mkdir()
        for name in names:
            (folder / f"{name}.jar").touch()
    monkeypatch.setattr(script, "SPARK_JARS", spark_jars)
    script._remove_known(jars)
    assert [jar.name for jar in jars.iterdir()] == ["pool-2.jar"]


def test_no_address_to_fetch_from_is_written_down() -> None:
    assert not re.search(r"https?://", SCRIPT.read_text())
