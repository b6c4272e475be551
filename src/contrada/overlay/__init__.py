"""The DR-tree: peers that organise themselves in an R-tree of their filters, and heal it."""
