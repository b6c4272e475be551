"""The engine `strtree`: the best that plain Shapely can do."""
