"""What other rooms see of a matcher and its users do not: its subscriptions, and runs over rows."""

import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.errors import Remedy
from contrada.files import Rows
from contrada.language.expecting import ValueKind
from contrada.matcher.match_run import MatchRun, choose_id_column, list_read, narrow_to_read
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscribing import OnBad

if TYPE_CHECKING:
    from contrada.matcher.facade import Matcher


def freeze(matcher: "Matcher") -> SubscriptionSet:
    """Give the subscriptions of a matcher as they are now; later changes do not touch them."""
    return matcher._subscriptions


def describe_mismatches(subscriptions: SubscriptionSet, rows: Rows) -> list[str]:
    """Say which columns of events hold other values than those that they are compared with."""
    known = pa.schema([field for field in rows.schema if field.name not in rows.blank])
    found = []
    for mismatch in subscriptions.find_mismatches(known):
        is_text = mismatch.held is ValueKind.TEXT and ValueKind.NUMBER in mismatch.expected
        why = rows.explain_text(mismatch.column) if is_text else None
        found.append("; ".join([f"{rows.name}: {mismatch}", *([why] if why else [])]))
    return found


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
    matcher._check_crs(rows.crs, rows.name)
    subscriptions = freeze(matcher)
    narrow = narrow_to_read(rows, subscriptions, id_column, kept)
    narrow.warn_of_misfits(list_read(subscriptions, id_column))
    for mismatch in describe_mismatches(subscriptions, narrow):
        warnings.warn(mismatch, stacklevel=3)
    return MatchRun(
        subscriptions,
        narrow,
        id_column=id_column,
        repair=repair,
        quarantine=quarantine or repair,
        on_bad=on_bad,
        counts=matcher._counts,
        on_done=lambda: matcher._adopt_crs(rows.crs, rows.name),
    )
