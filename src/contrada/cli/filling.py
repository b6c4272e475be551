"""`--where` and `--relation`: what subscriptions with a geometry want unless they say otherwise."""

import argparse
import warnings

from contrada.errors import InvalidInput
from contrada.files import Rows
from contrada.matching.subscribing import PredicateReader, find_miscased
from contrada.model.relation import find_relation
from contrada.model.row_columns import BESIDE_GEOMETRY, Holds


def fill_rows(options: argparse.Namespace, rows: Rows) -> Rows:
    """Return the rows of subscriptions as if their columns said what the options say.

    A column that differs from one that counts only in the case of letters is refused by `--strict`.
    """
    miscased = find_miscased(rows.schema.names)
    if miscased is not None and options.strict:
        raise InvalidInput(f"{rows.name}: {miscased}")
    filled = rows.filled(_read_defaults(options))
    if miscased != find_miscased(filled.schema.names):
        warnings.warn(f"{rows.name}: {miscased}", stacklevel=2)
    return filled


def _read_defaults(options: argparse.Namespace) -> dict[str, str]:
    """Return the options' values by the column that they fill; refuse what cannot be read."""
    defaults: dict[str, str] = {}
    readers = {Holds.PREDICATE: PredicateReader().parse, Holds.RELATION: find_relation}
    for column in BESIDE_GEOMETRY:
        value = getattr(options, column.name) if column.holds in readers else None
        if value is None:
            continue
        try:
            readers[column.holds](value)
        except InvalidInput as error:
            raise error.within(f"--{column.name}") from None
        defaults[column.name] = value
    return defaults
