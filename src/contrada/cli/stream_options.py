"""The options of `contrada stream`."""

import argparse
from typing import Any

from contrada.cli.match_options import add_conf
from contrada.cli.track_options import add_stream_track_options
from contrada.spark_options import CHOICES

_EPILOG = """\
Files are GeoParquet, newline-delimited GeoJSON or CSV. A file must appear whole, by a rename; once
it has been read, changes to it are not seen. The columns are those of the first one.

Bad events go to the quarantine: the folder of that name in --state, or if --to is a topic, the one
with "-quarantine" after its name. Ctrl-C or SIGTERM stops the stream after the batch
under way, with exit code 0, and the same --state goes on from there.

examples:
  contrada stream --subscriptions fences.geojson --events incoming/ --to matches/ --state state/
  contrada stream --subscriptions fences.csv --events 'in/*.csv' --to matches/ --state s/ --once
  contrada stream --subscriptions fences.parquet --events kafka://localhost:9092/positions \\
      --schema 'speed double, kind string' --to kafka://localhost:9092/matches --state state/
  contrada stream --subscriptions fences.csv --events incoming/ --to moves/ --state state/ \\
      --transitions --object ship --lateness '30 s' --silence '1 h'
"""


def add_stream_options(commands: Any, summary: str) -> argparse.ArgumentParser:
    """Describe the command and its options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "stream",
        help=summary,
        description="Match files or messages as they come against subscriptions that may change.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_places(parser)
    _add_reading(parser)
    _add_running(parser)
    add_stream_track_options(parser)
    return parser


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--subscriptions",
        required=True,
        metavar="FILE",
        help="the subscriptions, published anew whenever the file changes; or a set that "
        "contrada.spark.publish has published",
    )
    parser.add_argument(
        "--events",
        required=True,
        metavar="WHERE",
        help="a folder, a file, a pattern such as 'incoming/*.csv', or kafka://host:port/topic",
    )
    parser.add_argument(
        "--to", required=True, metavar="WHERE", help="a folder, or kafka://host:port/topic"
    )
    parser.add_argument(
        "--state",
        required=True,
        metavar="FOLDER",
        help="where the stream keeps how far it is, and bad events",
    )
    parser.add_argument(
        "--metrics",
        metavar="FILE",
        help="write counts there at the start and after each batch, as Prometheus text "
        "(default: nowhere)",
    )


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--id", metavar="COLUMN", help="column of subscription ids (default: id, else row numbers)"
    )
    parser.add_argument(
        "--event-id",
        metavar="COLUMN",
        help="column of event ids (default: id, else file and row, or topic, partition and offset)",
    )
    parser.add_argument(
        "--keep",
        action="append",
        metavar="COLUMN",
        help="write a column of the events beside the matches; may be given several times "
        "(default: none)",
    )
    parser.add_argument(
        "--where", metavar="CONDITION", help="as for contrada match (default: none)"
    )
    parser.add_argument(
        "--relation", metavar="NAME", help="as for contrada match (default: intersects)"
    )
    parser.add_argument(
        "--repair", action="store_true", help="mend invalid geometries (default: off)"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="pass over versions that read a column which the events lack (default: warn)",
    )
    parser.add_argument(
        "--schema",
        metavar="DDL",
        help="attributes of messages, e.g. 'speed double, kind string' (default: none)",
    )
    parser.add_argument(
        "--kafka",
        action="append",
        metavar="KEY=VALUE",
        help="an option of Kafka's clients, e.g. security.protocol=SASL_SSL; may be given several "
        "times; values are never shown (default: none)",
    )
    parser.add_argument(
        "--kafka-file",
        metavar="FILE",
        help="such options, one KEY=VALUE a line; for passwords, which others see in the words of "
        "a command (default: none)",
    )


def _add_running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--once",
        action="store_true",
        help="end when what is there now has been matched (default: go on for ever)",
    )
    parser.add_argument("--every", metavar="TIME", help="how often a batch begins (default: 1 s)")
    parser.add_argument(
        "--files", type=int, metavar="N", help="files in a batch at most (default: all there are)"
    )
    parser.add_argument(
        "--plan",
        choices=CHOICES["plan"],
        help="subscriptions to every worker (broadcast), or to their part of the map "
        "(partitioned); auto decides by their size (default: auto)",
    )
    parser.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help="publish the subscriptions for the plan partitioned (default: if they are large)",
    )
    parser.add_argument(
        "--spark", default="local[*]", metavar="MASTER", help="where to run (default: local[*])"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="end stdout with the counts as one JSON object (default: off)",
    )
    add_conf(parser)
