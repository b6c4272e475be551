"""The options of transitions on the command line, and which others they go together with."""

import argparse
from pathlib import Path
from typing import Any

from contrada.errors import InvalidInput
from contrada.transitions.durations import read_duration
from contrada.transitions.followed import KINDS, read_kinds

NEED_TRANSITIONS = "need_transitions"  # the names of the options that need --transitions
_DURATIONS = ("silence", "dwell", "cooldown")
_STREAM_DURATIONS = ("lateness", "ahead")


def add_track_options(parser: argparse.ArgumentParser) -> Any:
    """Let the user ask for transitions; return the group of these options."""
    group = parser.add_argument_group("transitions (docs/transitions.md)")
    group.add_argument(
        "--transitions",
        action="store_true",
        help="events are positions of objects: write when an object enters, leaves, crosses or "
        "stays in what matches (default: write pairs)",
    )
    actions = [
        group.add_argument(
            "--object", metavar="COLUMN", help="column of objects (default: object_id)"
        ),
        group.add_argument("--time", metavar="COLUMN", help="column of times (default: time)"),
        group.add_argument(
            "--silence",
            metavar="TIME",
            help="an object that is silent so long leaves what it was in, e.g. '10 min' "
            "(default: never)",
        ),
        group.add_argument(
            "--dwell",
            metavar="TIME",
            help="report a visit that has lasted so long, e.g. '30 min' (default: none)",
        ),
        group.add_argument(
            "--hysteresis",
            metavar="METRES",
            type=float,
            help="an object leaves a fence only when it is so far away from it (default: 0)",
        ),
        group.add_argument(
            "--cooldown",
            metavar="TIME",
            help="what an object has just entered or left does not change, and what it has crossed "
            "is not crossed, again so soon (default: 0 s)",
        ),
        group.add_argument(
            "--kinds",
            metavar="LIST",
            help=f"which to write, with commas between: {', '.join(KINDS)} (default: all)",
        ),
    ]
    parser.set_defaults(**{NEED_TRANSITIONS: tuple(action.dest for action in actions)})
    return group


def add_stream_track_options(parser: argparse.ArgumentParser) -> None:
    """Let the user of a stream ask for transitions, and say what holds for streams alone."""
    group = add_track_options(parser)
    actions = [
        group.add_argument(
            "--lateness",
            metavar="TIME",
            help="how long positions are held, since others may come late (default: 0 s)",
        ),
        group.add_argument(
            "--ahead",
            metavar="TIME",
            help="how far the time of a position may be ahead of the clock (default: 10 min)",
        ),
        group.add_argument(
            "--shards",
            metavar="N",
            type=int,
            help="in how many parts objects are remembered; stays as it is with --state "
            "(default: 64)",
        ),
    ]
    before = parser.get_default(NEED_TRANSITIONS)
    parser.set_defaults(**{NEED_TRANSITIONS: (*before, *(action.dest for action in actions))})


def check_stream_track_options(options: argparse.Namespace) -> None:
    """Refuse what cannot be, or does not go together with transitions of a stream."""
    if not options.transitions:
        _refuse_without(options)
        return
    for name in ("keep", "repair", "strict"):
        if getattr(options, name):
            raise InvalidInput(f"--{name} cannot be combined with --transitions")
    if options.plan == "partitioned":
        raise InvalidInput("--plan partitioned cannot be combined with --transitions")
    _check_values(options, (*_DURATIONS, *_STREAM_DURATIONS))


def transition_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return what was asked for, as `contrada.spark.transitions` takes it."""
    names = (*_STREAM_DURATIONS, "shards")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    beside = tracker_options(options)
    beside.pop("event_id", None)  # which the columns of a stream say
    return beside | given


def _refuse_without(options: argparse.Namespace) -> None:
    for name in getattr(options, NEED_TRANSITIONS):
        if getattr(options, name) is not None:
            raise InvalidInput(f"--{name} needs --transitions")


def check_track_options(options: argparse.Namespace) -> None:
    """Refuse what cannot be, or does not go together with transitions, before anything runs."""
    if not options.transitions:
        _refuse_without(options)
        return
    if options.spark is not None:
        raise InvalidInput("--transitions cannot be combined with --spark yet; leave --spark out")
    if options.keep:
        raise InvalidInput(
            f"--keep {options.keep[0]} cannot be combined with --transitions, "
            "whose rows have no columns of the events"
        )
    if options.output is not None and Path(options.output).suffix.lower() == ".geoparquet":
        raise InvalidInput(
            f"--output {options.output} cannot be combined with --transitions, "
            "whose rows have no geometry; write .parquet instead"
        )
    _check_values(options, _DURATIONS)


def _check_values(options: argparse.Namespace, durations: tuple[str, ...]) -> None:
    for name in durations:
        value = getattr(options, name)
        if value is not None:
            read_duration(value, f"--{name}", may_be_zero=name not in ("silence", "dwell"))
    if options.hysteresis is not None and not 0 <= options.hysteresis < float("inf"):
        raise InvalidInput(f"--hysteresis {options.hysteresis}: must be a number of metres >= 0")
    if options.kinds is not None:
        _read_kinds(options.kinds)


def tracker_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return what was asked for, as `Tracker` takes it; what was not is left to its defaults."""
    names = ("object", "time", "hysteresis", *_DURATIONS)
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.kinds is not None:
        given["kinds"] = _read_kinds(options.kinds)
    if options.event_id is not None:
        given["event_id"] = options.event_id
    return given


def _read_kinds(text: str) -> list[str]:
    kinds = [name.strip() for name in text.split(",") if name.strip()]
    try:
        read_kinds(kinds)
    except InvalidInput as error:
        raise InvalidInput(f"--kinds {text}: {error.message}") from None
    if not kinds:
        raise InvalidInput(f"--kinds {text!r}: name some of {', '.join(KINDS)}")
    return kinds
