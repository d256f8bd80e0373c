"""Figures of rules on the same test samples, with intervals and differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paper.record.findings import Figure
from paper.record.judging import Judge
from wassemble.metrics import MEAN

__all__ = ["Row", "Rows", "average_rows"]


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


class Rows:
    """Rules on the same test samples: accuracy, log-loss, and differences of both.

    Parameters
    ----------
    truth : array of shape (n_samples,)
    unit : sequence
        Samples of one unit are drawn together.
    """

    def __init__(self, truth: np.ndarray, unit: Sequence[str], seed: int) -> None:
        self._truth = truth
        self._judge = Judge(MEAN, truth, groups=unit, seed=seed)

    def accuracy(self, row: Row) -> Figure:
        """Share that is right."""
        return self._judge.figure(self._right(row))

    def log_loss(self, row: Row) -> Figure:
        """Mean loss."""
        return self._judge.figure(row.losses)

    def gain(self, row: Row, over: Row) -> Figure:
        """Accuracy of the first less that of the second, sample by sample."""
        return self._judge.gain(self._right(row), self._right(over))

    def loss_difference(self, row: Row, over: Row) -> Figure:
        """Log-loss of the first less that of the second, sample by sample."""
        return self._judge.gain(row.losses, over.losses)

    def _right(self, row: Row) -> np.ndarray:
        """Whether each sample is right; of several runs, the share that are."""
        right = (row.scores.argmax(axis=-1) == self._truth) & (row.scores.max(axis=-1) > 0)
        return right.astype(float) if right.ndim == 1 else right.mean(axis=0)
