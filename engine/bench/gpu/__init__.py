"""Measure our kernels and steps on a GPU in one run. Knows no terminal."""
