"""The options of `contrada match`, and what `--help` says."""

import argparse
import textwrap
from collections.abc import Iterator
from typing import Any

from contrada.cli.track_options import add_track_options
from contrada.files.output import WRITTEN_SUFFIXES
from contrada.files.reading import READ_SUFFIXES
from contrada.matching.engines import DEFAULT_ENGINE, ENGINES
from contrada.spark_options import CHOICES

_DESCRIPTION = """\
Match each event of a file against the subscriptions of another. Files are
GeoParquet, GeoJSON, newline-delimited GeoJSON, CSV, or any vector format of
GDAL, such as shapefiles, FlatGeobuf and GeoPackage, known by their suffix:
{suffixes}
A subscription has an id, and a filter (CQL2), or a geometry with a relation
(default: intersects), and perhaps where (a condition in CQL2), attribute and
subscriber: a column each. CSV has WKT in a column geometry, wkt, geom or
the_geom, or points in columns lon (lng, long, longitude) and lat (latitude),
or x and y.
"""
_LISTS = " or ".join(suffix for suffix in WRITTEN_SUFFIXES if suffix != ".geoparquet")
_EPILOG = """\
engines:
{engines}

examples:
  which counties have earthquakes: the summary only
    contrada match counties.parquet quakes.csv
  the pairs, with the magnitude of each quake and the name of its county
    contrada match counties.parquet quakes.csv -o pairs.csv \\
        --keep magnitude --keep subscription.name
  one condition for every county
    contrada match counties.parquet quakes.csv --where 'magnitude > 6'
  dirty data: mend what can be mended, list and leave out the rest, draw
    contrada match zones.geojson storms.gpkg -o pairs.geoparquet \\
        --repair --quarantine bad.csv --map map.html
  when ships enter, leave and pass through zones
    contrada match zones.parquet ships.parquet -o transitions.csv \\
        --transitions --object mmsi --silence '30 min' --map tracks.html
  on Spark, on all cores of this machine
    contrada match zones.parquet storms.parquet -o pairs.parquet \\
        --spark 'local[*]' --explain
"""
SPARK_CHOICES = {  # of CHOICES, those that are options here, and what they mean
    "plan": "subscriptions to every worker (broadcast), or to their part of the map "
    "(partitioned); auto decides by their size",
    "evaluator": "area: the AHS paper's approximate answer",
}
NEED_SPARK = "need_spark"  # the names of the options that need --spark, among those that are parsed


def add_match_parser(commands: Any, summary: str) -> argparse.ArgumentParser:
    """Describe the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "match",
        help=summary,
        description=_DESCRIPTION.format(suffixes=_describe_suffixes()),
        epilog=_EPILOG.format(engines=describe_engines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help="one subscription per row")
    parser.add_argument("events", metavar="EVENTS", help="one event per row")
    _add_answer_options(parser)
    add_engine(parser)
    _add_input_options(parser)
    _add_bad_row_options(parser)
    parser.add_argument(
        "--threads", type=int, metavar="N", help="how many threads (default: one for each core)"
    )
    parser.add_argument(
        "--spark",
        metavar="MASTER",
        help="run on Spark, e.g. 'local[*]' (default: in this process)",
    )
    add_track_options(parser)
    actions = _add_spark_options(parser.add_argument_group("with --spark"))
    parser.set_defaults(**{NEED_SPARK: tuple(action.dest for action in actions)})
    return parser


def _describe_suffixes() -> str:
    words = f"{', '.join(READ_SUFFIXES)}, and any other format that GDAL reads."
    return textwrap.fill(words, 76, break_on_hyphens=False)


def _add_answer_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help=f"where the pairs go: {', '.join(WRITTEN_SUFFIXES)} (.geoparquet has the events' "
        "geometry), or - for CSV on stdout; a file that exists is replaced (default: print "
        "the summary only)",
    )
    parser.add_argument(
        "--keep",
        action="append",
        metavar="COLUMN",
        help="write a column of the events beside the pairs, or as subscription.COLUMN one of the "
        "subscriptions, and show it on the page of --map; may be given several times "
        "(default: none)",
    )
    parser.add_argument(
        "--map", metavar="FILE", help="draw the result: .html (offline) or .png (default: no map)"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="end stdout with the figures as one JSON object (default: show a table)",
    )


def _add_input_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--id", metavar="COLUMN", help="column of subscription ids (default: id, else row numbers)"
    )
    parser.add_argument(
        "--event-id", metavar="COLUMN", help="column of event ids (default: id, else row numbers)"
    )
    parser.add_argument("--layer", metavar="NAME", help="layer of EVENTS (default: the only one)")
    parser.add_argument(
        "--subscriptions-layer",
        metavar="NAME",
        help="layer of SUBSCRIPTIONS (default: the only one)",
    )
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="a condition (CQL2) for each subscription with a geometry and no where of its own, "
        "e.g. 'magnitude > 6' (default: none)",
    )
    parser.add_argument(
        "--relation",
        metavar="NAME",
        help="the relation of each subscription with a geometry and no relation of its own, "
        "e.g. within (default: intersects)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse constraints on columns that no event has, or that hold values of another type "
        "than they are compared with, and columns of SUBSCRIPTIONS whose names match only in lower "
        "case (default: warn and continue)",
    )


def _add_bad_row_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repair",
        action="store_true",
        help="mend invalid geometries, and leave out what cannot be mended (default: refuse them)",
    )
    parser.add_argument(
        "--quarantine",
        metavar="FILE",
        help=f"list bad events (row, line, id, reason) in {_LISTS}, and match the others; those "
        "that --repair mends are not listed (default: refuse all)",
    )
    parser.add_argument(
        "--quarantine-subscriptions",
        metavar="FILE",
        help=f"list bad subscriptions in {_LISTS} in the same way (default: refuse all)",
    )


def add_engine(parser: Any) -> None:
    """Let the user choose an engine."""
    parser.add_argument(
        "--engine",
        default=DEFAULT_ENGINE,
        help=f"{', '.join(ENGINES)} (default: {DEFAULT_ENGINE})",
    )


def describe_engines() -> str:
    """Describe each engine in a line."""
    return "\n".join(f"  {kind.name:<8} {kind.line}" for kind in ENGINES.values())


def _add_spark_options(group: Any) -> Iterator[argparse.Action]:
    for name, words in SPARK_CHOICES.items():
        choices = CHOICES[name]
        yield group.add_argument(
            f"--{name}", choices=choices, help=f"{words} (default: {choices[0]})"
        )
    yield group.add_argument(
        "--counts",
        action="store_true",
        help="write each event with its number of matches, n (default: write pairs)",
    )
    yield group.add_argument(
        "--explain", action="store_true", help="show which plan is taken and why (default: off)"
    )
    yield add_conf(group)


def add_conf(parser: Any) -> argparse.Action:
    """Let the user change settings of Spark."""
    action: argparse.Action = parser.add_argument(
        "--conf",
        action="append",
        metavar="KEY=VALUE",
        help="a Spark setting, e.g. spark.contrada.staging=file:///shared; may be given "
        "several times (default: none)",
    )
    return action
