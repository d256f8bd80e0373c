"""Ensembling: what most users import."""

from wassemble.ensemble.fuse import fuse

__all__ = ["fuse"]
