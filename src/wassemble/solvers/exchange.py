"""What ranks that solve one problem together tell each other; alone, nothing.

Each rank holds some of the models. Between two exchanges it works on them as if they were
all there are; what must be the same everywhere goes through an `Exchange`. Solvers know
this much of other machines and no more: `wassemble.scale` has the one that talks.
"""

from typing import Protocol

import numpy as np

from wassemble._arrays import Array


class Exchange(Protocol):
    """Reductions over ranks, entry by entry.

    Every rank must call the same ones in the same order. What comes back is the same on
    every rank to the last bit, so that decisions made from it are the same too.
    """

    is_alone: bool

    def sum(self, values: Array) -> Array:
        """Sum over the ranks."""

    def largest(self, values: Array) -> Array:
        """Largest over the ranks."""

    def gather(self, values: np.ndarray) -> np.ndarray:
        """Every rank's values, ``(n_ranks, ...)``."""


class _Alone:
    """One process with all models."""

    is_alone = True

    def sum(self, values: Array) -> Array:
        return values

    def largest(self, values: Array) -> Array:
        return values

    def gather(self, values: np.ndarray) -> np.ndarray:
        return values[None]


ALONE: Exchange = _Alone()


def agree_on_any(exchange: Exchange, flags: np.ndarray) -> np.ndarray:
    """For each flag whether it is up on some rank."""
    if exchange.is_alone:
        return flags
    return np.asarray(exchange.largest(flags.astype(np.float64)) > 0)


def agree_on_rows(
    exchange: Exchange, residual: np.ndarray, untrusted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Residual of the model that moved most on any rank, and rows that some rank distrusts.

    One small exchange for both.
    """
    if exchange.is_alone:
        return residual, untrusted
    # A maximum may lose a residual that is not a number: it travels as a flag.
    lost = np.isnan(residual)
    told = np.stack([np.where(lost, 0, residual), lost, untrusted]).astype(np.float64)
    residual, lost, untrusted = exchange.largest(told)
    return np.where(lost > 0, np.nan, residual), untrusted > 0
