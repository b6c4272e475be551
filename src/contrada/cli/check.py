"""`contrada check`: whether the data of a broker is sound."""

import argparse
import json
from pathlib import Path
from typing import Any

from contrada.cli.progress import saying
from contrada.cli.terminal import show
from contrada.errors import InvalidInput

_EXIT_FAULTS = 1
_EPILOG = """\
Exits with 1 if something is wrong, and prints a line for each fault. The broker need not be
stopped.

examples:
  contrada check ./contrada-data
  contrada check /backups/monday --json
"""


def add_parser(commands: Any, summary: str) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "check",
        help=summary,
        description="Look for damage in the data folder of a broker or in a backup.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", metavar="DATA", type=Path, help="the folder")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object (default: print a text)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look at each tenant, and print what is wrong."""
    from contrada.broker.tenant_folders import list_tenants, tenant_folder
    from contrada.broker.verifying import find_log_faults

    tenants = list(list_tenants(options.data))
    if not tenants:
        raise InvalidInput(f"{options.data}: is not the data folder of a broker: no tenants")
    faults: dict[str, list[str]] = {}
    for tenant in tenants:
        with saying(f"looking at the log of {tenant}"):
            faults[tenant] = find_log_faults(tenant_folder(options.data, tenant))
    if options.json:
        show(json.dumps({"tenants": faults}))
    else:
        for tenant, found in faults.items():
            for fault in found or ["sound"]:
                show(f"{tenant}: {fault}")
    return _EXIT_FAULTS if any(faults.values()) else 0
