"""Losses of a consensus, after one or two numbers have calibrated it; NumPy and torch alike.

A kernel is judged by what it says about labels, not by how sharp the consensus happens to
be: that is mended by a temperature, which every rival gets too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from wassemble._arrays import Array, namespace
from wassemble.inputs import Kind

__all__ = ["Calibration", "each_loss", "fit_calibration", "mean_loss"]

# Share of the uniform answer: a true label without any mass must not decide alone.
_UNIFORM = 1e-3
_TINY = 1e-300
_BOUNDS = ((-6.0, 6.0), (-60.0, 60.0))


@dataclass(frozen=True)
class Calibration:
    """From scores to probabilities, in the order of the scores.

    Attributes
    ----------
    log_slope : float
        Multi-class: histograms are raised to the power exp(log_slope), which is one over a
        temperature, and divided by their sums. Multi-label: the odds of a label are
        ``exp(intercept) * score ** exp(log_slope)``.
    intercept : float
        Of multi-label scores.
    """

    task: Kind
    log_slope: float = 0.0
    intercept: float = 0.0

    @property
    def numbers(self) -> tuple[float, ...]:
        """What is learned."""
        if self.task == "multiclass":
            return (self.log_slope,)
        return self.log_slope, self.intercept

    def apply(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities, ``(n_samples, n_target)``; a row of 0 becomes uniform.

        Examples
        --------
        >>> Calibration("multiclass", np.log(2)).apply(np.array([[0.8, 0.2]])).round(3)
        array([[0.941, 0.059]])
        """
        found: np.ndarray = _calibrated(scores.astype(np.float64), self.numbers, self.task)
        return found


def _calibrated(scores: Array, numbers: Any, task: Kind) -> Array:
    xp = namespace(scores)
    logs = xp.exp(numbers[0]) * xp.log(xp.where(scores > _TINY, scores, _TINY))
    if task == "multiclass":
        raised = xp.exp(logs - xp.max(logs, axis=-1, keepdims=True))
        sums = xp.sum(raised, axis=-1, keepdims=True)
        return (1 - _UNIFORM) * raised / sums + _UNIFORM / scores.shape[-1]
    odds = xp.exp(-xp.abs(logs + numbers[1]))  # at most 1: no overflow on either side
    share = xp.where(logs + numbers[1] >= 0, 1 / (1 + odds), odds / (1 + odds))
    return (1 - _UNIFORM) * share + _UNIFORM / 2


def each_loss(scores: Array, truth: Array, numbers: Any, task: Kind) -> Array:
    """Loss of each sample, ``(n_samples,)``: log-loss, or mean binary cross-entropy.

    ``truth`` is the place of the true label; or 0, 1 and nan for each label.
    """
    xp = namespace(scores)
    found = _calibrated(scores, numbers, task)
    if task == "multiclass":
        return -xp.log(found[xp.arange(truth.shape[0]), truth])
    known = ~xp.isnan(truth)
    present = xp.where(known, truth, 0.0)
    each = -(present * xp.log(found) + (1 - present) * xp.log(1 - found))
    counts = xp.sum(xp.astype(known, found.dtype), axis=-1)
    sums = xp.sum(xp.where(known, each, 0.0), axis=-1)
    return sums / xp.where(counts > 0, counts, 1.0)


def mean_loss(losses: np.ndarray, weight: np.ndarray | None) -> float:
    """Mean over samples."""
    return float(np.average(losses, weights=weight))


def fit_calibration(
    scores: np.ndarray, truth: np.ndarray, weight: np.ndarray | None, task: Kind
) -> Calibration:
    """The calibration of least loss."""
    start = Calibration(task).numbers
    scores = scores.astype(np.float64)

    def loss(numbers: np.ndarray) -> float:
        return mean_loss(each_loss(scores, truth, numbers, task), weight)

    found = minimize(loss, start, method="L-BFGS-B", bounds=_BOUNDS[: len(start)])
    return Calibration(task, *(float(number) for number in found.x))
