"""The solvers: a closed form, sweeps on the numbers themselves, sweeps on logarithms.

Each belongs to a problem and solves its tiles one by one; `select_solver` chooses. A solver
hands over rows as they finish, and decides itself which rows it trusts to which arithmetic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import numpy as np

from wassemble._arrays import new_zeros
from wassemble.solvers.closed_form import solve_one_to_one
from wassemble.solvers.components import Components
from wassemble.solvers.debias import Debiasing, NoCorrection
from wassemble.solvers.exchange import agree_on_any
from wassemble.solvers.log_sweep import LogSweep
from wassemble.solvers.loop import Ending, Status, Stopping, run
from wassemble.solvers.mixed_sweep import MixedSweep
from wassemble.solvers.plain_sweep import PlainLimits, PlainSweep, unsafe_rows
from wassemble.solvers.problem import BarycenterProblem
from wassemble.solvers.sweeps import Sweep
from wassemble.solvers.tiles import Tile

Finish: TypeAlias = Callable[[Ending, Tile], None]
"""Receives rows of a tile as they finish."""


class Solver(ABC):
    """What solves the tiles of a problem.

    Attributes
    ----------
    name : {"closed form", "plain", "log", "mixed"}
        "plain" hands rows that outgrow it to "log".
    reason : str
        Why it was chosen, in a sentence.
    one_pass : bool
        Whether it passes over its numbers only once.
    """

    name: ClassVar[str]
    one_pass: ClassVar[bool] = False

    def __init__(self, problem: BarycenterProblem, reason: str) -> None:
        self._problem = problem
        self.reason = reason

    @abstractmethod
    def solve(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        """Solve the samples of ``tile``, whose models all vote on all of them."""

    def __repr__(self) -> str:
        return f"<{self.name}: {self.reason}>"


class ClosedFormSolver(Solver):
    """The fixed point by its formula: every kernel one-to-one."""

    name = "closed form"
    one_pass = True

    def solve(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        rows = solve_one_to_one(tile, self._problem.mass, keep_scalings=keep_scalings)
        status = np.full(tile.n_rows, Status.CONVERGED, dtype=np.int8)
        status[rows.unreachable] = Status.UNREACHABLE_MASS
        finish(Ending(slice(None), rows, status, 0.0, 0), tile)


class LogSolver(Solver):
    """Sweeps on logarithms."""

    name = "log"

    def solve(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        self.sweep(tile, self.start, finish, keep_scalings=keep_scalings)

    def start(self, tile: Tile, components: Components | None) -> Sweep:
        """The sweeps of a tile, before the first."""
        return LogSweep(tile, self._problem.mass, components, NoCorrection())

    def stopping(self, *, measured: bool) -> Stopping:
        """When rows stop."""
        problem = self._problem
        # Longer steps towards one of several fixed points may end at another. Debiasing has a
        # third block, for which they are not known to be safe.
        relaxed = (
            problem.tolerance is not None
            and problem.has_one_fixed_point
            and not problem.rule.debias
        )
        return Stopping(problem.rule.max_sweeps, problem.tolerance, relaxed, measured)

    def sweep(
        self,
        tile: Tile,
        start: Callable[[Tile, Components | None], Sweep],
        finish: Finish,
        *,
        keep_scalings: bool,
    ) -> np.ndarray:
        """Sweep a tile; return the rows that need another arithmetic."""
        stopping = self.stopping(measured=keep_scalings)
        is_watched = stopping.tolerance is not None or stopping.measured
        components = self._problem.components(tile.models) if is_watched else None
        return run(
            start(tile, components),
            tile.n_rows,
            stopping,
            lambda ending: finish(ending, tile),
            keep_scalings=keep_scalings,
            exchange=tile.exchange,
        )


class DebiasedSolver(LogSolver):
    """Sweeps on logarithms, with the step that takes out the kernel's blur."""

    def start(self, tile: Tile, components: Components | None) -> Sweep:
        kernel = tile.groups[0].kernel
        log_d = new_zeros((tile.n_rows, kernel.shape[1]), self._problem.like)
        return LogSweep(tile, self._problem.mass, components, Debiasing(kernel, log_d))


class MixedSolver(LogSolver):
    """Sweeps on logarithms, the first with their products in half precision."""

    name = "mixed"

    def start(self, tile: Tile, components: Components | None) -> Sweep:
        problem = self._problem
        assert problem.tolerance is not None  # the rule sees to it
        return MixedSweep(
            tile,
            problem.mass,
            components,
            tolerance=problem.tolerance,
            max_sweeps=problem.rule.max_sweeps,
        )


class PlainSolver(LogSolver):
    """Sweeps on the numbers themselves; rows that outgrow them are swept in logarithms."""

    name = "plain"

    def solve(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        unsafe = self.unsafe(tile)
        safe = tile
        if unsafe is not None:
            safe = tile.take(np.flatnonzero(~unsafe))
        left = np.zeros(0, dtype=np.int64)
        if safe.n_rows:
            with np.errstate(all="ignore"):  # rows that leave the safe range are handed over
                left = self.sweep(safe, self.start_plain, finish, keep_scalings=keep_scalings)
        if unsafe is not None:
            left = np.sort(np.concatenate([np.flatnonzero(unsafe), np.flatnonzero(~unsafe)[left]]))
        if len(left):
            rest = tile if len(left) == tile.n_rows else tile.take(left)
            self.sweep(rest, self.start, finish, keep_scalings=keep_scalings)

    def start_plain(self, tile: Tile, components: Components | None) -> PlainSweep:
        """The sweeps of a tile on its numbers themselves, before the first."""
        return PlainSweep(tile, self._problem.mass, components)

    def unsafe(self, tile: Tile) -> np.ndarray | None:
        """Rows that plain arithmetic need not try, by mask; None: none."""
        unsafe = None
        for group in tile.groups:
            here = unsafe_rows(group.histograms, group.kernel.entries, self._problem.mass)
            if here is not None:
                unsafe = here if unsafe is None else unsafe | here
        if not tile.exchange.is_alone:
            unsafe = agree_on_any(
                tile.exchange, np.zeros(tile.n_rows) if unsafe is None else unsafe
            )
        return unsafe if unsafe is not None and unsafe.any() else None


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
