"""Rules side by side: one metric, the same samples, the same bootstrap draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from paper.record.findings import Cell, Figure
from wassemble.metrics import Estimate, Measure, PairedBootstrap
from wassemble.solvers import ARITHMETIC, GEOMETRIC, PowerMean

__all__ = ["Judge", "compare", "simple_rules"]

# Of a power mean, beside the arithmetic (1) and the geometric (0) one.
_ORDERS = (0.25, 0.5, 0.75, 1.5, 2.0, 4.0)
_N_RESAMPLES = 1000


class Judge:
    """A metric on fixed samples.

    Parameters
    ----------
    measure : Measure
    truth : array
        What ``measure`` compares scores with.
    groups : sequence, optional
        Samples of one group are drawn together.
    """

    def __init__(
        self,
        measure: Measure,
        truth: np.ndarray,
        *,
        groups: Sequence[Any] | None = None,
        seed: int = 0,
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
        found = self._estimate(scores)
        return Figure(found.score, *found.interval)

    def gain(self, scores: np.ndarray, over: np.ndarray) -> Figure:
        """How much better the first is than the second, paired."""
        found = self._estimate(scores).minus(self._estimate(over))
        return Figure(found.difference, found.low, found.high, is_gain=True)

    def _estimate(self, scores: np.ndarray) -> Estimate:
        """Remembered, for a rule is compared with many."""
        known = self._known.get(id(scores))
        if known is None or known[0] is not scores:
            known = self._known[id(scores)] = scores, self._bootstrap.estimate(scores)
        return known[1]


def compare(
    rules: Mapping[str, np.ndarray], judge: Judge, *, over: str | None = None
) -> list[list[Cell]]:
    """A row for each rule: its name, its figure, and its gain over the rule ``over``."""
    rows: list[list[Cell]] = []
    for name, scores in rules.items():
        gain = None if over is None or name == over else judge.gain(scores, rules[over])
        rows.append([name, judge.figure(scores), gain])
    return rows


def simple_rules(
    models: Mapping[str, np.ndarray],
    truth: np.ndarray,
    is_test: np.ndarray,
    measure: Measure,
    *,
    weights: np.ndarray | None = None,
    carry: Callable[[np.ndarray], np.ndarray] = lambda scores: scores,
) -> dict[str, np.ndarray]:
    """Scores of the best single model and of the simple means, for every sample.

    Parameters
    ----------
    models : dict of name to array of shape (n_samples, n_labels)
    is_test : array of shape (n_samples,)
        What is chosen (the best model, the order of the power mean) is chosen on the others.
    carry : callable, optional
        From the models' labels to those of the truth, after the mean.
    """

    def score(scores: np.ndarray) -> float:
        return measure.score(carry(scores[~is_test]), truth[~is_test], None)

    best = max(models, key=lambda name: score(models[name]))
    stack = list(models.values())
    found = {f"best single model ({best})": models[best]}
    found["arithmetic mean"] = ARITHMETIC.fuse(stack, weights=weights).consensus
    found["geometric mean"] = GEOMETRIC.fuse(stack, weights=weights).consensus
    powers = {order: PowerMean(order).fuse(stack, weights=weights).consensus for order in _ORDERS}
    order = max(powers, key=lambda each: score(powers[each]))
    found[f"power mean (order {order:g}, tuned)"] = powers[order]
    return {name: carry(scores) for name, scores in found.items()}
