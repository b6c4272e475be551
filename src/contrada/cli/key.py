"""`contrada key`: who may talk to a broker; its server notices within a second."""

import argparse
import json
from datetime import UTC, datetime
from typing import Any

from contrada.cli.terminal import require_stdout, say, show

_EPILOG = """\
scopes:
  publish    send events
  subscribe  change subscriptions and subscribers, read deliveries
  admin      everything, settings and /metrics too

A key is shown once, when it is added. Send it with each request, in the header
"Authorization: Bearer KEY". While the data folder has a keys.json, a key is needed.

examples:
  contrada key add harbour --scope publish
  contrada key add dashboard --scope subscribe --tenant north --data /var/lib/contrada
  contrada key list
  contrada key revoke harbour
"""


def add_parser(commands: Any, summary: str) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "key",
        help=summary,
        description="Add, list and revoke the keys of a broker, also while it runs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    adding = actions.add_parser("add", help="make a key and print it")
    adding.add_argument("name", metavar="NAME", help="whose key it is; logs show this name")
    adding.add_argument(
        "--scope",
        action="append",
        required=True,
        metavar="SCOPES",
        help="publish, subscribe, admin, or several of them with commas in between",
    )
    adding.add_argument("--tenant", metavar="NAME", help="whose data it opens (default: default)")
    adding.set_defaults(run=_add)
    listing = actions.add_parser("list", help="list the keys, without their secrets")
    listing.set_defaults(run=_list)
    revoking = actions.add_parser("revoke", help="end a key, and the streams that are open with it")
    revoking.add_argument("name", metavar="NAME", help="the name under which it was added")
    revoking.set_defaults(run=_revoke)
    for action in (adding, listing, revoking):
        _add_places(action)


def _add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        metavar="FOLDER",
        help="the broker's folder (default: CONTRADA_DATA, else ./contrada-data)",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="the broker's settings, for the folder (default: none)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object (default: print a text)"
    )


def _add(options: argparse.Namespace) -> None:
    from contrada.broker.keys import DEFAULT_TENANT

    require_stdout()  # else nobody would ever see the key
    scopes = [word.strip() for text in options.scope for word in text.split(",")]
    tenant = DEFAULT_TENANT if options.tenant is None else options.tenant
    token = _open(options).add(options.name, scopes, tenant, datetime.now(UTC))
    if options.json:
        show(json.dumps({"name": options.name, "key": token}))
        return
    show(token)
    say("keep it: it cannot be shown again")


def _list(options: argparse.Namespace) -> None:
    file = _open(options)
    file.require_folder()
    keys = list(file.read())
    if options.json:
        names = ("name", "id", "scopes", "tenant", "created")
        show(json.dumps({"keys": [{name: getattr(key, name) for name in names} for key in keys]}))
        return
    rows = [("NAME", "SCOPES", "TENANT", "CREATED")]
    rows += [(key.name, ",".join(key.scopes), key.tenant, key.created) for key in keys]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        show("  ".join(map(str.ljust, row, widths)).rstrip())


def _revoke(options: argparse.Namespace) -> None:
    _open(options).revoke(options.name)
    if options.json:
        show(json.dumps({"revoked": options.name}))


def _open(options: argparse.Namespace) -> Any:
    from contrada.broker.keys import KeyFile
    from contrada.server.settings import read_settings

    return KeyFile(read_settings({"data": options.data}, options.config).data)
