"""NumPy arrays and boxes by what they hold."""

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]  # places in a list: of rows, filters, constraints, subscriptions
Integers = NDArray[np.int64]  # counts, codes, areas and other numbers that are not places
SmallIntegers = NDArray[np.int32]
CellKeys = NDArray[np.int64]  # cells of a grid
RowBits = NDArray[np.uint8]  # flags of a row, each a bit of one number
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Geometries = NDArray[np.object_]

Box = tuple[float, float, float, float]  # west, south, east, north
