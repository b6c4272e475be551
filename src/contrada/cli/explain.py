"""`contrada explain`: how a predicate is understood."""

import argparse
import json
from typing import Any

import contrada
from contrada.cli.match_options import add_engine, describe_engines
from contrada.cli.terminal import require_stdout, show

_EPILOG = """\
engines:
{engines}

examples:
  contrada explain "S_WITHIN(geometry, BBOX(5, 45, 7, 47)) AND NOT speed < 10"
  contrada explain "kind = 'tug' OR (wind > 90 AND wind > 80)" --engine crtree
"""


def add_parser(commands: Any, summary: str) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "explain",
        help=summary,
        description="Show a predicate's normal form, and what serves each of its constraints.",
        epilog=_EPILOG.format(engines=describe_engines()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("predicate", metavar="PREDICATE", help="CQL2 text or JSON")
    add_engine(parser)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object (default: print a text)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the explanation."""
    require_stdout()
    explanation = contrada.explain(options.predicate, engine=options.engine)
    show(json.dumps(explanation.as_dict()) if options.json else explanation)
