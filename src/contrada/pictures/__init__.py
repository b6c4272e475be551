"""Maps of a match result, where a person would rather look than read.

`draw_map` writes one file: a page that works offline, or an image. This room knows geometries,
labels and pairs of indices; it does not know matchers, tables, file formats or Spark.
"""

from contrada.pictures.layers import Layer
from contrada.pictures.maps import draw_map

__all__ = ["Layer", "draw_map"]
