"""Kernels judged on samples held out: losses, and how sure their differences are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from wassemble.ensemble.learning.kernel_losses import (
    Calibration,
    each_loss,
    fit_calibration,
    mean_loss,
)
from wassemble.ensemble.learning.recipes import shuffle_labels
from wassemble.ensemble.learning.trial import Trial
from wassemble.ensemble.plan import FusionPlan
from wassemble.kernels import LabelledKernel
from wassemble.metrics import MEAN_LOSS, USUAL, Estimate, PairedBootstrap

__all__ = ["Judge", "Judged", "Kernels"]

_N_CONTROLS = 3

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
    """Judges kernels of a plan by the same samples and the same resamples.

    Parameters
    ----------
    make_plan : callable
        The plan with given kernels.
    rows, held_out : arrays of int
        Samples to calibrate on, and samples to judge by.
    """

    trial: Trial
    make_plan: Callable[[Kernels], FusionPlan]
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
        return calibration, mean_loss(each_loss(scores, truth, calibration.numbers, task), weight)

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
        chunk = self.make_plan(kernels).fuse([model.take(rows) for model in self.trial.models])
        return np.nan_to_num(chunk.scores.astype(np.float64))

    def control(self, learned: Judged, kernels: Mapping[str, LabelledKernel]) -> list[Judged]:
        """The same kernels with their labels shuffled, several times."""
        found = []
        for seed in range(_N_CONTROLS):
            distinct = {id(k): shuffle_labels(k, self.seed + seed) for k in kernels.values()}
            shuffled = {name: distinct[id(kernel)] for name, kernel in kernels.items()}
            found.append(self.judge(f"{learned.name}, labels shuffled ({seed})", shuffled))
        return found

    def _weight(self, rows: np.ndarray) -> np.ndarray | None:
        weight = self.trial.sample_weight
        return None if weight is None else weight[rows]
