"""What the tasks of a batch have counted, as Spark observed it, and what must not be."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from contrada.spark.answering import DONE
from contrada.spark.match_counts import (
    CAME_IN,
    VERSIONS_SEEN,
    WAS_DONE,
    EventCounts,
    FollowedCounts,
)
from contrada.spark.version_names import name_version

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

Metrics = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ObservedMatch:
    """What the tasks of one `match` have done in a batch; `name` is that of the observation."""

    name: str
    counts: EventCounts
    versions: tuple[str | None, str | None]
    followed: FollowedCounts | None = None

    @property
    def version(self) -> str | None:
        """The version of the subscriptions, the later one if there are two."""
        return self.versions[1]

    def find_fault(self) -> str | None:
        """Describe what must not be; None where all is well."""
        done = self.counts
        if done.events != done.evaluated + done.set_aside:
            return (
                f"{done.events:,} events came in, and {done.evaluated:,} were evaluated and "
                f"{done.set_aside:,} set aside: the answer is not complete"
            )
        if self.followed is not None and (fault := _find_missing(done, self.followed)) is not None:
            return fault
        low, high = self.versions
        if low != high:
            return (
                f"its tasks met two versions of the subscriptions, {low} and {high}; run again, "
                "they will all meet the later one (was `lead` of publish too short for the clocks?)"
            )
        return None


def read_metrics(progress: "StreamingQueryProgress") -> Metrics:
    """Take what was observed in a batch out of its progress."""
    return {name: row.asDict() for name, row in progress.observedMetrics.items()}


def _find_missing(events: EventCounts, followed: FollowedCounts) -> str | None:
    """Describe positions that are missing; None where all are accounted for."""
    came = events.evaluated - events.without_geometry + followed.waited
    became = followed.applied + followed.late + followed.repeated + followed.held
    if came == became:
        return None
    return (
        f"{came:,} positions came in or were held before, and {became:,} were applied, late, "
        "repeated or are held: the state is not complete"
    )


def read_observed(metrics: Metrics) -> list[ObservedMatch]:
    """Bring together what was observed before and after the tasks of each match."""
    found = []
    for name, came_in in sorted(metrics.items()):
        after = WAS_DONE + name.removeprefix(CAME_IN)
        done = metrics.get(after)
        if name.startswith(CAME_IN) and done is not None and came_in["events"] is not None:
            counts = EventCounts(came_in["events"], *(done[key] or 0 for key in DONE))
            low, high = (_read_version(done[key]) for key in VERSIONS_SEEN)
            found.append(ObservedMatch(after, counts, (low, high), _read_followed(done)))
    return found


def _read_version(seen: int | str | None) -> str | None:
    """Return the name of a version; the tasks of a match number it, since Spark compares that."""
    return name_version(seen) if isinstance(seen, int) else seen


def _read_followed(done: Mapping[str, Any]) -> FollowedCounts | None:
    """Read what became of positions, where objects are followed."""
    names = [field.name for field in fields(FollowedCounts)]
    if not done.keys() >= set(names):
        return None
    return FollowedCounts(**{name: done[name] or 0 for name in names})
