"""What the log drops: whole blocks of positions, the oldest first. Pure.

A block goes when all that it has was stored longer ago than the log keeps things, counted in time
lived, not in time of day, so that a clock that jumps a year drops nothing; or when all blocks
together take too many bytes. The block that is being written to stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

BLOCK_BITS = 12
BLOCK_POSITIONS = 1 << BLOCK_BITS


@dataclass(frozen=True, slots=True)
class Block:
    """Some thousand positions: what their events take, and when the last of them was stored."""

    number: int
    nbytes: int
    lived_us: int


def block_of(position: int) -> int:
    """Return the block in which a position lies."""
    return position >> BLOCK_BITS


def count_droppable(blocks: Sequence[Block], lived_us: int, age_us: float, bytes_max: int) -> int:
    """Count the blocks, from the oldest on, that are to be dropped; the last one never is."""
    total = sum(block.nbytes for block in blocks)
    for count, block in enumerate(blocks[:-1]):
        if total <= bytes_max and block.lived_us >= lived_us - age_us:
            return count
        total -= block.nbytes
    return max(len(blocks) - 1, 0)
