"""Objects that Python's garbage collector need not walk.

A full collection walks over all objects that could be part of a cycle, and nobody else runs
meanwhile: a million geometries take it a fifth of a second, though they refer to nothing, and so
would as many constraints, which refer to their parts only.
"""

import ctypes
import gc
from collections import deque
from collections.abc import Iterable

_untrack = ctypes.pythonapi.PyObject_GC_UnTrack
_untrack.argtypes, _untrack.restype = [ctypes.py_object], None


def untrack(objects: Iterable[object]) -> None:
    """Hide objects from the collector that are in no cycle; they go when nobody needs them."""
    deque(map(_untrack, filter(gc.is_tracked, objects)), maxlen=0)
