"""What numbers in deliveries stand for: the id of a subscription, its relation, and perhaps a row.

Names are those of the version that matched, whatever has become of the subscription since.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contrada.broker.log_reading import LogReader
from contrada.broker.restoring import ROWS_FOLDER
from contrada.broker.subscription_bodies import relation_of
from contrada.matcher.packed_rows import RowIds

_NAMES_MAX = 65_536
_FILES_MAX = 64


class NumberNames:
    """Names by number, the last ones kept; from any thread."""

    def __init__(self, reader: LogReader, folder: Path) -> None:
        """Take where versions are looked up, and where the rows of collections lie."""
        self._reader, self._folder = reader, folder
        self._known: OrderedDict[int, Mapping[str, Any]] = OrderedDict()
        self._row_ids: OrderedDict[str, RowIds] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, number: int) -> Mapping[str, Any]:
        """Return the members of a match that name what a number stands for."""
        with self._lock:
            known = self._known.get(number)
        if known is not None:
            return known
        found = self._look_up(number)
        with self._lock:
            self._known[number] = found
            while len(self._known) > _NAMES_MAX:
                self._known.popitem(last=False)
        return found

    def _look_up(self, number: int) -> Mapping[str, Any]:
        range_ = self._reader.find_range(number)
        version = number if range_ is None else range_[2]
        named = self._reader.find_names([version]).get(version)
        if named is None:  # of a version that is no longer kept
            return {"subscription": None}
        id_, body = named
        found: dict[str, Any] = {"subscription": id_}
        if range_ is not None:
            found["row"] = self._read_row(range_[3], number - range_[0])
        relation = relation_of(json.loads(body))
        return found if relation is None else found | {"relation": relation}

    def _read_row(self, file: str, row: int) -> Any:
        """Return the id of a row of a collection."""
        with self._lock:
            ids = self._row_ids.get(file)
        if ids is None:
            ids = RowIds.open(self._folder / ROWS_FOLDER / file)
            with self._lock:
                self._row_ids[file] = ids
                while len(self._row_ids) > _FILES_MAX:
                    self._row_ids.popitem(last=False)
        return ids[row]
