"""Where Spark's connector for Kafka is: it does not come with PySpark.

`make kafka` puts it into a folder of the checkout, from which `session` takes it; anybody else
names a folder, or lets Spark fetch it (`spark.jars.packages`).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from contrada.errors import InvalidInput, MissingPackage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader
    from pyspark.sql.streaming.readwriter import DataStreamReader

VARIABLE = "CONTRADA_KAFKA_JARS"
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
FETCHED = Path(__file__).parents[3] / ".kafka"
BROKER = FETCHED / "broker"

_NAME = "spark-sql-kafka"
_SETTINGS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def connector_folder() -> Path:
    """Return the folder into which `make kafka` fetches the connector of this PySpark."""
    import pyspark

    return FETCHED / f"connector-{pyspark.__version__}"


def find_connector() -> list[Path]:
    """List the jars of the connector: those in the folder that CONTRADA_KAFKA_JARS names, or else
    what `make kafka` has fetched, if anything.
    """
    named = os.environ.get(VARIABLE)
    jars = sorted((Path(named) if named else connector_folder()).glob("*.jar"))
    if named and not jars:
        raise InvalidInput(f"{VARIABLE} names {named!r}, a folder that has no jars")
    return jars


def with_connector(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a local session, with the connector unless they name one."""
    is_named = any(_NAME in settings.get(name, "") for name in _SETTINGS)
    jars = [] if is_named else find_connector()
    if not jars:
        return dict(settings)
    own = [jar for jar in settings.get("spark.jars", "").split(",") if jar]
    return {**settings, "spark.jars": ",".join([*own, *(jar.as_uri() for jar in jars)])}


def load_kafka(
    reader: "DataFrameReader | DataStreamReader", options: Mapping[str, str]
) -> "DataFrame":
    """Load from Kafka; where the session has no connector, the error says how to get one."""
    from pyspark.errors import AnalysisException

    try:
        messages = reader.format("kafka").options(**options).load()
        _ = messages.schema  # over Spark Connect nothing is looked for before this is asked
        return messages
    except AnalysisException as fault:
        if "find data source" not in str(fault) and "find the data source" not in str(fault):
            raise
        raise MissingPackage(_remedy()) from None


def _remedy() -> str:
    import pyspark

    return (
        "this Spark session has no connector for Kafka; start it with the setting "
        f"spark.jars.packages={CONNECTOR}:{pyspark.__version__}, or name a folder that has the "
        f"jars in {VARIABLE}; in a checkout of Contrada, make kafka fetches them for local sessions"
    )
