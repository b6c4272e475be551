"""What a user should know about a match: notes on files that fit badly, and on empty answers."""

from collections.abc import Callable
from typing import Protocol

from contrada.cli.apart import BoxOrNothing, describe_apart
from contrada.cli.outputs import primary_geometry
from contrada.cli.report import MatchReport, TrackReport
from contrada.cli.terminal import one_line, say
from contrada.errors import InvalidInput
from contrada.files import Rows
from contrada.files.crs import is_longitude_latitude
from contrada.files.reading import find_path
from contrada.matcher import Matcher
from contrada.matcher.inside import describe_mismatches, freeze
from contrada.model.event import GEOMETRY, paths_of
from contrada.showing import listed


def note(message: str) -> None:
    """Print a note on stderr, in one line."""
    say(f"note: {one_line(message)}")


class HasSystem(Protocol):
    """A file that may state a coordinate system."""

    @property
    def name(self) -> str:
        """Its name, as the user wrote it."""

    @property
    def crs(self) -> str | None:
        """The system; None where it states none."""


def note_unstated(matcher: Matcher, subscriptions: HasSystem, events: Rows) -> None:
    """Note which file is taken to be in the projected system that the other one states."""
    if not freeze(matcher).geometry_attributes or not events.geometry_columns:
        return  # no coordinates of one meet those of the other
    both: list[tuple[HasSystem, HasSystem]] = [(subscriptions, events), (events, subscriptions)]
    for silent, other in both:
        is_warned_of = find_path(silent.name).suffix.lower() == ".shp"  # by its reader
        is_silent = silent.crs is None and not is_warned_of
        if is_silent and other.crs is not None and not is_longitude_latitude(other.crs):
            note(
                f"{silent.name} states no coordinate system; "
                f"that of {other.name} is assumed: {other.crs:.60}"
            )


def note_unknown(matcher: Matcher, rows: Rows, strict: bool) -> None:
    """Note which attributes no event can have, or refuse them: likely a misspelt name."""
    known = {*rows.schema.names, *([GEOMETRY] if rows.geometry_columns else [])}
    names = sorted(freeze(matcher).attributes)
    unknown = [repr(name) for name in names if known.isdisjoint(paths_of(name))]
    if unknown:
        what = "the column" if len(unknown) == 1 else "the columns"
        message = (
            f"subscriptions refer to {what} {', '.join(unknown)}, which no event has; "
            f"{rows.name} has {listed(rows.schema.names)}"
        )
        if strict:
            raise InvalidInput(message)
        note(message)


def refuse_mismatches(matcher: Matcher, rows: Rows) -> None:
    """Refuse comparisons of columns with values of another type, which a run only warns of."""
    mismatches = describe_mismatches(freeze(matcher), rows, matcher.crs)
    if mismatches:
        raise InvalidInput("; ".join(mismatches))


def note_outcome(
    report: MatchReport | TrackReport, find_box: Callable[[], BoxOrNothing], rows: Rows
) -> None:
    """Note why nothing matched, where figures or places of events and subscriptions show it.

    `find_box` finds the box of the subscriptions.
    """
    for whose in ("subscriptions", "events"):
        count = getattr(report, whose)
        if count and count == getattr(report, f"{whose}_left_out"):
            what = f"all {count:,} {whose} were" if count > 1 else f"the only {whose[:-1]} was"
            path = report.files.get("quarantine" if whose == "events" else f"quarantine_{whose}")
            note(f"{what} left out{'' if path is None else f'; {path} says why'}")
    if not report.matches:
        apart = describe_apart(find_box, rows, primary_geometry(rows))
        if apart is not None:
            note(apart)
