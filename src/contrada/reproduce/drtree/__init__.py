"""The experiments on the DR-tree: lemmas and properties measured, and comparators."""
