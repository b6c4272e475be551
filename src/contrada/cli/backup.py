"""`contrada backup`: a copy of a broker's data, also while it runs."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contrada.cli.terminal import show

_EPILOG = """\
The broker need not be stopped: the log of each tenant is copied as it is at one moment. Keys are
copied, too. To go on from a backup, start a broker on it: positions that came after the backup was
taken are refused, so that no reader takes one event for another.

examples:
  contrada backup ./contrada-data /backups/monday
  contrada serve --data /backups/monday
"""


def add_parser(commands: Any, summary: str) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "backup",
        help=summary,
        description="Copy the data folder of a broker to a new folder.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", type=Path, help="the broker's folder")
    parser.add_argument("target", metavar="TARGET", type=Path, help="a folder that is not there")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object (default: print a text)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Copy the folder, and print what was copied."""
    from contrada.broker.backing_up import back_up

    copied = back_up(options.data, options.target)
    if options.json:
        show(json.dumps({"tenants": [asdict(tenant) for tenant in copied]}))
        return
    for tenant in copied:
        show(f"{tenant.tenant}: up to {tenant.position}, {tenant.nbytes:,} bytes")
