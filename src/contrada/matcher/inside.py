"""What other rooms see of a matcher and its users do not: its subscriptions, and runs over rows."""

import warnings
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from contrada.errors import Remedy, blaming_memory
from contrada.files import Rows, read_rows
from contrada.files.crs import is_longitude_latitude
from contrada.flags import check_flags
from contrada.language.expecting import ValueKind
from contrada.matcher.adding import IncomingRows, combine_arguments
from contrada.matcher.column_sources import open_column_source
from contrada.matcher.event_lists import EventList
from contrada.matcher.holding import Holding
from contrada.matcher.match_run import (
    MatchRun,
    choose_id_column,
    count_threads,
    list_read,
    narrow_to_read,
)
from contrada.matcher.saving import MatcherSettings, save_subscriptions
from contrada.matcher.sets_elsewhere import OutlinedSubscriptions
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscribing import HearBad, find_miscased
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import GEOMETRY
from contrada.model.relation import Relation
from contrada.model.row_columns import DEFAULT_RELATION
from contrada.model.subscription import Id, Predicate, Subscription

if TYPE_CHECKING:
    from contrada.matcher.facade import Matcher
    from contrada.matcher.tracker import Tracker

_Kind = TypeVar("_Kind", bound="Matcher")


def freeze(matcher: "Matcher") -> SubscriptionSet:
    """Return the subscriptions of a matcher as they are now, untouched by later changes."""
    return matcher._subscriptions


def freeze_for_saving(matcher: "Matcher") -> Callable[[Path], None]:
    """Return what writes the subscriptions as they are now, whenever it is called."""
    held = matcher._held.now()
    settings = matcher._settings(held.crs)
    return lambda path: save_subscriptions(path, held.subscriptions.living(), settings)


def add_rows(
    matcher: "Matcher",
    source: Any,
    id: str | None,
    *,
    replace: bool = False,
    repair: bool = False,
    quarantine: bool = False,
    on_bad: HearBad | None = None,
    discarded: pa.Array | None = None,
    is_lazy: bool = False,
) -> int:
    """Add the rows of a table, as `add_many` does; `on_bad` also hears whether one was mended.

    With `is_lazy` an index is left to the first who asks it.
    """
    check_flags(replace=replace, repair=repair, quarantine=quarantine)
    file = open_column_source(source)
    rows = read_rows(source, is_decoded=False) if file is None else file.rows()
    matcher._held.check_crs(rows.crs, rows.name)
    id_column = choose_id_column(rows, id, Remedy.SUBSCRIPTION_ID)
    rows = rows.identified(id_column)
    miscased = find_miscased(rows.schema.names)
    if miscased is not None:
        warnings.warn(f"{rows.name}: {miscased}", stacklevel=3)
    incoming = IncomingRows(rows, id_column, id, quarantine, on_bad)
    columns = None if file is None else file.identified_by(id_column)
    with blaming_memory():
        if file is None or columns is None:
            incoming.read(matcher._reader, repair)
        elif file.settings.makes_filters_for(matcher._settings(matcher.crs)):
            incoming.take(columns)
        else:
            incoming.remake(file, columns, matcher._reader)
        matcher._held.change(
            incoming.columns, replace, rows.crs, rows.name, incoming.settle, is_lazy, discarded
        )
    matcher._counts.add(
        subscriptions_mended=incoming.mended, subscriptions_left_out=incoming.tell_left_out()
    )
    return incoming.added


def read_predicate(
    matcher: "Matcher",
    filter: Any,
    geometry: Any,
    *,
    relation: str | Relation = DEFAULT_RELATION,
    where: Any = None,
    attribute: str = GEOMETRY,
) -> Predicate:
    """Make the predicate of a subscription that is not added yet, as `add` does."""
    return combine_arguments(
        matcher._reader, filter, geometry, relation, where, attribute, repair=False
    )


def exchange(
    matcher: "Matcher", removed: Sequence[Id], added: Sequence[Subscription], name: str
) -> None:
    """Remove subscriptions, then add others; ids that are not there are passed over."""
    for id_ in removed:
        matcher._held.remove(id_)
    for subscription in added:
        matcher._held.add(subscription, replace=False, name=name)


@blaming_memory()
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
    check_flags(repair=repair, quarantine=quarantine)
    run = EventList(
        freeze(matcher),
        id_attribute=id,
        repair=repair,
        quarantine=quarantine,
        on_bad=on_bad,
        kept=kept,
    )
    return run.match(events, matcher._counts), run.rows


def follow_rows(
    tracker: "Tracker",
    rows: Rows,
    repair: bool,
    is_lenient: bool,
    hear: HearBad,
    threads: int | None,
    on_read: Callable[[int], object],
) -> tuple[pa.Table, int]:
    """Follow objects through the rows of a file, as `Tracker.follow` does, with all that is heard.

    `on_read` hears how many rows have been read, a batch at a time. Returns the rows, and of how
    many objects there were positions.
    """
    found, intake = tracker._follow(rows, repair, is_lenient, hear, count_threads(threads), on_read)
    return found, intake.count_objects()


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


def list_totals(matcher: "Matcher") -> dict[str, int]:
    """List the totals of `stats` that are counted row by row, without asking an index."""
    return matcher._counts.as_dict()


def find_stating(matcher: "Matcher") -> str:
    """Name who stated the coordinate system of a matcher."""
    return matcher._held.stated_by


def show_elsewhere(
    outlined: OutlinedSubscriptions, crs: str | None, stated_by: str, mended: int, left_out: int
) -> "Matcher":
    """Make a matcher that shows what one elsewhere holds, for whoever plans a run over events."""
    from contrada.matcher.facade import Matcher

    matcher = Matcher()
    matcher._held = Holding(matcher._engine, crs, stated_by, outlined)
    matcher._counts.add(subscriptions_mended=mended, subscriptions_left_out=left_out)
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


def describe_projected(name: str, system: str | None, asking: str = "dwithin") -> list[str]:
    """Describe events for which distances are asked in a system of lengths; not in any other."""
    if system is None or is_longitude_latitude(system):
        return []
    what = f"{name}: {asking} reads coordinates as longitude and latitude, but they are in"
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
    check_flags(repair=repair, quarantine=quarantine)
    id_column = choose_id_column(rows, id, Remedy.EVENT_ID)
    rows = rows.identified(id_column)
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
