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
from wassemble.solvers.loop import Ending, Stopping, run
from wassemble.solvers.mixed_sweep import MixedSweep
from wassemble.solvers.plain_sweep import PlainSweep, unsafe_rows
from wassemble.solvers.problem import BarycenterProblem, Tile
from wassemble.solvers.status import Status
from wassemble.solvers.sweeps import Sweep

__all__ = [
    "ClosedFormSolver",
    "DebiasedSolver",
    "Finish",
    "LogSolver",
    "MixedSolver",
    "PlainSolver",
    "Solver",
]

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
