"""The command `contrada`, and `python -m contrada`: loaded first, so that Ctrl-C is heard early."""

import sys

EXIT_INTERRUPTED = 130


def main() -> int:
    """Load and run the command line; an interrupt that comes before it listens is one line, too."""
    try:
        from contrada.cli import main as run

        code = run()
    except KeyboardInterrupt:
        print("contrada: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    if code:
        _leave(code)
    return code


def _leave(code: int) -> None:
    """End the process of a command that a signal or a fault has ended.

    Threads of native libraries may still be at work on what was not finished, for which C++ would
    abort the process at its end.
    """
    import atexit
    import contextlib
    import os

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            if stream is not None:
                stream.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
