"""The command line: `contrada match`, `explain`, `demo`, `simulate` and `reproduce`.

An error of the user's is one line on stderr and exit code 2; an interrupt leaves nothing
half-written.
"""

import argparse
import sys
from collections.abc import Sequence
from errno import ENOSPC

from contrada import __version__
from contrada.cli import demo, explain, match, reproduce, simulate
from contrada.cli.outputs import STDOUT
from contrada.errors import ContradaError

EXIT_INVALID, EXIT_INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; give its exit code."""
    options = make_parser().parse_args(arguments)
    try:
        code = options.run(options)
    except ContradaError as error:
        line = " ".join(str(error).splitlines())
        print(f"contrada: {line}", file=sys.stderr)
        return EXIT_INVALID
    except KeyboardInterrupt:
        print(f"contrada: {_describe_interrupt(options)}", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return 0
    except OSError as error:
        if error.errno != ENOSPC:
            raise
        place = error.filename or "the output"
        print(f"contrada: {place} cannot be written: {error.strerror}", file=sys.stderr)
        return EXIT_INVALID
    return code or 0


def _describe_interrupt(options: argparse.Namespace) -> str:
    """Promise that nothing was written only where rows do not leave before the end."""
    is_whole = getattr(options, "output", STDOUT) != STDOUT
    return "interrupted; nothing was written" if is_whole else "interrupted"


def make_parser() -> argparse.ArgumentParser:
    """Describe all commands."""
    parser = argparse.ArgumentParser(
        prog="contrada", description="Spatial publish/subscribe: who receives this event?"
    )
    parser.add_argument("--version", action="version", version=f"contrada {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (match, explain, demo, simulate, reproduce):
        command.add_parser(commands)
    return parser
