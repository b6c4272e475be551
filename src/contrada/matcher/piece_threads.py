"""Pieces of one batch on threads: what comes of them has the order of the pieces."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def mapping(threads: int, pieces: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield a `map` that works side by side, where there are threads and pieces for it."""
    if min(threads, pieces) < 2:
        yield map
        return
    with ThreadPoolExecutor(min(threads, pieces), "contrada-follow") as pool:
        yield pool.map
