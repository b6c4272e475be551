"""`contrada explain`: how a predicate is understood."""

import argparse
import json
from typing import Any

import contrada
from contrada.cli.terminal import show
from contrada.matching.engines import DEFAULT_ENGINE, ENGINES


def add_parser(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "explain",
        help="show how a predicate is understood",
        description="Show a predicate's normal form, and what serves each of its constraints.",
    )
    parser.add_argument("predicate", metavar="PREDICATE", help="CQL2 text or JSON")
    parser.add_argument("--engine", default=DEFAULT_ENGINE, help=f"{', '.join(ENGINES)}")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the explanation."""
    explanation = contrada.explain(options.predicate, engine=options.engine)
    show(json.dumps(explanation.as_dict()) if options.json else explanation)
