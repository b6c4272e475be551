"""Parts of PyArrow that are slow to load: each is loaded when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import compute, csv, parquet
else:

    class _Deferred:
        """A module that is imported when something in it is asked for."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self._name), name)
            setattr(self, name, value)  # the next time nobody asks here
            return value

    compute = _Deferred("pyarrow.compute")
    csv = _Deferred("pyarrow.csv")
    parquet = _Deferred("pyarrow.parquet")

__all__ = ["compute", "csv", "parquet"]
