"""Builders from what is known about labels to kernels with names."""
