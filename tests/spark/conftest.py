"""What the tests of Spark share: one session, because a start costs ten seconds."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

import contrada.spark
from kafka_broker import KafkaBroker, missing_for_kafka
from stream_runs import zones

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """The session of all Spark tests in this process, on two cores."""
    config = {
        "spark.sql.geospatial.enabled": "true",  # as from Spark 4.2 without saying so
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # Java's best code comes late
    }
    session = contrada.spark.session("local[2]", config=config)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """The broker of all tests in this process; they are skipped where none was fetched."""
    missing = missing_for_kafka()
    if missing is not None:
        pytest.skip(missing)
    with (
        TemporaryDirectory(prefix="contrada-kafka-") as folder,
        KafkaBroker(Path(folder)) as broker,
    ):
        yield broker


@pytest.fixture(scope="session")
def published_zones(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set that has been published, of which tests of streams take copies."""
    folder = tmp_path_factory.mktemp("published") / "zones"
    contrada.spark.publish(zones(spark), folder)
    return folder


@pytest.fixture(scope="module", autouse=True)
def functions_travel_whole(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send the functions of a test module to Spark's workers as code: they cannot import it."""
    from pyspark.cloudpickle import register_pickle_by_value, unregister_pickle_by_value

    register_pickle_by_value(request.module)  # type: ignore[no-untyped-call]
    yield
    unregister_pickle_by_value(request.module)  # type: ignore[no-untyped-call]
