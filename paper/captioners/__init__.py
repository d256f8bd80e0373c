"""Captioners of pictures: their network, their training, and their files."""

FIVE = ("cross-entropy", "cross-entropy-small", "smoothed", "self-critical", "self-critical-small")
"""The captioners that the experiments fuse."""
