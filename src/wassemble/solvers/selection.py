"""Which solver a problem gets, and why."""

from __future__ import annotations

import numpy as np

from wassemble.solvers.arithmetics import (
    ClosedFormSolver,
    DebiasedSolver,
    LogSolver,
    MixedSolver,
    PlainSolver,
    Solver,
)
from wassemble.solvers.exchange import agree_on_any
from wassemble.solvers.plain_sweep import PlainLimits
from wassemble.solvers.problem import BarycenterProblem

__all__ = ["select_solver"]


def select_solver(problem: BarycenterProblem) -> Solver:
    """The solver that `solve_barycenter` uses for ``problem``, with the reason.

    Examples
    --------
    >>> problem = BarycenterProblem([[0.5, 0.5], [0.9, 0.1]], [[1.0, 0.2], [0.2, 1.0]])
    >>> select_solver(problem).name
    'plain'
    """
    kernels = problem.voting_kernels
    balanced = problem.rule.is_balanced
    if problem.rule.debias:
        return DebiasedSolver(problem, "the debiased barycenter is computed in logarithms")
    exchange = problem.exchange  # ranks must come to the same choice
    moves = not all(kernel.is_one_to_one for kernel in kernels)
    if not agree_on_any(exchange, np.array([moves]))[0]:
        if balanced:
            return ClosedFormSolver(
                problem, "one-to-one kernels: Algorithm 1 gives the geometric mean at once"
            )
        if problem.tolerance is not None:
            return ClosedFormSolver(
                problem, "one-to-one kernels: the fixed point of Algorithm 2 has a formula"
            )
    if problem.like is not None:
        finite = "torch tensors: logarithms keep the gradients finite"
        if problem.rule.mixed_precision:
            return MixedSolver(problem, f"{finite}; the first products in half precision")
        return LogSolver(problem, finite)
    limits = PlainLimits.of(problem.dtype)
    if not balanced and problem.mass.order < limits.order:
        return LogSolver(
            problem,
            f"order epsilon / (epsilon + mass_penalty) = {problem.mass.order:.3g} is below"
            f" {limits.order:g}, too small for powers in {problem.dtype}",
        )
    entries = [kernel.entries for kernel in kernels]
    bounds = [
        -min(each.smallest for each in entries),
        max(each.largest for each in entries),
        any(each.has_zeros for each in entries),
    ]
    below, largest, has_zeros = exchange.largest(np.array(bounds)).tolist()
    smallest = -below
    if not (smallest >= limits.kernel_range * largest and 1e-10 <= largest <= 1e10):
        return LogSolver(
            problem,
            f"kernel entries from {smallest:.3g} to {largest:.3g} are too far apart for plain"
            f" sums in {problem.dtype}",
        )
    if not has_zeros:
        return PlainSolver(
            problem, "every kernel entry is above 0 and within the range of exact plain sums"
        )
    if agree_on_any(exchange, np.array([problem.has_empty_labels]))[0]:
        return LogSolver(problem, "a kernel has a row or a column of zeros")
    return PlainSolver(
        problem, "kernels with zeros: rows whose histograms are all above 0; the others in logs"
    )
