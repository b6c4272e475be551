"""How very many objects go: in steps, since nobody else can run while an array frees them all."""

from contrada.arrays import Geometries


class GeometryOwner:
    """Whoever has an array of geometries alone; they go when it goes, some at a time."""

    _AT_ONCE = 5_000

    def __init__(self, geometries: Geometries) -> None:
        """Take geometries that nobody uses longer."""
        self._geometries = geometries

    def __del__(self) -> None:
        for first in range(0, len(self._geometries), self._AT_ONCE):
            self._geometries[first : first + self._AT_ONCE] = None
