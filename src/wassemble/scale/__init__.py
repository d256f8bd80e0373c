"""Scale: the same fuse, for more than fits in memory."""

from wassemble.scale.files import fuse_files
from wassemble.scale.stream import fuse_stream

__all__ = ["fuse_files", "fuse_stream"]
