"""Kernels judged on samples held out: losses after calibration, and how sure differences are.

A kernel is judged by what it says about labels, not by how sharp the consensus happens to
be: that is mended by one or two numbers, which every rival gets too. Losses are for NumPy and
torch alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from wassemble._arrays import Array, namespace
from wassemble.ensemble.fusion import Fusion
from wassemble.ensemble.learning.fitting import change_each, shuffle_labels
from wassemble.ensemble.learning.trial import Trial
from wassemble.inputs import Kind
from wassemble.kernels import LabelledKernel
from wassemble.metrics import MEAN_LOSS, USUAL, Estimate, PairedBootstrap

_N_CONTROLS = 3
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
        probabilities: np.ndarray = _calibrated(scores.astype(np.float64), self.numbers, self.task)
        return probabilities


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
    likely = _calibrated(scores, numbers, task)
    if task == "multiclass":
        return -xp.log(likely[xp.arange(truth.shape[0]), truth])
    known = ~xp.isnan(truth)
    present = xp.where(known, truth, 0.0)
    each = -(present * xp.log(likely) + (1 - present) * xp.log(1 - likely))
    counts = xp.sum(xp.astype(known, likely.dtype), axis=-1)
    sums = xp.sum(xp.where(known, each, 0.0), axis=-1)
    return sums / xp.where(counts > 0, counts, 1.0)


def fit_calibration(
    scores: np.ndarray, truth: np.ndarray, weight: np.ndarray | None, task: Kind
) -> Calibration:
    """The calibration of least loss."""
    start = Calibration(task).numbers
    scores = scores.astype(np.float64)

    def loss(numbers: np.ndarray) -> float:
        return float(np.average(each_loss(scores, truth, numbers, task), weights=weight))

    least = minimize(loss, start, method="L-BFGS-B", bounds=_BOUNDS[: len(start)])
    return Calibration(task, *(float(number) for number in least.x))


Kernels = Mapping[str, LabelledKernel] | None
"""One per model; None matches labels by name."""


@dataclass(frozen=True, eq=False)
class Judged:
    """A kernel on held-out samples.

    Attributes
    ----------
    estimate : Estimate
        Minus the log-loss, or mean binary cross-entropy, after calibration on the samples
        trained on.
    score : float
        Accuracy, or mean average precision.
    """

    name: str
    estimate: Estimate = field(repr=False)
    score: float
    is_candidate: bool = False
    calibration: Calibration = field(repr=False, default=Calibration("multiclass"))
    train_loss: float = field(repr=False, default=np.nan)

    @property
    def loss(self) -> float:
        """Mean over the held-out samples; the lower the better."""
        return 0 - self.estimate.score

    @property
    def standard_error(self) -> float:
        """Of the loss."""
        return self.estimate.standard_error


@dataclass
class Judge:
    """Judges kernels of a fusion by the same samples and the same resamples.

    Parameters
    ----------
    rows, held_out : arrays of int
        Samples to calibrate on, and samples to judge by.
    """

    trial: Trial
    fusion: Fusion
    rows: np.ndarray
    held_out: np.ndarray
    seed: int

    def __post_init__(self) -> None:
        truth, weight = self.trial.truth[self.held_out], self._weight(self.held_out)
        self._bootstrap = PairedBootstrap(MEAN_LOSS, truth, sample_weight=weight, seed=self.seed)

    def calibrate(self, kernels: Kernels) -> tuple[Calibration, float]:
        """The best calibration on the samples trained on, and its loss there."""
        scores, truth = self._fuse(kernels, self.rows), self.trial.truth[self.rows]
        weight, task = self._weight(self.rows), self.trial.task
        calibration = fit_calibration(scores, truth, weight, task)
        losses = each_loss(scores, truth, calibration.numbers, task)
        return calibration, float(np.average(losses, weights=weight))

    def judge(self, name: str, kernels: Kernels, *, is_candidate: bool = False) -> Judged:
        """The consensus through ``kernels``, calibrated on the samples trained on."""
        calibration, train_loss = self.calibrate(kernels)
        task = self.trial.task
        scores, truth = self._fuse(kernels, self.held_out), self.trial.truth[self.held_out]
        losses = each_loss(scores, truth, calibration.numbers, task)
        score = USUAL[task].score(scores, truth, self._weight(self.held_out))
        estimate = self._bootstrap.estimate(losses)
        return Judged(name, estimate, score, is_candidate, calibration, train_loss)

    def _fuse(self, kernels: Kernels, rows: np.ndarray) -> np.ndarray:
        plan = self.fusion.replace(kernel=kernels).plan(self.trial.models)
        chunk = plan.fuse([model.take(rows) for model in self.trial.models])
        return np.nan_to_num(chunk.scores.astype(np.float64))

    def control(self, learned: Judged, kernels: Mapping[str, LabelledKernel]) -> list[Judged]:
        """The same kernels with their labels shuffled, several times."""
        judged = []
        for seed in range(_N_CONTROLS):
            shuffled = change_each(kernels, partial(shuffle_labels, seed=self.seed + seed))
            judged.append(self.judge(f"{learned.name}, labels shuffled ({seed})", shuffled))
        return judged

    def _weight(self, rows: np.ndarray) -> np.ndarray | None:
        weight = self.trial.sample_weight
        return None if weight is None else weight[rows]
