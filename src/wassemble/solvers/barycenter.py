"""`solve_barycenter`: from a problem to its result."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wassemble._arrays import Array, detached, namespace, new_zeros
from wassemble._checks import check_count
from wassemble.solvers.arithmetics import Solver, select_solver
from wassemble.solvers.exchange import agree_on_any
from wassemble.solvers.gradients import as_tensors, recording_solver, requires_gradient
from wassemble.solvers.loop import Ending, Status
from wassemble.solvers.problem import BarycenterProblem
from wassemble.solvers.result import BarycenterResult
from wassemble.solvers.rules import Barycenter
from wassemble.solvers.tiles import Tile, run_tiles


def solve_barycenter(
    histograms: Sequence[Any] | Array,
    kernels: Any,
    rule: Barycenter = Barycenter(),
    *,
    weights: Any = None,
    normalize: bool = False,
    initial: BarycenterResult | None = None,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> BarycenterResult:
    """Entropic Wasserstein barycenter of several models' predictions, with its evidence.

    Solves, for each sample, min over p of sum_l w_l W_epsilon(mu_l, p), where mass moves
    between source and target labels as the kernels allow.

    Parameters
    ----------
    histograms, kernels, weights, normalize, n_threads, progress
        As in `Barycenter.fuse`. If a single sample drops the sample axis, so does the result.
    rule : Barycenter
        What happens to mass, and how far to go. `Balanced` mass (Algorithm 1), the default,
        takes histograms; `Unbalanced` (Algorithm 2) takes scores.
    initial : BarycenterResult, optional
        Start from the scalings of an earlier result of the same shape; labels that were
        out of reach there start anew. With weights per target label and balanced mass (or a
        mass penalty above 2.4 epsilon) sweeps have several fixed points, and the start
        decides at which one they end.

    Returns
    -------
    result : BarycenterResult
        Torch tensors in give a torch barycenter, with gradients. ``result.dropped_mass`` says
        what ``n_top`` cost, ``result.n_half_sweeps`` how far mixed precision went.

    Examples
    --------
    >>> kernel = [[1.0, 0.5, 0.1], [0.5, 1.0, 0.5], [0.1, 0.5, 1.0]]
    >>> result = solve_barycenter([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], kernel)
    >>> result.barycenter.round(3), result.converged
    (array([0.298, 0.404, 0.298]), True)
    """
    problem = BarycenterProblem(
        histograms, kernels, rule, weights=weights, normalize=normalize, initial=initial
    )
    return solve(problem, n_threads=n_threads, progress=progress)


def solve(
    problem: BarycenterProblem,
    *,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    keep_scalings: bool = True,
    out: np.ndarray | None = None,
    solver: Solver | None = None,
) -> BarycenterResult:
    """Solve ``problem``; without scalings the result has no couplings and starts nothing.

    By ``solver``, or by the one that `select_solver` chooses.

    The barycenters go to ``out`` if it is given; at the end, if it shares memory with what is
    read.
    """
    if n_threads is not None:
        check_count(n_threads, "n_threads")
    if problem.like is not None and (arrays := problem.in_numpy()) is not problem:
        keep = keep_scalings or (problem.tolerance is not None and requires_gradient(problem))
        found = solve(
            arrays,
            n_threads=n_threads,
            progress=progress,
            keep_scalings=keep,
            solver=recording_solver(problem, arrays),
        )
        return as_tensors(problem, found, keep_scalings=keep_scalings, n_threads=n_threads)
    room = np.empty_like(out) if out is not None and problem.may_share_memory(out) else out
    solver = select_solver(problem) if solver is None else solver
    run_of = _Run(problem, solver, keep_scalings=keep_scalings, out=room)
    exchange = problem.exchange
    n_rows = problem.rows_per_tile(solver.tile_size, solver.product_rows)
    # Exchanges of tiles on threads would get mixed up.
    in_turn = not exchange.is_alone
    if in_turn:  # tiles of the same samples
        n_rows = -int(exchange.largest(np.array([-n_rows]))[0])
    run_tiles(run_of.solve_tile, problem.n_samples, n_rows, n_threads, progress, in_turn=in_turn)
    result = run_of.result()
    if out is None or room is out:
        return result
    out[...] = result.barycenters
    return replace(result, barycenters=out)


class _Run:
    """A solve under way: where the tiles put what they find."""

    def __init__(
        self,
        problem: BarycenterProblem,
        solver: Solver,
        *,
        keep_scalings: bool,
        out: np.ndarray | None = None,
    ) -> None:
        self.problem = problem
        self.solver = solver
        size = (problem.n_samples, problem.n_target)
        self.barycenter = new_zeros(size, problem.like, problem.dtype) if out is None else out
        self.status = np.empty(problem.n_samples, dtype=np.int8)
        self.residual = np.zeros(problem.n_samples)
        self.n_sweeps = np.zeros(problem.n_samples, dtype=np.int64)
        self.log_v: Array | None = None
        if keep_scalings:
            self.log_v = new_zeros((problem.n_models, *size), problem.like)
        self.in_log = np.zeros(problem.n_samples, dtype=bool)
        self.dropped = None if problem.n_top is None else np.zeros(problem.n_samples)
        self.n_half_sweeps = 0

    def solve_tile(self, start: int, stop: int) -> None:
        """Solve the samples from ``start`` to ``stop``."""
        # Numbers that leave the range of their type end as a status, not as a warning.
        with np.errstate(over="ignore", under="ignore"):
            tile = self.problem.tile(start, stop, checked=not self.solver.checks_numbers)
            if self.dropped is not None:
                self.dropped[start:stop] = tile.dropped_mass
            for part in tile.split_by_vote():
                self.solver.solve(part, self._finish, keep_scalings=self.log_v is not None)

    def _finish(self, ending: Ending, tile: Tile) -> None:
        """Write down rows of ``tile`` that finished."""
        samples = tile.places(ending.index)
        xp = namespace(self.barycenter)
        p = xp.astype(ending.rows.barycenter, self.barycenter.dtype, copy=False)
        self.barycenter[samples] = p
        status = ending.status
        finite = xp.isfinite(p)
        if not finite.all():  # beyond the range of the type of the result
            status = np.where(detached(xp.all(finite, axis=-1)), status, Status.DIVERGED)
        if not p.all():
            some = detached(xp.any(p != 0, axis=-1))
            if not some.all():
                status = np.where(some, status, self._judge_empty(ending, tile, status))
        self.status[samples] = status
        self.residual[samples] = ending.residual
        self.n_sweeps[samples] = ending.n_sweeps
        self.in_log[samples] = ending.rows.in_logs
        self.n_half_sweeps = max(self.n_half_sweeps, ending.rows.n_half_sweeps)
        if self.log_v is not None and ending.rows.log_v is not None:
            for model, log_v in zip(tile.models, ending.rows.log_v, strict=True):
                self.log_v[model, samples] = log_v

    def _judge_empty(
        self, ending: Ending, tile: Tile, status: np.ndarray | int
    ) -> np.ndarray | int:
        """Status of rows of zeros: no mass came in, none of it met, or too little to be seen."""
        given = [group.histograms[:, ending.index] for group in tile.groups]
        has_mass = agree_on_any(
            tile.exchange, np.logical_or.reduce([detached(h > 0).any(axis=(0, 2)) for h in given])
        )
        p = ending.rows.barycenter  # in the type of the sweeps, which may be the wider one
        hidden = detached(namespace(p).any(p != 0, axis=-1))
        if ending.rows.hidden is not None:
            hidden = hidden | ending.rows.hidden
        lost = np.where(hidden, Status.DIVERGED, Status.NO_MASS)
        return np.where(has_mass, lost, status)

    def result(self) -> BarycenterResult:
        """What was found."""
        return BarycenterResult(
            problem=self.problem,
            solver=self.solver,
            barycenters=self.barycenter,
            statuses=self.status,
            residuals=self.residual,
            sweeps=self.n_sweeps,
            n_log_rows=int(self.in_log.sum()),
            log_v=self.log_v,
            dropped=self.dropped,
            n_half_sweeps=self.n_half_sweeps,
        )
