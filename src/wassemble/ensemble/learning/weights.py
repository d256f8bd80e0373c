"""Weights of models, learned on the simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import minimize

from wassemble.ensemble.learning.trial import Trial
from wassemble.ensemble.plan import FusionPlan
from wassemble.metrics import USUAL, Measure

WeightRule = Literal["uniform", "metric", "greedy", "gradient", "agreement", "shared"]
"""How weights are found; "agreement" and "shared", among relatives, without truth."""

_N_GREEDY = 20
_N_IDLE = 10  # additions without a better mean
_TINY = 1e-9


def learn_weights(
    rule: WeightRule,
    trial: Trial,
    measure: Measure,
    plan: FusionPlan,
    *,
    order: float = 1.0,
) -> np.ndarray:
    """Weights on the simplex, ``(n_models,)``, by how the models' mean fits the truth.

    - "metric": in proportion to each model's own score (the paper's appendix); where the
      metric can be negative, to its accuracy or mean average precision.
    - "greedy": models are added one by one, with replacement, each time the one that makes
      the power mean of ``order`` best (Caruana et al. 2004); shares of the additions.
    - "gradient": least log-loss of the arithmetic mean.

    Every mean is over the models that declare a label.
    """
    if rule == "uniform":
        return np.full(len(trial.models), 1 / len(trial.models))
    images = _images(trial, plan)
    if rule == "metric":
        return _by_metric(images, trial, measure)
    if rule == "greedy":
        return _greedy(images, trial, measure, order)
    return _by_gradient(images, trial)


@dataclass(frozen=True)
class _Images:
    """Models carried to the target labels; ``said`` is how much of a say each has there."""

    scores: np.ndarray  # (n_models, n_samples, n_target), 0 where nothing is said
    said: np.ndarray  # the same shape or broadcast to it, from 0 to 1

    def mean(self, weights: np.ndarray) -> np.ndarray:
        """Mean over the models that have a say."""
        total = np.tensordot(weights, self.said, axes=1)
        summed = np.tensordot(weights, self.scores * self.said, axes=1)
        return np.divide(summed, total, out=np.zeros_like(summed), where=total > 0)


def _images(trial: Trial, plan: FusionPlan) -> _Images:
    ready = plan.prepare(trial.models)
    scores = np.zeros((len(trial.models), trial.n_samples, len(trial.target)))
    for model, member in enumerate(plan.members):
        scores[model] = plan.carry(member, ready.scores[model])
    declared = np.array([member.reached for member in plan.members])
    said = declared[:, None, :] * np.where(ready.answered, ready.say, 0.0)[:, :, None]
    return _Images(np.where(said > 0, scores, 0), said)


def _by_metric(images: _Images, trial: Trial, measure: Measure) -> np.ndarray:
    def judge(measure: Measure) -> np.ndarray:
        truth, weight = trial.truth, trial.sample_weight
        return np.array([measure.score(image, truth, weight) for image in images.scores])

    scores = judge(measure)
    if not (scores >= 0).all():
        scores = judge(USUAL[trial.task])
    total = scores.sum()
    return scores / total if total > 0 else np.full(len(scores), 1 / len(scores))


def _greedy(images: _Images, trial: Trial, measure: Measure, order: float) -> np.ndarray:
    n_models = len(images.scores)
    counts, best_counts, best = np.zeros(n_models), np.zeros(n_models), -np.inf
    scores = images.scores.astype(np.float32)
    scores = np.log(np.maximum(scores, _TINY)) if order == 0 else scores**order
    said = images.said.astype(np.float32)
    total, votes = np.zeros_like(scores[0]), np.zeros_like(scores[0])
    idle = 0
    while counts.sum() < _N_GREEDY and idle < _N_IDLE:
        reached = []
        for model in range(n_models):
            share = votes + said[model]
            mean = total + scores[model] * said[model]
            np.divide(mean, share, out=mean, where=share > 0)
            mean = np.exp(mean) if order == 0 else mean ** (1 / order)
            mean[share == 0] = 0
            reached.append(measure.score(mean, trial.truth, trial.sample_weight))
        added = int(np.argmax(reached))
        counts[added] += 1
        total += scores[added] * said[added]
        votes += said[added]
        idle += 1
        if reached[added] > best:
            best, best_counts, idle = reached[added], counts.copy(), 0
    return best_counts / best_counts.sum()


def _by_gradient(images: _Images, trial: Trial) -> np.ndarray:
    """Softmax of parameters found by L-BFGS on the log-loss of the mean."""
    n_models = len(images.scores)
    sample = np.ones(trial.n_samples) if trial.sample_weight is None else trial.sample_weight
    if trial.task == "multiclass":
        rows = np.arange(trial.n_samples)
        scores = images.scores[:, rows, trial.truth]
        said = np.broadcast_to(images.said, images.scores.shape)[:, rows, trial.truth]
        truth, per = np.ones(trial.n_samples), sample
    else:
        known = ~np.isnan(trial.truth)
        scores = np.minimum(images.scores[:, known], 1)
        said = np.broadcast_to(images.said, images.scores.shape)[:, known]
        truth, per = trial.truth[known], np.broadcast_to(sample[:, None], known.shape)[known]
    scores = scores * said

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weights = np.exp(parameters - parameters.max())
        weights /= weights.sum()
        total = weights @ said + _TINY
        mean = np.clip((weights @ scores + _TINY) / (total + 2 * _TINY), _TINY, 1 - _TINY)
        value = -(per * (truth * np.log(mean) + (1 - truth) * np.log(1 - mean))).sum()
        slope = -per * (truth / mean - (1 - truth) / (1 - mean)) / total
        by_weight = scores @ slope - said @ (slope * mean)
        gradient = weights * (by_weight - weights @ by_weight)
        return value / per.sum(), gradient / per.sum()

    least = minimize(
        loss, np.zeros(n_models), jac=True, method="L-BFGS-B", options={"maxiter": 100}
    )
    weights = np.exp(least.x - least.x.max())
    return weights / weights.sum()
