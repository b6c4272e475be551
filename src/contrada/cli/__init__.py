"""The command line: `contrada match`, `stream`, `serve`, `explain` and others, a module each.

Where the input, or the machine, must change, that is one line on stderr, or where rows are bad one
for each, and exit code 2; an interrupt, SIGTERM or SIGHUP leaves nothing half-written.
"""

import argparse
import signal
import sys
from collections.abc import Container, Sequence
from contextlib import suppress
from errno import EDQUOT, EFBIG, ENOSPC
from importlib import import_module
from typing import Any

from contrada import __version__
from contrada.cli.interrupting import listening
from contrada.cli.remedies import describe
from contrada.cli.terminal import (
    STDOUT,
    NobodyReads,
    complain,
    plain_warnings,
    replace_closed_streams,
    require_stdout,
    unbroken_stderr,
    visible,
    writing_stdout,
)
from contrada.errors import ContradaError, InvalidInput

COMMANDS = {
    "match": "match events against subscriptions",
    "stream": "match events as they come, on Spark",
    "serve": "run a broker: HTTP, streams and webhooks",
    "key": "add, list and revoke the keys of a broker",
    "publish": "send the events of a file to a broker",
    "explain": "show how a predicate is understood",
    "demo": "the main job on generated data",
    "simulate": "build, harm and heal a peer-to-peer overlay",
    "reproduce": "repeat a paper's experiments",
    "backup": "copy the data of a broker, also while it runs",
    "check": "find out whether the data of a broker is sound",
}  # a module each, and what it does
EXIT_INVALID, EXIT_SIGNALLED = 2, 128


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    replace_closed_streams()
    words = sys.argv[1:] if arguments is None else arguments
    options = argparse.Namespace()
    with listening() as interrupts, plain_warnings(), unbroken_stderr():
        try:
            make_parser(words).parse_args(words, options)  # which loads the command
            if getattr(options, "json", False):
                require_stdout()
            code = options.run(options)
            with suppress(NobodyReads), writing_stdout() as stdout:
                stdout.flush()
        except NobodyReads:  # of the rows that went to stdout
            return 0
        except (KeyboardInterrupt, Exception) as fault:
            number = interrupts.first(fault)
            if number is not None:
                complain(_describe_interrupt(number, options))
                return EXIT_SIGNALLED + number
            if not _is_for_user(fault):
                raise
            complain(*_describe(fault))
            return EXIT_INVALID
    return code or 0


def _is_for_user(fault: BaseException) -> bool:
    is_full = isinstance(fault, OSError) and fault.errno in {ENOSPC, EDQUOT, EFBIG}
    return is_full or isinstance(fault, ContradaError | MemoryError)


def _describe(fault: BaseException) -> list[str]:
    if isinstance(fault, OSError) and not isinstance(fault, ContradaError):
        return [f"{fault.filename or 'a file'}: cannot be written: {fault.strerror}"]
    if isinstance(fault, MemoryError):
        return [f"there is not enough memory: {fault}".rstrip(": ")]
    return describe(fault) if isinstance(fault, InvalidInput) else [str(fault)]


def _describe_interrupt(number: int, options: argparse.Namespace) -> str:
    """Promise that nothing was written only where rows do not leave before the end."""
    is_whole = getattr(options, "output", STDOUT) != STDOUT
    what = "interrupted" if number == signal.SIGINT else "terminated"
    return f"{what}; nothing was written" if is_whole else what


class _Parser(argparse.ArgumentParser):
    """A parser that shows what it was given without control characters."""

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(visible(message), file)


def make_parser(words: Container[str] = COMMANDS) -> argparse.ArgumentParser:
    """Describe the commands among some words, by default all of them.

    Of the others only the names and what they do are known, so that they need not be loaded.
    """
    parser = _Parser(
        prog="contrada",
        description="Spatial publish/subscribe: who receives this event?",
        epilog="Run `contrada COMMAND --help` for a command's options and examples.",
    )
    parser.add_argument("--version", action="version", version=f"contrada {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command, summary in COMMANDS.items():
        if command in words:
            import_module(f"contrada.cli.{command}").add_parser(commands, summary)
        else:
            commands.add_parser(command, help=summary)
    return parser
