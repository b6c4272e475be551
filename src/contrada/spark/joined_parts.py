"""Parts brought together: one file that each machine maps, for a set or for a partition of one.

The rows stay in the order in which they are joined, which is the same whenever the same parts are:
so are the bytes, and the name of the file.
"""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from numpy.typing import NDArray

from contrada.files.sections import Sections, write_sections
from contrada.matcher.column_files import list_columns, load_columns
from contrada.matching.lookup import PrefixLists
from contrada.matching.subscription_columns import SubscriptionColumns, join_subscriptions
from contrada.spark.staging import StagedPart, StagedSet, put
from contrada.spark.task_errors import noting_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART = "digest string, count long, size_bytes long, gone string"
_PREFIX_STARTS, _PREFIXES = "spark.prefixes.starts", "spark.prefixes.numbers"
_JOIN_BYTES_MIN = 4 * 2**20  # of parts that a worker does not rather join for itself


@dataclass(frozen=True, slots=True)
class JoinTask:
    """The function for `mapInArrow` that joins all parts of a set; it is run once."""

    staged: StagedSet

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the whole set as one part, whatever comes in."""
        for _ in batches:
            pass
        parts = [load_columns(file) for file in self.staged.fetch()]
        whole = write_joined(self.staged.uri, join_subscriptions(parts))
        yield pa.RecordBatch.from_pylist([as_row(whole)])


def join_parts(spark: "SparkSession", staged: StagedSet) -> StagedSet:
    """Return a set in one part, unless it is small: every worker would join the parts anew."""
    if len(staged.parts) == 1 or staged.size_bytes < _JOIN_BYTES_MIN:
        return staged
    (row,) = spark.range(0, 1, 1, 1).mapInArrow(JoinTask(staged), PART).collect()
    return replace(staged, parts=(StagedPart(**row.asDict()),))


def write_joined(
    uri: str,
    subscriptions: SubscriptionColumns,
    beside: Mapping[str, NDArray[Any]] = MappingProxyType({}),
) -> StagedPart:
    """Write subscriptions in their order as one part, with columns beside them."""
    columns = {**list_columns(subscriptions), **beside}
    with tempfile.TemporaryDirectory(prefix="contrada-part-") as folder:
        path = Path(folder) / "part"
        write_sections(path, {}, columns)
        return put(uri, path, len(subscriptions))


def prefix_columns(prefixes: PrefixLists) -> dict[str, NDArray[Any]]:
    """Return the prefixes of subscriptions as columns beside them."""
    return {_PREFIX_STARTS: prefixes.list_starts, _PREFIXES: prefixes.prefixes}


def read_prefixes(file: Sections) -> PrefixLists:
    """Return the prefixes that lie beside the subscriptions of a part, in its order of rows."""
    return PrefixLists(file.columns[_PREFIX_STARTS], file.columns[_PREFIXES])


def find_prefixes(file: Sections) -> PrefixLists | None:
    """Return the prefixes of a part; None where none lie beside its subscriptions."""
    return read_prefixes(file) if _PREFIXES in file.columns else None


def as_row(part: StagedPart) -> dict[str, Any]:
    """Return what the driver must know of a part, as a row of `PART`."""
    return asdict(part)
