"""Kernels with the names of their labels: aligned, told about, saved and loaded."""
