"""What `contrada publish` does: it sends the events of a file, or of stdin, to a broker.

Each batch has a key made of its content, so that a command that was interrupted, or that found bad
events, can simply be repeated: what was taken before is known and not stored again.
"""

import argparse
import hashlib
import json
import secrets
import time
from collections import Counter
from dataclasses import dataclass

from contrada.cli.progress import bar, require_tqdm, saying
from contrada.cli.publish_sources import EventSource, open_source
from contrada.cli.report import RunReport
from contrada.cli.terminal import say, show
from contrada.client.batching import OutgoingBatch, cut_batches
from contrada.client.blocking import Client
from contrada.client.received import PublishReceipt, RefusedEvents
from contrada.errors import BadRows, ContradaError, InvalidInput
from contrada.limits import REQUEST_EVENTS_MAX

_RETRIES = 8
_REMEMBERED_MAX = 100_000


@dataclass(slots=True)
class PublishReport(RunReport):
    """What became of the events; those that were repeated count as accepted, too."""

    events: int = 0
    events_accepted: int = 0
    events_repeated: int = 0
    events_left_out: int = 0
    matches: int = 0
    position: str | None = None

    def figures(self) -> dict[str, int | None]:
        """Return the counts by name."""
        figures = RunReport.figures(self)
        del figures["position"]
        return figures

    def as_json(self) -> str:
        """Write one JSON object on one line."""
        return json.dumps({**json.loads(RunReport.as_json(self)), "position": self.position})

    def add(self, receipt: PublishReceipt) -> None:
        """Take in what became of a batch."""
        self.events_accepted += receipt.accepted
        self.events_repeated += receipt.repeated
        self.matches += receipt.matches
        self.position = receipt.position or self.position


class BatchKeys:
    """A key for each batch: its content, and how many of the same content came before it.

    So a batch is known again also where another one has changed. To bound what is remembered, the
    keys of each `_REMEMBERED_MAX` batches begin with what came before them.
    """

    def __init__(self, salt: str) -> None:
        """Take what makes the same content another; nothing for a command that may be repeated."""
        self._salt = salt
        self._seen: Counter[str] = Counter()

    def make(self, batch: OutgoingBatch) -> str:
        """Make the key of the next batch."""
        digest = hashlib.sha256(self._salt.encode())
        for event in batch.events:
            text = event.text.encode()
            digest.update(len(text).to_bytes(8, "big") + text)
        content = digest.hexdigest()[:32]
        self._seen[content] += 1
        key = f"{content}-{self._seen[content]}"
        if len(self._seen) == _REMEMBERED_MAX:
            self._salt = key
            self._seen.clear()
        return key


def publish_file(options: argparse.Namespace) -> None:
    """Publish, and report."""
    started = time.monotonic()
    if not 1 <= options.batch <= REQUEST_EVENTS_MAX:
        raise InvalidInput(f"--batch {options.batch}: must be from 1 to {REQUEST_EVENTS_MAX:,}")
    require_tqdm()
    report = PublishReport()
    verify = True if options.cacert is None else options.cacert
    with Client(options.to, retries=_RETRIES, verify=verify) as client:
        with saying(f"reading events from {options.file}"):
            source = open_source(options.file, options.layer)
        keys = BatchKeys(secrets.token_hex(8) if options.anew else "")
        try:
            _publish(client, source, keys, options.batch, report)
        except ContradaError:
            _say_how_far(report)
            raise
    report.seconds = time.monotonic() - started
    show(report, on_stderr=options.json)
    if options.json:
        show(report.as_json())
    if source.bad:
        raise BadRows(
            f"{report.events_left_out:,} of {report.events:,} events were not published",
            source.describe_bad(),
            report.events_left_out,
        )


def _publish(
    client: Client, source: EventSource, keys: BatchKeys, size: int, report: PublishReport
) -> None:
    with bar("publishing", source.count, "events") as progress:
        for batch in cut_batches(source, size):
            try:
                receipt = client.publish(batch.events, idempotency_key=keys.make(batch))
            except RefusedEvents as refused:
                receipt = refused.receipt
            report.add(receipt)
            numbers = [source.numbers.popleft() for _ in batch.events]
            for fault in receipt.errors:
                source.leave_out(numbers[fault.index], fault.detail)
            report.events = report.events_accepted + source.bad_count
            report.events_left_out = source.bad_count
            progress.update(len(batch.events))
    report.events = report.events_accepted + source.bad_count
    report.events_left_out = source.bad_count


def _say_how_far(report: PublishReport) -> None:
    if report.events_accepted:
        say(
            f"{report.events_accepted:,} events were published before; the same command, once what "
            "follows is mended, publishes none of them twice"
        )
