"""Leaps where sweeps converge slowly: each row goes ahead to where its last sweeps were heading.

Near the fixed point a sweep is a linear map of log v. A combination of the last few log v, with
coefficients that sum to 1 and make the step of a sweep the shortest there is, puts to rest as many
slow modes as it has terms; sweeps go on from there (Anderson 1965; that a leap every few sweeps
does better than one after each is due to Pratapa, Suryanarayana and Pask 2016). The fixed point
does not move; where there are several, a leap may end at another one, and nobody should ask for
it. Rows that a leap brought farther off sweep on without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from wassemble._arrays import Array, convert_like, detached, namespace, widest_float
from wassemble.solvers.exchange import ALONE, Exchange
from wassemble.solvers.sweeps import Rows, TracedSweep

#: Sweeps from one leap to the next, and as many steps as a leap looks back on.
CYCLE = 4
# A row whose steps grow this often leaps no more.
_PATIENCE = 8
# What is added to products of diagonal 1: changes in almost the same direction must not be told
# apart by their rounding.
_DAMPING = 1e-7
# Changes below this share of a step do not count: the inverse of the share is how far a row leaps,
# and its square what becomes of rounding. Where models' mass may fail to meet, rows drift for ever
# by steps that hardly change, and there is nowhere to leap to.
_LEAST_CHANGE = {np.dtype(np.float32): 3e-2, np.dtype(np.float64): 1e-4}
_LEAST_CHANGE_OF_DRIFTS = 3e-2

# Which moves of a trail make up the changes from step to step (at first there is no step before),
# and the last step; and which lead from log v after one sweep to log v after the next.
_CHANGES = np.vstack(
    [np.eye(CYCLE, CYCLE + 2, 2) - np.eye(CYCLE, CYCLE + 2, 1), np.eye(1, CYCLE + 2, CYCLE + 1)]
)
_CHANGES[0, :2] = -1, 0
_CHANGES_AT_FIRST = np.vstack([np.zeros((1, CYCLE + 2)), _CHANGES[1:]])
_WAYS = np.eye(CYCLE, CYCLE + 2, 2)
_WAYS[0, 1] = 1


class LeapingSweep:
    """Sweeps that leap from cycle to cycle, each row as its own steps tell it.

    They leap less far if rows ``may_drift`` without end.
    """

    hopeless = False

    def __init__(
        self,
        sweep: TracedSweep,
        n_rows: int,
        *,
        may_drift: bool = False,
        exchange: Exchange = ALONE,
    ) -> None:
        self._sweep, self._exchange = sweep, exchange
        self._least_change = _LEAST_CHANGE_OF_DRIFTS if may_drift else 0.0
        self._length = np.full(n_rows, np.inf)
        self._failures = np.zeros(n_rows, dtype=np.int64)
        self._back: np.ndarray | None = None  # no cycle is behind

    def step(self, n_sweeps: int = 1, *, watch: bool) -> np.ndarray | None:
        """Do some sweeps, after a leap if they are a cycle that follows another."""
        if n_sweeps != CYCLE:
            self._back = None
            return self._sweep.step(n_sweeps, watch=watch)
        if self._back is not None:
            self._sweep.leap(self._back)
        residual, products = self._sweep.cycle()
        least_change = max(self._least_change, _LEAST_CHANGE[products.dtype])
        self._learn(np.asarray(self._exchange.sum(products.astype(np.float64))), least_change)
        return residual

    def _learn(self, products: np.ndarray, least_change: float) -> None:
        """How the next leap goes; rows whose steps grew sweep on as they are."""
        length = products[:, -1, -1]
        grew = length > self._length
        self._failures += grew
        self._length = length
        back = _shortest_step(products, least_change)
        leaps = np.isfinite(back).all(axis=1) & ~grew & (self._failures < _PATIENCE)
        self._back = np.where(leaps[:, None], back, 0)

    def untrusted(self) -> np.ndarray:
        """Rows whose numbers have left the range where this arithmetic is exact."""
        return self._sweep.untrusted()

    def read(self, rows: Any, *, keep_scalings: bool) -> Rows:
        """The state of ``rows``."""
        return self._sweep.read(rows, keep_scalings=keep_scalings)

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone, by mask."""
        self._sweep.keep(rows)
        self._length, self._failures = self._length[rows], self._failures[rows]
        self._back = None if self._back is None else self._back[rows]


