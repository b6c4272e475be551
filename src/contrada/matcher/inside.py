"""What other rooms see of a matcher and its users do not: its subscriptions, and runs over rows."""

import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.errors import Remedy
from contrada.files import Rows
from contrada.files.crs import is_longitude_latitude
from contrada.language.expecting import ValueKind
from contrada.matcher.match_run import MatchRun, choose_id_column, list_read, narrow_to_read
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscribing import OnBad

if TYPE_CHECKING:
    from contrada.matcher.facade import Matcher


def freeze(matcher: "Matcher") -> SubscriptionSet:
    """Return the subscriptions of a matcher as they are now, untouched by later changes."""
    return matcher._subscriptions


def describe_mismatches(
    subscriptions: SubscriptionSet, rows: Rows, crs: str | None = None
) -> list[str]:
    """Describe the columns of events that hold other values than they are compared with.

    So do coordinates in a system of lengths, `crs` or the events' own, if distances are asked for.
    """
    known = pa.schema([field for field in rows.schema if field.name not in rows.blank])
    found = []
    for mismatch in subscriptions.find_mismatches(known):
        is_text = mismatch.held is ValueKind.TEXT and ValueKind.NUMBER in mismatch.expected
        why = rows.explain_text(mismatch.column) if is_text else None
        found.append("; ".join([f"{rows.name}: {mismatch}", *([why] if why else [])]))
    system = rows.crs or crs
    if subscriptions.has_distances:
        found += describe_projected(rows.name, system)
    return found


def describe_projected(name: str, system: str | None) -> list[str]:
    """Describe events for which distances are asked in a system of lengths; not in any other."""
    if system is None or is_longitude_latitude(system):
        return []
    what = f"{name}: dwithin reads coordinates as longitude and latitude, and they are in"
    return [f"{what} {system:.60}; reproject them, for instance to EPSG:4326"]


def plan_run(
    matcher: "Matcher",
    rows: Rows,
    id: str | None = None,
    repair: bool = False,
    quarantine: bool = False,
    on_bad: OnBad | None = None,
    kept: Collection[str] = (),
) -> MatchRun:
    """Set out to match rows against the subscriptions of a matcher as they are now.

    `kept` are columns to read besides those that constraints name.
    """
    id_column = choose_id_column(rows, id, Remedy.EVENT_ID)
    matcher._held.check_crs(rows.crs, rows.name)
    subscriptions = freeze(matcher)
    narrow = narrow_to_read(rows, subscriptions, id_column, kept)
    narrow.warn_of_misfits(list_read(subscriptions, id_column))
    for mismatch in describe_mismatches(subscriptions, narrow, matcher.crs):
        warnings.warn(mismatch, stacklevel=3)
    return MatchRun(
        subscriptions,
        narrow,
        id_column=id_column,
        repair=repair,
        quarantine=quarantine or repair,
        on_bad=on_bad,
        counts=matcher._counts,
        on_done=lambda: matcher._held.adopt_crs(rows.crs, rows.name),
    )
