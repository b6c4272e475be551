"""How many bytes of a FlatGeobuf file lie after the features that its header counts.

GDAL reads as many as are counted and no more. A feature stands after its length, so that one is
stepped over without looking at it.
"""

import mmap
import struct
from pathlib import Path

_MAGIC_BYTES, _NODE_BYTES, _NODE_SIZE = 8, 40, 16
_COUNT_FIELD, _NODE_SIZE_FIELD = 8, 9  # of the header, a table of FlatBuffers
_LENGTH = struct.Struct("<I")


def count_bytes_left(path: Path) -> tuple[int, int]:
    """Return how many features the header counts, and how many bytes follow the last of them.

    No byte is left over where the header does not count, or cannot be read: GDAL will say so.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            count = _read_field(data, _COUNT_FIELD, "<Q", 0)
            node_size = _read_field(data, _NODE_SIZE_FIELD, "<H", _NODE_SIZE)
            at = _MAGIC_BYTES + 4 + _LENGTH.unpack_from(data, _MAGIC_BYTES)[0]
            if count > len(data):  # more than there can be, and perhaps than Python can count
                return 0, 0
            at += _index_bytes(count, node_size)
            for _ in range(count):
                at += 4 + _LENGTH.unpack_from(data, at)[0]
        except struct.error:  # beyond the end
            return 0, 0
        return count, max(len(data) - at, 0) if count else 0


def _read_field(data: mmap.mmap, field: int, form: str, default: int) -> int:
    """Read a number of the header, which is the default where it is not stated."""
    root = _MAGIC_BYTES + 4
    table = root + _LENGTH.unpack_from(data, root)[0]
    fields = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, fields)[0]
    if 4 + 2 * field >= size:
        return default
    place = struct.unpack_from("<H", data, fields + 4 + 2 * field)[0]
    return int(struct.unpack_from(form, data, table + place)[0]) if place else default


def _index_bytes(count: int, node_size: int) -> int:
    """Return the bytes of the tree before the features, of which a node has so many below it."""
    if not count or not node_size:
        return 0
    nodes = level = count
    while level > 1:
        level = -(-level // max(node_size, 2))
        nodes += level
    return _NODE_BYTES * (nodes if count > 1 else 2)
