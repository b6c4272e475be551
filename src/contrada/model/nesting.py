"""Nested values of a stranger: how deep they go, and how many they are once they are written out.

A list or mapping that stands in many places, as an alias of YAML does, or that holds itself, is
small in memory and endless on paper.
"""

from collections import deque
from collections.abc import Iterable, Mapping, ValuesView
from itertools import chain
from typing import Any

import numpy as np

from contrada.limits import SHARED_VALUES_MAX

_CONTAINERS = (Mapping, list, tuple, set, frozenset, deque, ValuesView, np.ndarray)
_LISTS = frozenset({list, tuple})
_PLAIN = frozenset({float, int, str, bool, type(None)})
_SHARED_TIMES = 10


class NestedTooDeep(ValueError):
    """A value has more levels than it may have."""


def check_nesting(value: Any, depth_max: int) -> None:
    """Refuse a value that is nested too deep, or far larger written out than it is in memory.

    Raises `NestedTooDeep` and `ValueError`. The time it takes follows the size in memory.
    """
    level, held = _containers([value]), 0
    for _ in range(depth_max):
        if not level:
            return
        held += sum(map(len, dict(zip(map(id, level), level, strict=True)).values()))
        _check_sharing(sum(map(len, level)), held)
        level = _containers(_members_of(level))
    if level:
        raise NestedTooDeep(f"it is nested deeper than {depth_max} levels")


def is_container(value: Any) -> bool:
    """Whether a value may hold others, which may be nested."""
    return isinstance(value, _CONTAINERS)


def _containers(values: list[Any]) -> list[Any]:
    """List those that hold others: their types, which are few, tell which may."""
    kinds = set(map(type, values)) - _PLAIN
    holding = tuple(kind for kind in kinds if kind in _LISTS or issubclass(kind, _CONTAINERS))
    held = [value for value in values if isinstance(value, holding)] if holding else []
    return [value for value in held if not isinstance(value, np.ndarray) or value.ndim]


def _members_of(level: list[Any]) -> list[Any]:
    if _LISTS.issuperset(map(type, level)):
        return list(chain.from_iterable(level))
    return list(chain.from_iterable(map(_members, level)))


def _members(container: Any) -> Iterable[Any]:
    if isinstance(container, Mapping):
        return container.values()
    if isinstance(container, np.ndarray):
        return container.ravel().tolist() if container.dtype == object else ()
    members: Iterable[Any] = container
    return members


def _check_sharing(written: int, held: int) -> None:
    """Refuse a level that has far more values than all lists and mappings up to it hold."""
    if written > SHARED_VALUES_MAX and written > _SHARED_TIMES * held:
        raise ValueError(
            "its lists and mappings are repeated so often that it would expand to more than "
            f"{SHARED_VALUES_MAX:,} values (SHARED_VALUES_MAX)"
        )
