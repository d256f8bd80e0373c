"""Kernels learned through the solver."""
