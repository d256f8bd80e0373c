"""Rules side by side: one metric, the same samples, the same bootstrap draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from paper.record.findings import Figure, Progress, follow
from wassemble.metrics import Estimate, Measure, PairedBootstrap
from wassemble.solvers import ARITHMETIC, GEOMETRIC, PowerMean

# Of a power mean, beside the arithmetic (1) and the geometric (0) one.
_ORDERS = (0.25, 0.5, 0.75, 1.5, 2.0, 4.0)
_N_RESAMPLES = 1000

_Setting = TypeVar("_Setting")
_Consensus = TypeVar("_Consensus")


class Judge:
    """A metric on fixed samples; those of one of ``groups`` are drawn together."""

    def __init__(
        self, measure: Measure, truth: np.ndarray, *, groups: Sequence | None = None, seed: int = 0
    ) -> None:
        self.measure, self.truth = measure, truth
        n_resamples = min(_N_RESAMPLES, measure.n_resamples)
        self._bootstrap = PairedBootstrap(
            measure, truth, groups=groups, n_resamples=n_resamples, seed=seed
        )
        self._known: dict[int, tuple[np.ndarray, Estimate]] = {}

    def score(self, scores: np.ndarray) -> float:
        """The metric."""
        return self.measure.score(scores, self.truth)

    def figure(self, scores: np.ndarray) -> Figure:
        """The metric with its interval."""
        estimate = self._estimate(scores)
        return Figure(estimate.score, *estimate.interval)

    def gain(self, scores: np.ndarray, over: np.ndarray) -> Figure:
        """How much better the first is than the second, paired."""
        gain = self._estimate(scores).minus(self._estimate(over))
        return Figure(gain.difference, gain.low, gain.high, is_gain=True)

    def compare(self, rules: Mapping[str, np.ndarray], over: str) -> dict[str, list[Figure | None]]:
        """By the name of the rule, its figure and its gain; ``over`` has none over itself."""
        return {
            name: [self.figure(scores), None if name == over else self.gain(scores, rules[over])]
            for name, scores in rules.items()
        }

    def _estimate(self, scores: np.ndarray) -> Estimate:
        """Remembered, for a rule is compared with many."""
        known = self._known.get(id(scores))
        if known is None or known[0] is not scores:
            known = self._known[id(scores)] = scores, self._bootstrap.estimate(scores)
        return known[1]


def tune(
    settings: Sequence[_Setting],
    fuse: Callable[[_Setting], _Consensus],
    score: Callable[[_Consensus], float],
    progress: Progress = None,
) -> tuple[_Setting, _Consensus]:
    """The setting whose consensus scores best, the first of equal ones, and that consensus."""
    tried = ((setting, fuse(setting)) for setting in follow(settings, progress))
    return max(tried, key=lambda each: score(each[1]))


def simple_rules(
    models: Mapping[str, np.ndarray],
    truth: np.ndarray,
    is_test: np.ndarray,
    measure: Measure,
    *,
    carry: Callable[[np.ndarray], np.ndarray] = lambda scores: scores,
) -> dict[str, np.ndarray]:
    """Scores of the best single model and of the simple means, for every sample.

    What is chosen (the best model, the order of the power mean) is chosen on the samples that
    are not for test. ``carry`` goes from the models' labels to those of the truth, after the
    mean.
    """

    def score(scores: np.ndarray) -> float:
        return measure.score(carry(scores[~is_test]), truth[~is_test])

    def mean(order: float) -> np.ndarray:
        return PowerMean(order).fuse(stack).scores

    stack = list(models.values())
    best, alone = tune(list(models), models.__getitem__, score)
    order, power = tune(_ORDERS, mean, score)
    rules = {
        f"best single model ({best})": alone,
        "arithmetic mean": ARITHMETIC.fuse(stack).scores,
        "geometric mean": GEOMETRIC.fuse(stack).scores,
        f"power mean (order {order:g}, tuned)": power,
    }
    return {name: carry(scores) for name, scores in rules.items()}
