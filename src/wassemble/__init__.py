"""One consensus from the predictions of several models, through their labels' meaning."""

from wassemble.ensemble import fuse
from wassemble.errors import (
    ConvergenceWarning,
    InvalidInputError,
    WassembleError,
)
from wassemble.kernels import (
    DenseKernel,
    DiagonalKernel,
    IdentityKernel,
    Kernel,
    LowRankKernel,
    SparseKernel,
    distance_to_identity,
    kernel_from_cost,
    kernel_from_embeddings,
)
from wassemble.scale import fuse_stream
from wassemble.solvers import (
    Balanced,
    BarycenterProblem,
    BarycenterResult,
    SolverChoice,
    Status,
    Unbalanced,
    arithmetic_mean,
    geometric_mean,
    hellinger_mean,
    power_mean,
    select_solver,
    solve_barycenter,
)

__version__ = "0.1.0"

__all__ = [
    "Balanced",
    "BarycenterProblem",
    "BarycenterResult",
    "ConvergenceWarning",
    "DenseKernel",
    "DiagonalKernel",
    "IdentityKernel",
    "InvalidInputError",
    "Kernel",
    "LowRankKernel",
    "SolverChoice",
    "SparseKernel",
    "Status",
    "Unbalanced",
    "WassembleError",
    "arithmetic_mean",
    "distance_to_identity",
    "fuse",
    "fuse_stream",
    "geometric_mean",
    "hellinger_mean",
    "kernel_from_cost",
    "kernel_from_embeddings",
    "power_mean",
    "select_solver",
    "solve_barycenter",
]
