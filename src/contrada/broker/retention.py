"""What the log drops: whole blocks of positions, the oldest first. Pure.

A block goes when all that it has was stored longer ago than the log keeps things, counted in time
lived, not in time of day, so that a clock that jumps a year drops nothing; or when all blocks
together take too many bytes. The block that is being written to stays.

A block that has very many deliveries ends early, and the next one begins with the next entry: a
commit writes each page of deliveries anew that it adds to, and an event for very many subscribers
adds to all pages of its block.
"""

from collections.abc import Sequence
from dataclasses import dataclass

BLOCK_BITS = 12
BLOCK_POSITIONS = 1 << BLOCK_BITS
_BLOCK_DELIVERIES = 1 << 15  # about 600 kB of pages


@dataclass(frozen=True, slots=True)
class Block:
    """Some thousand positions: what their events take, and when the last of them was stored."""

    number: int
    nbytes: int
    lived_us: int


def block_of(position: int) -> int:
    """Return the block in which a position lies."""
    return position >> BLOCK_BITS


def last_before(position: int, deliveries: int) -> int:
    """Return after which position the next entry goes; `deliveries` are those of the last block.

    It is `position`, that of the last entry, or the last one of its block if that ends early.
    """
    return position | (BLOCK_POSITIONS - 1) if deliveries >= _BLOCK_DELIVERIES else position


def count_droppable(blocks: Sequence[Block], lived_us: int, age_us: float, bytes_max: int) -> int:
    """Count the blocks, from the oldest on, that are to be dropped; the last one never is."""
    total = sum(block.nbytes for block in blocks)
    for count, block in enumerate(blocks[:-1]):
        if total <= bytes_max and block.lived_us >= lived_us - age_us:
            return count
        total -= block.nbytes
    return max(len(blocks) - 1, 0)
