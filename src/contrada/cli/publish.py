"""`contrada publish`: the events of a file, or of stdin, to a broker.

Only its options are here, so that its help loads no client; what it does is in `publish_file.py`.
"""

import argparse
from typing import Any

from contrada.cli.terminal import STDOUT
from contrada.client.defaults import BATCH_EVENTS_MAX, DEFAULT_URL, KEY_VARIABLE, URL_VARIABLE

_EPILOG = f"""\
Events are rows of GeoParquet, GeoJSON, CSV or any other file that contrada
match takes, or lines, each a GeoJSON Feature, a CloudEvent or another JSON
object. They are stored in their order. Bad ones are listed, and the others
published all the same; the exit code is then 2.

Repeating a command is safe: within an hour, a batch of the same events is not
stored again, unless --anew says so. Events that were bad and are mended go
into a file of their own. A key is read from {KEY_VARIABLE}.

examples:
  contrada publish positions.geoparquet --to http://127.0.0.1:8080
  contrada publish storms.gpkg --layer today --json
  tail -f positions.ndjson | contrada publish - --batch 1
"""


def add_parser(commands: Any, summary: str) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "publish",
        help=summary,
        description="Send events to a broker, which has them on disk when this ends.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="a file of events, or - for lines on stdin")
    parser.add_argument(
        "--to",
        metavar="URL",
        help=f"the address of the broker (default: {URL_VARIABLE}, else {DEFAULT_URL})",
    )
    parser.add_argument(
        "--cacert",
        metavar="FILE",
        help="certificates to trust, as PEM (default: SSL_CERT_FILE, else those known to all)",
    )
    parser.add_argument(
        "--layer", metavar="NAME", help="a layer of the file (default: the only one)"
    )
    parser.add_argument(
        "--batch",
        metavar="N",
        type=int,
        default=BATCH_EVENTS_MAX,
        help=f"events of one request (default: {BATCH_EVENTS_MAX}); 1 sends a line as it comes",
    )
    parser.add_argument(
        "--anew",
        action="store_true",
        help="store events again that were published before (default: do not)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="end stdout with one JSON object (default: show a table)",
    )
    parser.set_defaults(run=run, output=STDOUT)


def run(options: argparse.Namespace) -> None:
    """Publish, and report."""
    from contrada.cli.publish_file import publish_file

    publish_file(options)
