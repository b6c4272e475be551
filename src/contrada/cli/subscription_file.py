"""The file of subscriptions as the commands read it, in this process or in a task of Spark's."""

import argparse
from contextlib import ExitStack
from dataclasses import dataclass, field

from contrada.cli.filling import fill_rows
from contrada.cli.inputs import open_columns, read_file
from contrada.cli.outputs import BadRow, hear_bad, open_bad_rows
from contrada.files import Rows
from contrada.matcher import Matcher
from contrada.matcher.column_sources import ColumnSource
from contrada.matcher.inside import add_rows


@dataclass(frozen=True, slots=True)
class SubscriptionFile:
    """The rows of the file of subscriptions, and those that were left out when it was read.

    `source` holds the same subscriptions, in the form that a matcher takes with the least effort.
    """

    rows: Rows
    source: Rows | ColumnSource
    bad: list[BadRow] = field(default_factory=list)

    def add_to(
        self, matcher: Matcher, options: argparse.Namespace, *, is_lazy: bool = False
    ) -> None:
        """Add all subscriptions to a matcher, or leave bad ones out where the options say so.

        With `is_lazy` no index is built yet.
        """
        add_rows(
            matcher,
            self.source,
            options.id,
            repair=options.repair,
            quarantine=options.quarantine_subscriptions is not None,
            on_bad=hear_bad(self.bad),
            is_lazy=is_lazy,
        )

    def write_bad(self, stack: ExitStack, path: str | None) -> None:
        """Write the rows that were left out, if a file was asked for."""
        open_bad_rows(stack, path, self.rows.line_finder())(self.bad)


def open_subscriptions(options: argparse.Namespace) -> SubscriptionFile:
    """Open the file of subscriptions."""
    columns = open_columns(options)
    rows = read_file(options, "subscriptions") if columns is None else columns.rows()
    filled = fill_rows(options, rows)
    return SubscriptionFile(filled, columns if columns and filled is rows else filled)
