"""The loop around the sweeps: who has finished, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from wassemble.solvers.exchange import ALONE, Exchange, agree_on_any, agree_on_rows
from wassemble.solvers.relaxation import Relaxation
from wassemble.solvers.sweeps import Rows, Sweep

# Sweeps that are all watched; later ones are watched in steps, so that watching stays cheap.
_N_WATCHED = 16
_WATCH_STEP = 8


class Status(IntEnum):
    """How a row ended; each member carries its message.

    Examples
    --------
    >>> Status.MAX_SWEEPS.message
    'stopped after the allowed number of sweeps'
    """

    message: str

    CONVERGED = 0, "converged: the residual is at most the tolerance"
    MAX_SWEEPS = 1, "stopped after the allowed number of sweeps"
    UNREACHABLE_MASS = (
        2,
        "some mass has no target label to go to: its kernel leads to none, or only to labels that"
        " other models rule out or cannot fill",
    )
    DIVERGED = 3, "left the range of the floating type"
    NO_MASS = 4, "the models' mass meets at no target label, so the consensus is empty"

    def __new__(cls, value: int, message: str = "") -> Status:
        member = int.__new__(cls, value)
        member._value_ = value
        member.message = message
        return member


@dataclass(frozen=True)
class Stopping:
    """When rows stop: at ``tolerance`` (None: never before) or after ``max_sweeps``.

    A fixed number of sweeps means those of the algorithm; sweeps towards a tolerance may
    be ``relaxed``. ``measured`` looks at the residual after the last sweep in any case. Rows that
    are still under way after ``patience`` sweeps are handed over (None: never).
    """

    max_sweeps: int
    tolerance: float | None
    relaxed: bool
    measured: bool
    patience: int | None = None

    def next_look(self, n_sweeps: int) -> int:
        """After how many sweeps the residual is looked at next, on the way to a tolerance."""
        if n_sweeps < _N_WATCHED:
            return n_sweeps + 1
        return n_sweeps - n_sweeps % _WATCH_STEP + _WATCH_STEP


@dataclass
class Ending:
    """Rows that finished together."""

    index: np.ndarray | slice  # their places in the tile
    rows: Rows
    status: np.ndarray | int
    residual: np.ndarray | float  # nan if nobody asked
    n_sweeps: int | np.ndarray


def run(
    sweep: Sweep,
    n_rows: int,
    stopping: Stopping,
    finish: Callable[[Ending], None],
    *,
    keep_scalings: bool,
    exchange: Exchange = ALONE,
    hasten: Callable[[np.ndarray, Rows], None] | None = None,
    n_before: np.ndarray | None = None,
) -> np.ndarray:
    """Sweep until every row has finished; return the rows that need another arithmetic.

    ``finish`` receives rows as they finish; they leave the batch, on every rank. ``hasten``
    receives those that are left when the patience is at its end, with their scalings. Of the
    sweeps that are allowed, each row has had ``n_before`` already, and has some left.
    """
    if stopping.tolerance is None:
        return _run_fixed(
            sweep, n_rows, stopping, finish, keep_scalings=keep_scalings, exchange=exchange
        )
    index = np.arange(n_rows)
    handed_over = []
    relaxation = Relaxation(n_rows, active=stopping.relaxed)
    before = np.zeros(n_rows, dtype=np.int64) if n_before is None else n_before
    n_sweeps, confirm = 0, False
    while True:
        fewest = int((stopping.max_sweeps - before).min())  # that some row has
        n_done, n_sweeps = n_sweeps, n_sweeps + 1 if confirm else stopping.next_look(n_sweeps)
        n_sweeps = min(n_sweeps, fewest)
        is_last = before + n_sweeps == stopping.max_sweeps
        # What is returned comes from sweeps as they are: the last two.
        longer = fewest - 2
        if n_done <= longer < n_sweeps:
            n_done = _step_until(sweep, n_done, longer)
            if relaxation.end(before + fewest == stopping.max_sweeps):
                sweep.relax(relaxation.omega)
        residual = sweep.step(n_sweeps - n_done, watch=True)
        residual, untrusted = agree_on_rows(exchange, residual, sweep.untrusted())
        # A residual that is not a number finishes as diverged.
        finished = ~untrusted & (~(residual > stopping.tolerance) | sweep.hopeless | is_last)
        # After a longer step u and v do not fit each other: one more sweep, as it is.
        confirm = relaxation.hold_back(finished)
        if finished.all() and len(index) == n_rows:  # all at once: no copies
            rows = sweep.read(slice(None), keep_scalings=keep_scalings)
            status = _judge(residual, rows, stopping)
            finish(Ending(slice(None), rows, status, residual, before + n_sweeps))
            return index[:0]
        if finished.any():
            rows = sweep.read(finished, keep_scalings=keep_scalings)
            status = _judge(residual[finished], rows, stopping)
            n_had = before[finished] + n_sweeps
            finish(Ending(index[finished], rows, status, residual[finished], n_had))
        handed_over.append(index[untrusted])
        going_on = ~(finished | untrusted)
        if not going_on.any():
            break
        if hasten is not None and n_sweeps == stopping.patience:
            hasten(index[going_on], sweep.read(going_on, keep_scalings=True))
            break
        changed = relaxation.update(n_sweeps, residual) or confirm
        if not going_on.all():
            sweep.keep(going_on)
            index, before = index[going_on], before[going_on]
            relaxation.keep(going_on)
        if changed:
            sweep.relax(relaxation.omega)
    return np.concatenate(handed_over)


def _step_until(sweep: Sweep, n_done: int, n_sweeps: int) -> int:
    """Go on without a look; how many sweeps were done then."""
    if n_sweeps > n_done:
        sweep.step(n_sweeps - n_done, watch=False)
    return n_sweeps


def _run_fixed(
    sweep: Sweep,
    n_rows: int,
    stopping: Stopping,
    finish: Callable[[Ending], None],
    *,
    keep_scalings: bool,
    exchange: Exchange,
) -> np.ndarray:
    """As `run`, for a fixed number of sweeps: only the last is looked at."""
    n_sweeps = stopping.max_sweeps
    residual = sweep.step(n_sweeps, watch=stopping.measured)
    distrusted = sweep.untrusted()
    if residual is None:
        distrusted = agree_on_any(exchange, distrusted)
    else:
        residual, distrusted = agree_on_rows(exchange, residual, distrusted)
    untrusted = np.flatnonzero(distrusted)
    index = np.delete(np.arange(n_rows), untrusted) if len(untrusted) else slice(None)
    if len(untrusted) < n_rows:
        rows = sweep.read(index, keep_scalings=keep_scalings)
        found = np.nan if residual is None else residual[index]
        finish(Ending(index, rows, _judge(found, rows, stopping), found, n_sweeps))
    return untrusted


def _judge(residual: np.ndarray | float, rows: Rows, stopping: Stopping) -> np.ndarray | int:
    if stopping.tolerance is None and not stopping.measured and rows.unreachable is None:
        return Status.MAX_SWEEPS
    status = np.full(len(rows.barycenter), Status.MAX_SWEEPS, dtype=np.int8)
    if stopping.tolerance is not None:
        status[residual <= stopping.tolerance] = Status.CONVERGED
    if rows.unreachable is not None:
        status[rows.unreachable] = Status.UNREACHABLE_MASS
    if stopping.tolerance is not None or stopping.measured:
        status[~np.isfinite(residual)] = Status.DIVERGED
    return status
