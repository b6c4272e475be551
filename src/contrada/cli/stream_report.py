"""What a running stream has done so far: a line for people, and text for Prometheus."""

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from contrada.cli.terminal import one_line
from contrada.errors import InvalidInput
from contrada.machine import write_whole

if TYPE_CHECKING:
    from contrada.spark.match_counts import FollowedCounts
    from contrada.spark.stream_watch import BatchReport

_QUIET_S = 10.0  # between two lines where a line cannot be written over
_HELP = {
    "events_total": "counter Events that came in.",
    "events_evaluated_total": "counter Events that were matched against the subscriptions.",
    "events_set_aside_total": "counter Bad events, which went to the quarantine.",
    "matches_total": "counter Matches that were written.",
    "batches_total": "counter Batches that were committed.",
    "batch_seconds": "gauge How long the last batch took.",
    "seconds_behind": "gauge How long the stream would take to catch up with its source.",
    "offsets_behind": "gauge How many messages the source has beyond the last batch.",
    "transitions_total": "counter Transitions that were written, late positions among them.",
    "positions_applied_total": "counter Positions that were applied to the state of their object.",
    "positions_late_total": "counter Positions that came too late to be applied.",
    "positions_repeated_total": "counter Positions that had been applied before.",
    "positions_held": "gauge Positions that wait for others, which may come late.",
    "objects": "gauge Objects that are remembered.",
    "visits": "gauge Visits of objects to subscriptions that go on.",
    "state_bytes": "gauge How many bytes the state of all objects takes.",
    "last_batch_timestamp_seconds": "gauge When the last batch was committed.",
}


@dataclass(slots=True)
class FollowedTotals:
    """What became of positions since the stream was started, and what it remembers now."""

    applied: int = 0
    late: int = 0
    repeated: int = 0
    held: int = 0
    objects: int = 0
    visits: int = 0
    state_bytes: int = 0

    def add(self, batch: "FollowedCounts") -> None:
        """Count a batch."""
        self.applied += batch.applied
        self.late += batch.late
        self.repeated += batch.repeated
        self.held, self.objects = batch.held, batch.objects
        self.visits, self.state_bytes = batch.visits, batch.state_bytes

    def describe(self) -> list[str]:
        """Return what the line for people says of them."""
        named = [(self.late, "late"), (self.held, "held"), (self.objects, "objects")]
        shown = [f"{count:,} {name}" for count, name in named if count]
        return [*shown, f"{self.state_bytes / 1e6:.1f} MB of state"]

    def as_metrics(self) -> dict[str, float | None]:
        """Return them by the names that Prometheus has."""
        totals = ("applied", "late", "repeated")
        return {
            **{f"positions_{name}_total": getattr(self, name) for name in totals},
            "positions_held": self.held,
            "objects": self.objects,
            "visits": self.visits,
            "state_bytes": self.state_bytes,
        }


@dataclass(slots=True)
class StreamReport:
    """The counts of a stream since it was started."""

    events: int = 0
    evaluated: int = 0
    set_aside: int = 0
    matches: int = 0
    batches: int = 0
    version: str | None = None
    fault: str | None = None
    last: "BatchReport | None" = None
    last_time: float = 0.0
    followed: FollowedTotals | None = None
    _shown: float = field(default=0.0, repr=False)

    def add(self, batch: "BatchReport") -> None:
        """Count a batch that was committed."""
        if batch.counts is not None:
            self.events += batch.counts.events
            self.evaluated += batch.counts.evaluated
            self.set_aside += batch.counts.set_aside
        self.matches += batch.rows or 0
        self.batches += 1
        if batch.followed is not None:
            self.followed = self.followed or FollowedTotals()
            self.followed.add(batch.followed)
        self.version = batch.version or self.version
        if batch.fault is not None and self.fault is None:
            self.fault = f"batch {batch.batch}: {batch.fault}"
        self.last, self.last_time = batch, time.time()

    def __str__(self) -> str:
        noun = "matches" if self.followed is None else "transitions"
        parts = [f"{self.events:,} events", f"{self.matches:,} {noun}"]
        if self.set_aside:
            parts.append(f"{self.set_aside:,} set aside")
        if self.followed is not None:
            parts += self.followed.describe()
        if self.version is not None:
            parts.append(f"version {self.version}")
        if self.last is not None and self.last.offsets_behind:
            behind = f"{self.last.offsets_behind:,} messages behind"
            seconds = self.last.seconds_behind
            parts.append(behind if seconds is None else f"{behind} ({seconds:.1f} s)")
        return ", ".join(parts)

    def show(self, stream: TextIO, *, is_last: bool = False) -> None:
        """Write the line: over the one before on a terminal, else now and then."""
        if stream.isatty():
            end = "\n" if is_last else ""
            print(f"\r\x1b[2K{one_line(self)}", end=end, file=stream, flush=True)
            return
        now = time.monotonic()
        if is_last or now - self._shown >= _QUIET_S:
            self._shown = now
            print(one_line(self), file=stream, flush=True)

    def as_json(self) -> dict[str, object]:
        """Return the counts for `--json`."""
        names = ("events", "evaluated", "set_aside", "matches", "batches", "version")
        stated = {name: getattr(self, name) for name in names}
        if self.followed is not None:
            stated["transitions"] = stated.pop("matches")
            stated |= asdict(self.followed)
        return stated

    def write_metrics(self, path: Path) -> None:
        """Write the counts as Prometheus text, whole or not at all."""
        last = self.last
        values: dict[str, float | None] = {
            "events_total": self.events,
            "events_evaluated_total": self.evaluated,
            "events_set_aside_total": self.set_aside,
            "matches_total": self.matches,
            "batches_total": self.batches,
            "batch_seconds": None if last is None else last.seconds,
            "seconds_behind": None if last is None else last.seconds_behind,
            "offsets_behind": None if last is None else last.offsets_behind,
            "last_batch_timestamp_seconds": self.last_time if self.batches else None,
        }
        if self.followed is not None:
            values["transitions_total"] = values.pop("matches_total")
            values |= self.followed.as_metrics()
        lines = []
        for name, value in values.items():
            if value is not None:
                kind, _, text = _HELP[name].partition(" ")
                lines += [
                    f"# HELP contrada_stream_{name} {text}",
                    f"# TYPE contrada_stream_{name} {kind}",
                    f"contrada_stream_{name} {value:.15g}",
                ]
        if self.version is not None:
            lines += [
                "# HELP contrada_stream_version_info The version of the subscriptions.",
                "# TYPE contrada_stream_version_info gauge",
                f'contrada_stream_version_info{{version="{self.version}"}} 1',
            ]
        write_whole(path, ("\n".join(lines) + "\n").encode())


def check_metrics(path: Path) -> None:
    """Refuse a place where counts cannot be written, before the first of them are."""
    if path.is_dir():
        raise InvalidInput(f"--metrics {path}: is a folder, not a file")
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"--metrics {path}: there is no folder {path.parent}")
