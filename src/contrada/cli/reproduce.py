"""`contrada reproduce`: the papers' experiments."""

import argparse
from pathlib import Path
from typing import Any

from contrada.errors import InvalidInput


def add_parser(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "reproduce",
        help="repeat a paper's experiments",
        description="Repeat a paper's experiments: tables on stdout, figures in a folder.",
    )
    parser.add_argument("paper", choices=["crtree"], help="which paper")
    parser.add_argument("--quick", action="store_true", help="small sizes, within two minutes")
    parser.add_argument("--data", metavar="FOLDER", help="real layers instead of generated ones")
    parser.add_argument("--folder", help="where figures go (default: reproduce-PAPER)")
    parser.add_argument("--seed", type=int, default=1, help="of the workloads (default: 1)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the experiments of one paper."""
    from contrada.reproduce.crtree import FULL, QUICK, reproduce

    if options.seed < 0:
        raise InvalidInput(f"--seed must be a number >= 0, not {options.seed}")
    data = None if options.data is None else Path(options.data)
    if data is not None and not data.is_dir():
        raise InvalidInput(f"--data {options.data}: no such folder")
    folder = Path(options.folder or f"reproduce-{options.paper}")
    plan = QUICK if options.quick else FULL

    def say(line: str) -> None:
        print(line, flush=True)

    reproduce(folder, plan, data, say, options.seed)
    print(f"\nfigures: {folder}")
