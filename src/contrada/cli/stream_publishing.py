"""Subscriptions of a running stream: a file that is published whenever it has changed."""

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from contrada.cli.progress import saying
from contrada.cli.remedies import describe
from contrada.cli.spark_source import Source
from contrada.cli.spark_start import our_errors, shared_folder
from contrada.cli.subscription_file import open_subscriptions
from contrada.cli.terminal import complain, say
from contrada.errors import ContradaError, InvalidInput, Remedy
from contrada.matching.subscribing import SUBSCRIPTION_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEAD = "2 s"  # that of `publish`

Stamp = tuple[tuple[str, int, int], ...]  # names, times and sizes of files


class SubscriptionPublisher:
    """Publishes a file of subscriptions, and again when it has changed.

    Of a file that is bad it says so once, and the version before stays. What the machine is to
    blame for is said once, too, and tried again until it succeeds. A file that is being written is
    left alone until it has looked the same twice.
    """

    def __init__(self, spark: "SparkSession", options: argparse.Namespace, uri: str) -> None:
        """Publish nothing yet."""
        self._spark, self._options, self._uri = spark, options, uri
        self._done: Stamp | None = None  # what was published, or refused for good
        self._seen: Stamp | None = None  # what the file looked like the last time
        self._told = ""  # what went wrong the last time
        self.version = ""

    def begin(self) -> None:
        """Publish the file as it is; what is wrong with the first one ends the command."""
        from contrada.spark.uris import as_uri
        from contrada.spark.version_names import list_versions

        known = list_versions(as_uri(self._uri))
        self.version = str(known[-1]) if known else ""
        self._seen = read_stamp(self._options.subscriptions)
        self._try(self._seen, lead=0)  # no batch of this stream is under way that could disagree
        say(f"subscriptions: version {self.version}")

    def look(self) -> None:
        """Publish the file if it has changed since it was looked at, and no longer does."""
        stamp, before = read_stamp(self._options.subscriptions), self._seen
        self._seen = stamp
        if stamp == before != self._done:
            self._try(stamp, _LEAD)

    def _try(self, stamp: Stamp, lead: str | float) -> None:
        """Publish the file; say what is wrong, unless there is no version yet."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            version = self._publish(lead)
        except (ContradaError, OSError, PySparkException, Py4JError) as error:
            if not self.version:
                raise
            if isinstance(error, InvalidInput):
                self._done = stamp
            self._tell(error)
            return
        self._done, self._told = stamp, ""
        if version != self.version and self.version:
            say(f"subscriptions: version {version} from now on")
        self.version = version

    def _tell(self, error: Exception) -> None:
        """Complain of what went wrong, once for as long as it goes on."""
        is_final = isinstance(error, InvalidInput)
        lines = describe(error) if isinstance(error, InvalidInput) else [str(error)]
        if lines[0] == self._told:
            return
        self._told = lines[0]
        complain(*lines)
        more = "" if is_final else "; publishing is tried again"
        say(f"the subscriptions stay as they were, at version {self.version}{more}")

    def _publish(self, lead: str | float) -> str:
        import contrada.spark

        options = self._options
        with saying(f"reading subscriptions from {options.subscriptions}"):
            subscriptions = open_subscriptions(options)
        is_empty = subscriptions.rows.count == 0  # as a GeoJSON that has no columns then
        is_lacking = options.id not in subscriptions.rows.schema.names
        rows = Source(
            subscriptions.rows,
            options.subscriptions,
            None if is_empty and is_lacking else options.id,
            Remedy.SUBSCRIPTION_ID,
            SUBSCRIPTION_COLUMNS,
            is_changed=True,  # it may change while Spark reads it: a copy stays as it is
        )
        with (
            our_errors(),
            tempfile.TemporaryDirectory(
                prefix="contrada-", dir=shared_folder(self._spark)
            ) as folder,
        ):
            frame = rows.frame(self._spark, Path(folder) / "subscriptions")
            return contrada.spark.publish(
                frame,
                self._uri,
                subscription_id=rows.id_column,
                repair=options.repair,
                strict=options.strict,
                partitions=options.partitions,
                lead=lead,
            )


def read_stamp(path: str) -> Stamp:
    """Read what changes when a file does, or one of a folder; nothing where there is none."""
    here = Path(path)
    try:
        files = sorted(here.rglob("*")) if here.is_dir() else [here]
    except OSError:  # a folder that goes while it is listed
        return ()
    found = []
    for file in files:
        try:
            state = file.stat()
        except OSError:
            continue
        found.append((str(file), state.st_mtime_ns, state.st_size))
    return tuple(found)
