"""The rows of a collection on their way into a broker: packed elsewhere, kept, and put.

What takes long happens before the broker hears of the rows, so that it can have them at once.
"""

import threading
from pathlib import Path

from contrada.broker.broker import Broker
from contrada.broker.commit_tasks import Changed
from contrada.broker.packing_process import RowPackers, keep_packed
from contrada.broker.restoring import ROWS_FOLDER
from contrada.broker.row_terms import terms_of
from contrada.errors import ContradaError, InvalidInput, NotFound
from contrada.matcher.packed_rows import SharedTerms


def find_terms(broker: Broker, id_: str) -> SharedTerms:
    """Find what the rows of a collection share; one that is not there yet has the defaults."""
    try:
        body = broker.get_subscription(id_)
    except NotFound:
        body = {}
    return terms_of(id_, body)


def take_rows(
    broker: Broker,
    id_: str,
    source: Path,
    packers: RowPackers,
    gave_up: threading.Event,
    *,
    by: str | None = None,
    may_be_empty: bool = False,
) -> tuple[Changed, int]:
    """Let the rows of a file be those of a collection; return the change and their number.

    The file lies in a draft folder of the broker. This takes a minute for some millions of rows,
    and nobody else waits for it. Raises `InvalidInput` for what is wrong with them, and if there
    are none unless that `may_be_empty`; what `RowPackers.pack` raises; and `Conflict` where the
    subscription has changed meanwhile.
    """
    terms = find_terms(broker, id_)
    drafted = packers.pack(source, terms, gave_up)
    if not drafted.count and not may_be_empty:
        raise InvalidInput(
            "there are no rows in it, and the collection would lose all that it has: "
            "?empty=true empties it",
            place="the body",
        )
    packed = keep_packed(drafted, broker.folder / ROWS_FOLDER)
    try:
        changed = broker.put_rows(id_, packed.path, packed.count, terms, by=by).result()
        return changed, packed.count
    except ContradaError:  # it was refused; after anything else the log may name the file
        packed.path.unlink(missing_ok=True)
        raise
