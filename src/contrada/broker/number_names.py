"""What numbers in deliveries stand for: the id of a subscription, its relation, and perhaps a row.

Names are those of the version that matched, whatever has become of the subscription since.
"""

import json
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrada.broker.log_reading import LogReader
from contrada.broker.restoring import ROWS_FOLDER
from contrada.broker.subscription_bodies import relation_of
from contrada.matcher.packed_rows import RowIds

_NAMES_MAX = 16_384
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

    def find_all(self, numbers: Sequence[int]) -> list[Mapping[str, Any]]:
        """Return the same of many numbers, sorted; the rows of a collection all at once."""
        found: list[Mapping[str, Any]] = []
        place = 0
        while place < len(numbers):
            number = numbers[place]
            with self._lock:
                known = self._known.get(number)
            range_ = None if known is not None else self._reader.find_range(number)
            if range_ is None:
                found.append(self.find(number))
                place += 1
                continue
            first, count, version, file = range_
            end = bisect_left(numbers, first + count, place)
            named = self._name_version(version)
            own = np.array(numbers[place:end], np.int64) - first
            rows = self._open_rows(file).take(own).to_pylist()
            found += [_with_row(named, row) for row in rows]
            place = end
        return found

    def _look_up(self, number: int) -> Mapping[str, Any]:
        range_ = self._reader.find_range(number)
        if range_ is None:
            return self._name_version(number)
        named = self._name_version(range_[2])
        return _with_row(named, self._open_rows(range_[3])[number - range_[0]])

    def _name_version(self, version: int) -> Mapping[str, Any]:
        named = self._reader.find_names([version]).get(version)
        if named is None:  # of a version that is no longer kept
            return {"subscription": None}
        id_, body = named
        relation = relation_of(json.loads(body))
        found = {"subscription": id_}
        return found if relation is None else found | {"relation": relation}

    def _open_rows(self, file: str) -> RowIds:
        """Return the ids of the rows of a collection."""
        with self._lock:
            ids = self._row_ids.get(file)
        if ids is None:
            ids = RowIds.open(self._folder / ROWS_FOLDER / file)
            with self._lock:
                self._row_ids[file] = ids
                while len(self._row_ids) > _FILES_MAX:
                    self._row_ids.popitem(last=False)
        return ids


def _with_row(named: Mapping[str, Any], row: Any) -> Mapping[str, Any]:
    """Put the id of a row after that of the subscription."""
    members = dict(named)
    relation = members.pop("relation", None)
    members["row"] = row
    return members if relation is None else members | {"relation": relation}
