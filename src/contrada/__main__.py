"""The command `contrada`, and `python -m contrada`: loaded first, so that Ctrl-C is heard early."""

import sys

EXIT_INTERRUPTED = 130


def main() -> int:
    """Load and run the command line; an interrupt that comes before it listens is one line, too."""
    try:
        from contrada.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("contrada: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
