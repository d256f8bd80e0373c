"""Builders from what is known about labels to kernels, most of them with names."""
