"""`contrada.spark.explain`: which plan a match would take, why, and how the load would lie."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from contrada.errors import InvalidInput
from contrada.matching.lookup import LookupTable
from contrada.model.geometry import as_array
from contrada.pictures import Layer, draw_map
from contrada.spark.box_columns import RowGroups, stated_row_groups
from contrada.spark.frames import FILE
from contrada.spark.jobs import Job
from contrada.spark.match import plan_match
from contrada.spark.null_lists import NULL_LISTS
from contrada.spark.partitioned import Partitions
from contrada.spark.task_errors import raising_noted_errors
from contrada.spark_options import read_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN_MAX = 16


@dataclass(frozen=True, slots=True)
class PlanExplanation:
    """The plan of a match, and what it rests on; print it for a readable report.

    `partitions` is None for the plan "broadcast", which has none; `row_groups` is None where the
    events were not read by `read_geoparquet` with a `bbox`.

    >>> events = spark.createDataFrame([(1, 20)], "id long, wind int")
    >>> winds = spark.createDataFrame([("gale", "wind > 17")], "id string, filter string")
    >>> print(contrada.spark.explain(events, winds, plan="broadcast"))
    plan: broadcast (requested)
    subscriptions: 1, ... bytes staged; 1 may be satisfied anywhere
    event columns sent to Python: id, wind
    """

    plan: str
    reason: str
    subscriptions: int
    size_bytes: int
    broad: int
    columns: tuple[str, ...]
    partitions: Partitions | None
    row_groups: RowGroups | None

    def __str__(self) -> str:
        staged = f"{self.subscriptions:,}, {self.size_bytes:,} bytes staged"
        lines = [
            f"plan: {self.plan} ({self.reason})",
            f"subscriptions: {staged}; {self.broad:,} may be satisfied anywhere",
            f"event columns sent to Python: {', '.join(self.columns)}",
        ]
        if self.row_groups is not None:
            lines.append(f"row groups of events: {self.row_groups}")
        return "\n".join([*lines, *(_describe(self.partitions) if self.partitions else ())])

    def draw(self, path: str | Path) -> None:
        """Draw the lookup table over the universe, to `.html` or `.png`.

        Raises `InvalidInput` for the plan "broadcast", which has no partitions, and for any other
        suffix.

        >>> places = spark.createDataFrame([(1, "POINT(5 1)")], "id long, geometry string")
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plan = contrada.spark.explain(places, places, plan="partitioned")
        ...     plan.draw(f"{folder}/partitions.html")
        """
        if self.partitions is None:
            raise InvalidInput(f"the plan {self.plan!r} has no partitions to draw")
        table = self.partitions.table
        shapes = as_array([shapely.box(*box) for box in prefix_boxes(table)])
        heavy = np.zeros(len(shapes), bool)
        heavy[[i for i, chosen in enumerate(table.replicas) if len(chosen) > 1]] = True
        labels = [f"partition {', '.join(map(str, chosen))}" for chosen in table.replicas]
        layer = Layer("replicated prefixes", shapes, labels, heavy, "subscription")
        draw_map(path, [layer], title=f"{len(shapes)} prefixes in {table.outside} partitions")


def explain(events: "DataFrame", subscriptions: "DataFrame", **options: Any) -> PlanExplanation:
    """Explain how `match` would run with the same arguments: its plan, and what it rests on.

    It differs from `contrada.explain`, which is about one predicate. Subscriptions are staged and,
    for the plan "partitioned", put into partitions; of the events only a sample is read, or nothing
    if you pass one.

    Raises `InvalidInput` and `Unavailable` as `match` does, and `InvalidInput` for an
    option that `match` does not have.

    >>> events = spark.createDataFrame([(1, 12), (2, 20)], "id long, wind int")
    >>> winds = spark.createDataFrame([("gale", "wind > 17")], "id string, filter string")
    >>> plan = contrada.spark.explain(events, winds)
    >>> plan.plan, plan.subscriptions, plan.columns
    ('broadcast', 1, ('id', 'wind'))
    """
    chosen = read_options(options, "explain")
    with raising_noted_errors():
        return explain_job(plan_match(events, subscriptions, chosen), events)


def explain_job(job: Job, events: "DataFrame") -> PlanExplanation:
    """Explain how a job over events would run; columns of our own are not named."""
    own = {FILE, NULL_LISTS, job.columns.row}
    staged = job.subscribed.staged
    return PlanExplanation(
        job.plan.name,
        job.plan.reason,
        staged.count,
        staged.size_bytes,
        job.subscribed.broad,
        tuple(name for name in job.columns.names if name not in own),
        job.partition() if job.plan.name == "partitioned" else None,
        stated_row_groups(events),
    )


def _describe(partitions: Partitions) -> list[str]:
    table, weights = partitions.table, partitions.loads[: partitions.table.outside]
    mean = max(float(weights.mean()), 1e-300)
    hot = sum(len(chosen) > 1 for chosen in table.replicas)
    lines = [
        f"universe: {table.universe}",
        f"prefixes: {len(table.starts):,} to level {int(table.levels.max())}; {hot} replicated",
        f"replication: a subscription lives in {partitions.replication:.2f} partitions on average",
        f"load: the heaviest partition has {weights.max() / mean:.2f} times the mean",
        f"{'partition':>12}{'load':>8}{'subscriptions':>15}{'bytes':>14}",
    ]
    for number, staged in enumerate(partitions.segments[:_SHOWN_MAX]):
        count, size = (staged.count, staged.size_bytes) if staged else (0, 0)
        name = "outside" if number == table.outside else str(number)
        lines.append(f"{name:>12}{partitions.loads[number] / mean:>8.2f}{count:>15,}{size:>14,}")
    if len(partitions.segments) > _SHOWN_MAX:
        lines.append(f"{'and':>12} {len(partitions.segments) - _SHOWN_MAX} more")
    residual = partitions.residual
    lines.append(f"{'residual':>12}{'':>8}{residual.count if residual else 0:>15,}")
    return lines


def prefix_boxes(table: LookupTable) -> list[tuple[float, float, float, float]]:
    """The box of each prefix, in coordinates of the universe."""
    west, south, east, north = table.universe
    width, height = (east - west) / 2**table.level, (north - south) / 2**table.level
    boxes = []
    for start, level in zip(table.starts.tolist(), table.levels.tolist(), strict=True):
        x, y = _compact(start), _compact(start >> 1)
        side = 2 ** (table.level - level)
        boxes.append(
            (
                west + x * width,
                south + y * height,
                west + (x + side) * width,
                south + (y + side) * height,
            )
        )
    return boxes


def _compact(code: int) -> int:
    """Take every other bit of a place on the Morton curve."""
    return sum(((code >> 2 * bit) & 1) << bit for bit in range(32))
