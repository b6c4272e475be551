"""`contrada match --transitions`: objects of a file of positions, through subscriptions."""

import argparse
from contextlib import ExitStack
from functools import partial

import pyarrow as pa

from contrada.cli.apart import box_of_subscriptions
from contrada.cli.notes import note_outcome
from contrada.cli.outputs import (
    BadRow,
    hear_bad,
    open_answer,
    open_bad_rows,
    primary_geometry,
)
from contrada.cli.progress import bar, saying
from contrada.cli.report import TrackReport
from contrada.cli.terminal import STDOUT
from contrada.cli.track_drawing import draw_tracks
from contrada.cli.track_options import tracker_options
from contrada.files import Rows
from contrada.matcher import Matcher
from contrada.matcher.inside import follow_rows, freeze
from contrada.matcher.tracker import Tracker

_WRITTEN_ROWS = 65_536


def match_transitions(
    options: argparse.Namespace, matcher: Matcher, rows: Rows, stack: ExitStack
) -> TrackReport:
    """Follow all objects through a file, write rows, draw and count."""
    tracker = Tracker(matcher, **tracker_options(options))
    bad: list[BadRow] = []
    is_lenient = options.quarantine is not None or options.repair
    write_bad = open_bad_rows(stack, options.quarantine, rows.line_finder())
    with bar("following", rows.count, "events") as progress:
        found, objects = follow_rows(
            tracker,
            rows,
            options.repair,
            is_lenient,
            hear_bad(bad),
            options.threads,
            progress.update,
        )
    write_bad(bad)
    write = open_answer(stack, options.output, found.schema, None)
    for batch in found.to_batches(_WRITTEN_ROWS):
        write(batch)
    report = _count(tracker, matcher, found, objects)
    for name in ("output", "quarantine", "quarantine_subscriptions", "map"):
        path = getattr(options, name)
        if path and path != STDOUT:
            report.files[name] = path
    if options.map is not None:
        with saying(f"drawing {options.map}"):
            draw_tracks(options, matcher, rows, found, report)
    find_box = partial(box_of_subscriptions, freeze(matcher), primary_geometry(rows))
    note_outcome(report, find_box, rows)
    return report


def _count(tracker: Tracker, matcher: Matcher, found: pa.Table, objects: int) -> TrackReport:
    """Take the figures that matcher and tracker kept, and count the rows of each kind."""
    subscribed, followed = matcher.stats(), tracker.stats()
    left_out = subscribed["subscriptions_left_out"]
    kinds = found["transition"].value_counts().to_pylist()
    report = TrackReport(
        subscriptions=subscribed["subscriptions"] + left_out,
        subscriptions_mended=subscribed["subscriptions_mended"],
        subscriptions_left_out=left_out,
        events=followed["positions"],
        events_applied=followed["applied"],
        events_late=followed["late"],
        events_repeated=followed["repeated"],
        events_held=followed["held"],
        events_mended=followed["mended"],
        events_left_out=followed["left_out"],
        events_without_geometry=followed["without_geometry"],
        objects=objects,
        transitions=found.num_rows,
    )
    for kind in kinds:
        setattr(report, f"transitions_{kind['values']}", kind["counts"])
    return report
