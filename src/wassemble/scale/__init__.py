"""Scale: the same fuse, for more than fits in memory."""

from wassemble.scale.stream import fuse_stream

__all__ = ["fuse_stream"]
