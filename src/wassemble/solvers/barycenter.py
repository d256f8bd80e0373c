"""`solve_barycenter`: from a problem to its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wassemble._arrays import Array, namespace, new_zeros
from wassemble.solvers.closed_form import solve_diagonal
from wassemble.solvers.debias import Correction, Debiasing, NoCorrection
from wassemble.solvers.loop import Ending, Stopping, run
from wassemble.solvers.mass import MassRule
from wassemble.solvers.problem import BarycenterProblem, Tile
from wassemble.solvers.result import BarycenterResult
from wassemble.solvers.selection import SolverChoice, select_solver
from wassemble.solvers.status import Status
from wassemble.solvers.sweeps import LogSweep, PlainLimits, PlainSweep
from wassemble.solvers.tiles import count_threads, rows_per_tile, run_tiles

__all__ = ["solve", "solve_barycenter"]


def solve_barycenter(
    histograms: Sequence[Any] | Array,
    kernels: Any,
    *,
    weights: Any = None,
    mass: MassRule | None = None,
    max_iterations: int = 1000,
    tolerance: float | None = 1e-6,
    debias: bool = False,
    normalize: bool = False,
    initial: BarycenterResult | None = None,
    n_threads: int | None = None,
) -> BarycenterResult:
    """Entropic Wasserstein barycenter of several models' predictions, with its evidence.

    Solves, for each sample, min over p of sum_l w_l W_epsilon(mu_l, p), where mass moves
    between source and target labels as the kernels allow.

    Parameters
    ----------
    histograms : array of shape (n_models, n_samples, n_labels), or one array per model
        Each model's predictions, ``(n_samples, n_source)`` over its own labels;
        non-negative. A single sample may drop the sample axis, and so does the result.
    kernels : Kernel, array or sparse matrix of shape (n_source, n_target), or one per model
        How similar each source label is to each target label.
    weights : array of shape (n_models,) or (n_models, n_target), optional
        On the simplex over models; uniform if not given. One weight per model and target
        label lets a model keep silent about labels that it does not know.
    mass : Balanced or Unbalanced
        `Balanced` (Algorithm 1) takes histograms, the default; `Unbalanced` (Algorithm 2)
        takes scores.
    max_iterations : int
        Sweeps at most.
    tolerance : float or None
        Stop a row when its residual is at most this. None runs exactly
        ``max_iterations`` sweeps, the paper's own way (5).
    debias : bool
        Take out the blur of the entropic regularisation (Janati et al. 2020). Needs one
        symmetric kernel and balanced mass.
    normalize : bool
        Divide each row of each model by its sum first.
    initial : BarycenterResult, optional
        Start from an earlier result of the same shape.
    n_threads : int, optional
        Threads for large batches; $WASSEMBLE_NUM_THREADS or all cores if not given.

    Returns
    -------
    result : BarycenterResult
        Torch tensors in give a torch barycenter, with gradients.

    Examples
    --------
    >>> kernel = [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    >>> result = solve_barycenter([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], kernel)
    >>> result.barycenter.round(3), result.converged
    (array([0.211, 0.579, 0.211]), True)
    """
    problem = BarycenterProblem(
        histograms,
        kernels,
        weights=weights,
        mass=mass,
        max_iterations=max_iterations,
        tolerance=tolerance,
        debias=debias,
        normalize=normalize,
        initial=initial,
    )
    return solve(problem, n_threads=n_threads)


def solve(
    problem: BarycenterProblem, *, n_threads: int | None = None, keep_scalings: bool = True
) -> BarycenterResult:
    """Solve ``problem``; without scalings the result has no couplings and starts nothing."""
    n_threads = count_threads(n_threads)
    run_of = _Run(problem, select_solver(problem), keep_scalings=keep_scalings)
    if problem.like is None:
        n_labels = max(problem.n_target, *(k.shape[0] for k in problem.kernels))
        n_rows = rows_per_tile(len(problem.model_order), n_labels)
    else:
        n_rows = max(1, problem.n_samples)  # gradients need every step anyway
    run_tiles(run_of.solve_tile, problem.n_samples, n_rows, n_threads)
    return run_of.result()


class _Run:
    """A solve under way: where the tiles put what they find."""

    def __init__(
        self, problem: BarycenterProblem, choice: SolverChoice, *, keep_scalings: bool
    ) -> None:
        self.problem = problem
        self.choice = choice
        self.stopping = Stopping(problem.max_iterations, problem.tolerance)
        size = (problem.n_samples, problem.n_target)
        self.barycenter = new_zeros(size, problem.like, problem.dtype)
        self.status = np.empty(problem.n_samples, dtype=np.int8)
        self.residual = np.zeros(problem.n_samples)
        self.n_iterations = np.zeros(problem.n_samples, dtype=np.int64)
        self.log_v: Array | None = None
        if keep_scalings:
            self.log_v = new_zeros((problem.n_models, *size), problem.like)
        self.in_log = np.full(problem.n_samples, choice.name == "log")

    def solve_tile(self, start: int, stop: int) -> None:
        """Solve the samples from ``start`` to ``stop``."""
        # Numbers that leave the range of their type end as a status, not as a warning.
        with np.errstate(over="ignore", under="ignore"):
            self._solve_tile(self.problem.tile(start, stop), start)

    def _solve_tile(self, tile: Tile, start: int) -> None:
        if self.choice.name == "closed form":
            keep = self.log_v is not None
            rows = solve_diagonal(tile, self.problem.mass, keep_scalings=keep)
            status = np.where(rows.unreachable, Status.UNREACHABLE_MASS, Status.CONVERGED)
            self._finish(start, Ending(np.arange(tile.n_rows), rows, status, np.zeros(1), 0))
            return
        rest = np.arange(tile.n_rows)
        if self.choice.name == "plain":
            rest = self._solve_plain(tile, start)
        if len(rest):
            self.in_log[start + rest] = True
            part = tile if len(rest) == tile.n_rows else tile.take(rest)
            sweep = LogSweep(
                part, self.problem.mass, self.problem.components, self._correction(part)
            )
            run(sweep, part.n_rows, self.stopping, lambda e: self._finish(start, e, rest))

    def _solve_plain(self, tile: Tile, start: int) -> np.ndarray:
        """Solve what plain arithmetic can; return the rows that are left."""
        problem = self.problem
        safe = np.ones(tile.n_rows, dtype=bool)
        limits = PlainLimits.of(problem.dtype)
        for group in tile.groups:
            if group.kernel.entries.has_zeros:  # then a zero in a histogram may cut labels off
                safe &= group.histograms.min(axis=(0, 2)) >= limits.histogram
            safe &= group.histograms.max(axis=(0, 2)) <= limits.scaling
        index = np.flatnonzero(safe)
        if not len(index):
            return np.arange(tile.n_rows)
        part = tile if len(index) == tile.n_rows else tile.take(index)
        sweep = PlainSweep(part, problem.mass, problem.components)
        left = run(sweep, part.n_rows, self.stopping, lambda e: self._finish(start, e, index))
        return np.sort(np.concatenate([np.flatnonzero(~safe), index[left]]))

    def _correction(self, tile: Tile) -> Correction:
        if not self.problem.debias:
            return NoCorrection()
        kernel = tile.groups[0].kernel
        log_d = new_zeros((tile.n_rows, kernel.shape[1]), self.problem.like)
        return Debiasing(kernel, log_d)

    def _finish(self, start: int, ending: Ending, index: np.ndarray | None = None) -> None:
        index = ending.index if index is None else index[ending.index]
        samples = start + index
        xp = namespace(self.barycenter)
        self.barycenter[samples] = xp.astype(ending.rows.barycenter, self.barycenter.dtype)
        self.status[samples] = ending.status
        self.residual[samples] = ending.residual
        self.n_iterations[samples] = ending.n_iterations
        if self.log_v is not None:
            models = np.asarray(self.problem.model_order)[:, None]
            self.log_v[models, samples] = xp.astype(ending.rows.log_v, self.log_v.dtype)

    def result(self) -> BarycenterResult:
        """What was found."""
        xp = namespace(self.barycenter)
        overflowed = ~xp.all(xp.isfinite(self.barycenter), axis=-1)
        self.status[np.asarray(overflowed)] = Status.DIVERGED
        return BarycenterResult(
            problem=self.problem,
            solver=self.choice,
            barycenters=self.barycenter,
            statuses=self.status,
            residuals=self.residual,
            iterations=self.n_iterations,
            n_log_rows=int(self.in_log.sum()),
            log_v=self.log_v,
        )
