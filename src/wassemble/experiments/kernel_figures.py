"""Figures of rules on the same test samples, with standard errors and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Row", "average_rows", "compare_rows", "measure_rows", "resample_units"]

_N_RESAMPLES = 500


@dataclass(frozen=True, eq=False)
class Row:
    """What one rule says about the test samples.

    Attributes
    ----------
    scores : array of shape (n_samples, n_target) or (n_runs, n_samples, n_target)
    losses : array of shape (n_samples,)
    """

    scores: np.ndarray
    losses: np.ndarray


def average_rows(rows: Sequence[Row]) -> Row:
    """Several runs of one rule as one: a stack of scores, and mean losses."""
    scores = np.stack([row.scores for row in rows])
    return Row(scores, np.mean([row.losses for row in rows], axis=0))


def resample_units(unit: Sequence[str], seed: int) -> np.ndarray:
    """How often each sample is drawn when units are drawn, ``(n_resamples, n_samples)``."""
    _, which = np.unique(unit, return_inverse=True)
    n_units = int(which.max()) + 1
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_units, np.full(n_units, 1 / n_units), size=_N_RESAMPLES)[:, which]


def measure_rows(
    rows: Mapping[str, Row], best: str, truth: np.ndarray, counts: np.ndarray
) -> dict[str, dict[str, float]]:
    """Accuracy and log-loss of each rule, and both less those of ``best``."""
    found = {}
    for rule, row in rows.items():
        right = _right(row.scores, truth)
        found[rule] = {
            "accuracy": float(right.mean()),
            "accuracy_error": _error(right, counts),
            "log_loss": float(row.losses.mean()),
            "log_loss_error": _error(row.losses, counts),
            **compare_rows(row, rows[best], truth, counts),
        }
    return found


def compare_rows(
    first: Row, second: Row, truth: np.ndarray, counts: np.ndarray
) -> dict[str, float]:
    """Accuracy and log-loss of the first less those of the second, sample by sample."""
    gain = _right(first.scores, truth) - _right(second.scores, truth)
    loss = first.losses - second.losses
    return {
        "difference": float(gain.mean()),
        "difference_error": _error(gain, counts),
        "loss_difference": float(loss.mean()),
        "loss_difference_error": _error(loss, counts),
    }


def _right(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Whether each sample is right; of several runs, the share that are."""
    right = (scores.argmax(axis=-1) == truth) & (scores.max(axis=-1) > 0)
    return right.astype(float) if right.ndim == 1 else right.mean(axis=0)


def _error(values: np.ndarray, counts: np.ndarray) -> float:
    return float((counts @ values / counts.sum(axis=1)).std())
