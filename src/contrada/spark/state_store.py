"""Where Spark keeps the state of streams: transitions need RocksDB, which is not its default."""

import importlib
from typing import TYPE_CHECKING

from contrada.errors import InvalidInput, MissingPackage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_ROCKSDB = "RocksDBStateStoreProvider"
ROCKSDB_PROVIDER = f"org.apache.spark.sql.execution.streaming.state.{_ROCKSDB}"


def check_state_store(spark: "SparkSession") -> None:
    """Refuse a session in which the state of objects cannot be kept."""
    provider = str(spark.conf.get(STATE_STORE, ""))
    if not provider.endswith(_ROCKSDB):
        raise InvalidInput(
            f"transitions on a stream keep their state in RocksDB, and this session has {provider}:"
            f' set spark.conf.set("{STATE_STORE}", "{ROCKSDB_PROVIDER}") before, or start it with '
            "contrada.spark.session"
        )
    try:
        importlib.import_module("google.protobuf")  # by which Python talks to Spark's state
    except ImportError:
        raise MissingPackage(
            "transitions on a stream need the package protobuf, by which Spark keeps state from "
            "Python: pip install protobuf"
        ) from None