def _shortest_step(products: np.ndarray, least_change: float) -> np.ndarray:
    """With what coefficients ``(n_rows, CYCLE)`` changes of steps make up the last step.

    ``products`` are those of the changes and the last step with each other.
    """
    with np.errstate(all="ignore"):  # rows that end up without a number do not leap
        squares = np.einsum("rcc->rc", products)[:, :-1]
        squares = np.where(squares > 0, squares, 1)  # rounding may leave less than 0
        lengths = np.sqrt(squares)
        scaled = products[:, :-1] / lengths[..., None]
        matrices = scaled[..., :-1] / lengths[:, None]
        damping = _DAMPING + least_change**2 * products[:, -1, -1:] / squares
        np.einsum("rcc->rc", matrices)[...] += damping
        return np.linalg.solve(matrices, scaled[..., -1:])[..., 0] / lengths


class Trail:
    """How log v of some rows moved in the last sweeps, for sweeps in NumPy and torch.

    Moves are the last step of the cycle before, the leap since, and the steps of the cycle.
    """

    def __init__(self) -> None:
        self._moves: Array | None = None  # (n_rows, CYCLE + 2, n_models, n_target)
        self._before: list[Array] | None = None  # the first two of the next cycle

    def follow(self, path: Sequence[Array]) -> np.ndarray:
        """Products of the changes from step to step and of the last step, for each row.

        ``path`` has log v before a cycle of sweeps and after each, (n_models, n_rows, n_target).
        """
        xp = namespace(path[0])
        with np.errstate(invalid="ignore"):  # of labels that are out of reach
            steps = [_by_row(after - before) for before, after in pairwise(path)]
        nothing = [xp.zeros_like(steps[0])] * 2
        changes = _CHANGES_AT_FIRST if self._before is None else _CHANGES
        before, self._before = self._before or nothing, None
        self._moves = xp.stack([*before, *steps], axis=1)
        products = _products(self._moves)
        if not np.isfinite(products).all():  # labels out of reach, or just cut off, stay there
            self._moves = xp.where(xp.isfinite(self._moves), self._moves, 0.0)
            products = _products(self._moves)
        return (changes @ products @ changes.T).astype(detached(steps[0][:0]).dtype)

    def leap(self, back: np.ndarray) -> Array:
        """The leap ``(n_models, n_rows, n_target)`` of log v, by coefficients of each row."""
        moves, xp = self._moves, namespace(self._moves)
        assert moves is not None  # of the cycle that ``back`` was found from
        coefficients = convert_like((-back @ _WAYS)[:, None], moves, moves.dtype)
        flat = xp.reshape(moves, (*moves.shape[:2], -1))
        ahead = xp.reshape(xp.matmul(coefficients, flat), (len(moves), *moves.shape[2:]))
        self._before = [moves[:, -1], ahead]
        return _by_row(ahead)

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone, by mask."""
        self._moves = None if self._moves is None else self._moves[rows]
        self._before = None if self._before is None else [each[rows] for each in self._before]


def _by_row(logs: Array) -> Array:
    """The first two axes exchanged."""
    return namespace(logs).permute_dims(logs, (1, 0, 2))


def _products(moves: Array) -> np.ndarray:
    """Of the moves of each row with each other, ``(n_rows, CYCLE + 2, CYCLE + 2)``."""
    xp = namespace(moves)
    # Changes are small differences of what is multiplied here.
    flat = xp.astype(xp.reshape(moves, (*moves.shape[:2], -1)), widest_float(moves), copy=False)
    return detached(xp.matmul(flat, xp.permute_dims(flat, (0, 2, 1)))).astype(np.float64)
