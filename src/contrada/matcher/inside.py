"""What other rooms see of a matcher and its users do not: its subscriptions, and runs over rows."""

import os
import warnings
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from contrada.errors import InvalidInput, Remedy
from contrada.files import Rows
from contrada.files.crs import is_longitude_latitude, spell_crs
from contrada.language.expecting import ValueKind
from contrada.matcher.adding import IncomingRows
from contrada.matcher.event_lists import EventList
from contrada.matcher.holding import Holding
from contrada.matcher.match_run import MatchRun, choose_id_column, list_read, narrow_to_read
from contrada.matcher.saving import (
    MatcherSettings,
    is_column_file,
    load_any,
    open_any,
    read_subscription_rows,
)
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscribing import HearBad, PredicateReader, find_miscased
from contrada.matching.subscription_columns import SubscriptionColumns, pack_subscriptions
from contrada.model.subscription import Subscription

if TYPE_CHECKING:
    from contrada.matcher.facade import Matcher

_Kind = TypeVar("_Kind", bound="Matcher")


def freeze(matcher: "Matcher") -> SubscriptionSet:
    """Return the subscriptions of a matcher as they are now, untouched by later changes."""
    return matcher._subscriptions


def add_rows(
    matcher: "Matcher",
    source: Any,
    id: str | None,
    *,
    replace: bool = False,
    repair: bool = False,
    quarantine: bool = False,
    on_bad: HearBad | None = None,
) -> int:
    """Add the rows of a table, as `add_many` does; `on_bad` also hears whether one was mended."""
    if is_column_file(source) and id is None and not (quarantine or on_bad):
        added = _add_file(matcher, source, replace)
        if added is not None:
            return added
    rows = read_subscription_rows(source)
    matcher._held.check_crs(rows.crs, rows.name)
    id_column = choose_id_column(rows, id, Remedy.SUBSCRIPTION_ID)
    miscased = find_miscased(rows.schema.names)
    if miscased is not None:
        warnings.warn(f"{rows.name}: {miscased}", stacklevel=3)
    incoming = IncomingRows(rows, id_column, id, quarantine, on_bad)
    found = incoming.read(matcher._reader, repair)
    matcher._held.change(found.columns, replace, rows.crs, rows.name, incoming.settle)
    matcher._counts.add(
        subscriptions_mended=found.mended, subscriptions_left_out=incoming.tell_left_out()
    )
    return incoming.added


def _add_file(matcher: "Matcher", path: str | os.PathLike[str], replace: bool) -> int | None:
    """Add the subscriptions of a snapshot of format 2, as they lie if they were made alike.

    Where one of them cannot be added, none is, and there is no number: whoever reads them as
    rows says which those are.
    """
    file = open_any(path)
    settings = MatcherSettings.of(file)
    crs = spell_crs(settings.crs, file.name)
    matcher._held.check_crs(crs, file.name)
    columns = load_any(file, matcher._reader)
    try:
        if not settings.makes_filters_for(matcher._settings(matcher.crs)):
            columns = pack_subscriptions([_remade(s, matcher._reader) for s in columns])
        matcher._held.change(columns, replace, crs, file.name)
    except InvalidInput:
        return None
    return len(columns)


def _remade(subscription: Subscription, reader: PredicateReader) -> Subscription:
    predicate = reader.remake(subscription.predicate)
    return Subscription(subscription.id, predicate, subscription.subscriber)


def match_list(
    matcher: "Matcher",
    events: Sequence[Any],
    id: str | None,
    repair: bool,
    quarantine: bool,
    on_bad: HearBad | None,
    kept: Sequence[str] = (),
) -> tuple[pa.Table, list[int]]:
    """Match a list of events; return the pairs, and the row of the event of each."""
    run = EventList(
        freeze(matcher),
        id_attribute=id,
        repair=repair,
        quarantine=quarantine,
        on_bad=on_bad,
        kept=kept,
    )
    return run.match(events, matcher._counts), run.rows


def make_matcher(kind: type[_Kind], settings: MatcherSettings) -> _Kind:
    """Make an empty matcher of a kind, as another one was made."""
    return kind(
        settings.engine,
        simplify=settings.simplify,
        crs=settings.crs,
        filters_max=settings.filters_max,
        **settings.options,
    )


def restore(
    kind: type[_Kind], settings: MatcherSettings, columns: SubscriptionColumns, stated_by: str
) -> _Kind:
    """Make a matcher again of what was pickled."""
    matcher = make_matcher(kind, settings)
    matcher._held = Holding(matcher._engine, matcher.crs, stated_by)
    matcher._held.change(columns, replace=False, is_lazy=True)
    return matcher


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
    what = f"{name}: dwithin reads coordinates as longitude and latitude, but they are in"
    return [f"{what} {system:.60}; reproject them, for instance to EPSG:4326"]


def plan_run(
    matcher: "Matcher",
    rows: Rows,
    id: str | None = None,
    repair: bool = False,
    quarantine: bool = False,
    on_bad: HearBad | None = None,
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
