"""Solvers: predictions and kernels in, a consensus and its evidence out. No labels, no files."""

from wassemble.solvers.arithmetics import Solver
from wassemble.solvers.barycenter import solve_barycenter
from wassemble.solvers.fuser import Fuser
from wassemble.solvers.mass import Balanced, MassRule, Unbalanced
from wassemble.solvers.problem import BarycenterProblem
from wassemble.solvers.result import BarycenterResult
from wassemble.solvers.rules import (
    ARITHMETIC,
    GEOMETRIC,
    HELLINGER,
    USUAL_RULE,
    Barycenter,
    Fused,
    GatedBarycenter,
    GatedMean,
    Holds,
    PowerMean,
    Rule,
    Single,
)
from wassemble.solvers.selection import select_solver
from wassemble.solvers.status import Status

__all__ = [
    "ARITHMETIC",
    "GEOMETRIC",
    "HELLINGER",
    "USUAL_RULE",
    "Balanced",
    "Barycenter",
    "BarycenterProblem",
    "BarycenterResult",
    "Fused",
    "Fuser",
    "GatedBarycenter",
    "GatedMean",
    "Holds",
    "MassRule",
    "PowerMean",
    "Rule",
    "Single",
    "Solver",
    "Status",
    "Unbalanced",
    "select_solver",
    "solve_barycenter",
]
