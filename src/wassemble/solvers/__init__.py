"""Solvers: predictions and kernels in, a consensus and its evidence out. No labels, no files."""

from wassemble.solvers.arithmetics import Solver as Solver, select_solver as select_solver
from wassemble.solvers.barycenter import solve_barycenter as solve_barycenter
from wassemble.solvers.fuser import Fuser as Fuser
from wassemble.solvers.line import LineBarycenter as LineBarycenter
from wassemble.solvers.loop import Status as Status
from wassemble.solvers.mass import (
    Balanced as Balanced,
    MassRule as MassRule,
    Unbalanced as Unbalanced,
)
from wassemble.solvers.problem import BarycenterProblem as BarycenterProblem
from wassemble.solvers.result import BarycenterResult as BarycenterResult
from wassemble.solvers.rules import (
    ARITHMETIC as ARITHMETIC,
    GEOMETRIC as GEOMETRIC,
    HELLINGER as HELLINGER,
    USUAL_RULE as USUAL_RULE,
    Barycenter as Barycenter,
    Fused as Fused,
    GatedBarycenter as GatedBarycenter,
    GatedMean as GatedMean,
    Holds as Holds,
    PowerMean as PowerMean,
    Rule as Rule,
    Single as Single,
)
from wassemble.solvers.stacked import (
    LogisticStacking as LogisticStacking,
    StackedConsensus as StackedConsensus,
)
from wassemble.solvers.tree import TreeBarycenter as TreeBarycenter
from wassemble.solvers.voting import VoteProduct as VoteProduct
