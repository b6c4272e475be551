"""What the tests of Spark share: one session, because a start costs ten seconds."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import contrada.spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """The session of all Spark tests in this process, on two cores."""
    native = {"spark.sql.geospatial.enabled": "true"}  # as from Spark 4.2 without saying so
    session = contrada.spark.session("local[2]", config=native)
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def functions_travel_whole(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send the functions of a test module to Spark's workers as code: they cannot import it."""
    from pyspark.cloudpickle import register_pickle_by_value, unregister_pickle_by_value

    register_pickle_by_value(request.module)  # type: ignore[no-untyped-call]
    yield
    unregister_pickle_by_value(request.module)  # type: ignore[no-untyped-call]
