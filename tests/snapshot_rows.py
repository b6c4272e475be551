"""Snapshots of format 1, which hold rows: no matcher saves them any more, but all open them."""

from pathlib import Path

from contrada import Matcher
from contrada.matcher.inside import freeze
from contrada.matcher.saving import save_rows


def save_as_rows(matcher: Matcher, path: Path) -> None:
    """Save a matcher as versions before format 2 did."""
    save_rows(path, freeze(matcher), matcher._settings())
