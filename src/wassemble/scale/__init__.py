"""Scale: the same fuse, for more than fits in memory or on one machine."""

from wassemble.scale.files import fuse_files
from wassemble.scale.folders.cluster import ClusterError
from wassemble.scale.folders.run import PartitionedFusion, PartitionError, fuse_partitions
from wassemble.scale.lazy import fuse_lazily
from wassemble.scale.ranks.exchange import RankError
from wassemble.scale.ranks.row_blocks import RowBlockKernel
from wassemble.scale.ranks.solve import SharedBarycenter, solve_barycenter_distributed
from wassemble.scale.stream import fuse_stream

__all__ = [
    "ClusterError",
    "PartitionError",
    "PartitionedFusion",
    "RankError",
    "RowBlockKernel",
    "SharedBarycenter",
    "fuse_files",
    "fuse_lazily",
    "fuse_partitions",
    "fuse_stream",
    "solve_barycenter_distributed",
]
