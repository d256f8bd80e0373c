"""The solvers: a closed form, and sweeps: native, on the numbers themselves, on logarithms.

Each belongs to a problem and solves its tiles one by one; `select_solver` chooses. A solver
hands over rows as they finish, and decides itself which rows it trusts to which arithmetic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from wassemble._arrays import new_zeros
from wassemble.solvers.closed_form import solve_one_to_one
from wassemble.solvers.components import Components
from wassemble.solvers.debias import Debiasing, NoCorrection
from wassemble.solvers.exchange import agree_on_any
from wassemble.solvers.log_sweep import LogSweep
from wassemble.solvers.loop import Ending, Status, Stopping, run
from wassemble.solvers.mixed_sweep import MixedSweep
from wassemble.solvers.native_sweep import NativeSweep, find_native, native_types
from wassemble.solvers.plain_sweep import PlainLimits, PlainSweep, unsafe_rows
from wassemble.solvers.problem import BarycenterProblem
from wassemble.solvers.sweeps import Sweep
from wassemble.solvers.tiles import Tile

__all__ = [
    "ClosedFormSolver",
    "DebiasedSolver",
    "Finish",
    "LogSolver",
    "MixedSolver",
    "NativeSolver",
    "PlainSolver",
    "Solver",
    "select_solver",
]

Finish: TypeAlias = Callable[[Ending, Tile], None]
"""Receives rows of a tile as they finish."""


class Solver(ABC):
    """What solves the tiles of a problem.

    Attributes
    ----------
    name : {"closed form", "native", "plain", "log", "mixed"}
        "native" and "plain" hand rows that outgrow them to "log".
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


class NativeSolver(LogSolver):
    """Sweeps in extended range, in native code; rows that outgrow them are swept in logarithms.

    In each of some floating types, the narrowest first, which hands over to the next.
    """

    name = "native"

    def __init__(self, problem: BarycenterProblem, reason: str, types: Sequence[Any]) -> None:
        super().__init__(problem, reason)
        self.types = types

    def solve(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        rest, starts = tile, [*map(self.start_in, self.types), self.start]
        for start in starts:
            left = self.sweep(rest, start, finish, keep_scalings=keep_scalings)
            if not len(left):
                return
            rest = rest.take(left)

    def start_in(self, dtype: Any) -> Callable[[Tile, Components | None], NativeSweep]:
        """What starts the sweeps of a tile in a floating type."""
        relaxed = self.stopping(measured=False).relaxed
        mass = self._problem.mass
        return lambda tile, components: NativeSweep(tile, mass, components, dtype, relaxed=relaxed)

    @property
    def reads_in_place(self) -> bool:
        """Whether sweeps read histograms where they are, also when they change."""
        return bool(self.types[0] == self._problem.dtype)

    def start_one(self, tile: Tile, components: Components | None) -> NativeSweep:
        """The sweeps of a tile in the narrowest type, before the first."""
        return self.start_in(self.types[0])(tile, components)

    def unsafe(self, tile: Tile) -> None:
        """Rows that native arithmetic need not try: none."""


class PlainSolver(LogSolver):
    """Sweeps on the numbers themselves; rows that outgrow them are swept in logarithms."""

    name = "plain"
    reads_in_place = True

    def solve(self, tile: Tile, finish: Finish, *, keep_scalings: bool) -> None:
        unsafe = self.unsafe(tile)
        safe = tile
        if unsafe is not None:
            safe = tile.take(np.flatnonzero(~unsafe))
        left = np.zeros(0, dtype=np.int64)
        if safe.n_rows:
            with np.errstate(all="ignore"):  # rows that leave the safe range are handed over
                left = self.sweep(safe, self.start_one, finish, keep_scalings=keep_scalings)
        if unsafe is not None:
            left = np.sort(np.concatenate([np.flatnonzero(unsafe), np.flatnonzero(~unsafe)[left]]))
        if len(left):
            rest = tile if len(left) == tile.n_rows else tile.take(left)
            self.sweep(rest, self.start, finish, keep_scalings=keep_scalings)

    def start_one(self, tile: Tile, components: Components | None) -> PlainSweep:
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
    >>> select_solver(problem).name in ("native", "plain")
    True
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
    native = _select_native(problem)
    return _select_numpy(problem) if native is None else native


def _select_native(problem: BarycenterProblem) -> NativeSolver | None:
    """Native sweeps, if they are there and know what the problem needs."""
    native = find_native()
    if native is None or not problem.exchange.is_alone:
        return None
    types: list[Any] = [np.float32, np.float64]
    for kernel in problem.voting_kernels:
        own = native_types(kernel, problem.dtype)
        types = [each for each in types if each in own]
    if not types:
        return None
    return NativeSolver(
        problem,
        f"native sweeps ({native.level()}) in extended range, {np.dtype(types[0])}",
        types,
    )


def _select_numpy(problem: BarycenterProblem) -> Solver:
    kernels, exchange = problem.voting_kernels, problem.exchange
    balanced = problem.rule.is_balanced
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
