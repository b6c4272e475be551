"""Numba kernels: arrays and scalars in, arrays out. The only room that imports Numba."""
