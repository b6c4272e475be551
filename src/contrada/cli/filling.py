"""`--where` and `--relation`: what subscriptions with a geometry want unless they say otherwise."""

import argparse
import warnings

from contrada.errors import InvalidInput
from contrada.files import Rows
from contrada.matching.subscribing import PredicateReader, find_miscased
from contrada.model.relation import find_relation


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
    defaults = {}
    for name, read in (("where", PredicateReader().parse), ("relation", find_relation)):
        value = getattr(options, name)
        if value is None:
            continue
        try:
            read(value)
        except InvalidInput as error:
            raise error.within(f"--{name}") from None
        defaults[name] = value
    return defaults
