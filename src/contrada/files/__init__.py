"""Tables in and out: rows of any source as Arrow batches, results into any format.

This room does not judge geometries and knows nothing of matching.
"""

from contrada.files.crs import is_same_crs
from contrada.files.output import Output, open_output
from contrada.files.reading import read_rows
from contrada.files.rows import Rows

__all__ = ["Output", "Rows", "is_same_crs", "open_output", "read_rows"]
