from .ensemble import fuse as fuse
from .errors import (
    ConvergenceWarning as ConvergenceWarning,
    InvalidInputError as InvalidInputError,
    MissingExtraError as MissingExtraError,
    WassembleError as WassembleError,
)
from .kernels import (
    DenseKernel as DenseKernel,
    DiagonalKernel as DiagonalKernel,
    IdentityKernel as IdentityKernel,
    Kernel as Kernel,
    LowRankKernel as LowRankKernel,
    SparseKernel as SparseKernel,
    distance_to_identity as distance_to_identity,
    kernel_from_cost as kernel_from_cost,
    kernel_from_embeddings as kernel_from_embeddings,
)
from .scale import fuse_stream as fuse_stream
from .solvers import (
    Balanced as Balanced,
    BarycenterProblem as BarycenterProblem,
    BarycenterResult as BarycenterResult,
    SolverChoice as SolverChoice,
    Status as Status,
    Unbalanced as Unbalanced,
    arithmetic_mean as arithmetic_mean,
    geometric_mean as geometric_mean,
    hellinger_mean as hellinger_mean,
    power_mean as power_mean,
    select_solver as select_solver,
    solve_barycenter as solve_barycenter,
)

__version__: str
