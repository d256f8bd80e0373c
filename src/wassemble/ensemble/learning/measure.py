"""The user's own metric, as one function of scores and truth; the higher the better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble.inputs import Kind

__all__ = ["Measure", "average_precisions", "read_measure"]

_TINY = 1e-12


@dataclass(frozen=True)
class Measure:
    """A metric of scores and truth.

    Attributes
    ----------
    name : str
    score : callable
        ``score(scores, truth, sample_weight)``, a number; the higher the better.
    each : callable or None
        ``each(scores, truth)``, a number per sample whose weighted mean is the score, where
        the metric is such a mean.
    """

    name: str
    score: Callable[[np.ndarray, np.ndarray, np.ndarray | None], float]
    each: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    def resampled(self, scores: np.ndarray, truth: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The score on each of several bootstrap samples, ``(n_resamples,)``.

        ``counts``, (n_resamples, n_samples), says how often each sample was drawn.
        """
        if self.each is not None:
            return counts @ self.each(scores, truth) / counts.sum(axis=1)
        if self.score is _mean_average_precision:
            return _resampled_precision(scores, truth, counts)
        rows = np.arange(len(truth))
        drawn = [np.repeat(rows, times) for times in counts]
        return np.array([self.score(scores[i], truth[i], None) for i in drawn])

    @property
    def n_resamples(self) -> int:
        """Bootstrap samples that cost little."""
        if self.each is not None:
            return 1000
        return 200 if self.score is _mean_average_precision else 100


def read_measure(metric: Any, kind: Kind) -> Measure:
    """The measure that ``metric`` names.

    Parameters
    ----------
    metric : str or callable
        "accuracy", "log_loss", "brier" (multi-class), "mAP" (multi-label), the name of a
        scikit-learn scorer, a scorer made by `sklearn.metrics.make_scorer`, or any function
        of ``(scores, truth)`` where higher is better.
    """
    own = _MULTICLASS if kind == "multiclass" else _MULTILABEL
    if isinstance(metric, str) and metric in own:
        return own[metric]
    other = _MULTILABEL if kind == "multiclass" else _MULTICLASS
    if isinstance(metric, str) and metric in other:
        fail(f"metric {metric!r} is not for {kind} tasks.", hint=f"these are: {', '.join(own)}")
    if isinstance(metric, str):
        found = load_extra("sklearn.metrics", "learn", purpose=f"the metric {metric!r}")
        if metric not in found.get_scorer_names():
            fail(
                f"`metric` must be one of {', '.join(own)}, a scikit-learn scorer or a function;"
                f" got {metric!r}."
            )
        return Measure(metric, partial(_by_scorer, found.get_scorer(metric), kind))
    if not callable(metric):
        fail(f"`metric` must be a name or a function of (scores, truth); got {metric!r}.")
    if hasattr(metric, "_score_func"):
        return Measure(str(metric), partial(_by_scorer, metric, kind))
    name = getattr(metric, "__name__", repr(metric))
    return Measure(name, lambda scores, truth, _: float(metric(scores, truth)))


def _mean_of(
    each: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Callable[[np.ndarray, np.ndarray, np.ndarray | None], float]:
    def score(scores: np.ndarray, truth: np.ndarray, sample_weight: np.ndarray | None) -> float:
        return float(np.average(each(scores, truth), weights=sample_weight))

    return score


def _is_right(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    known = np.nan_to_num(scores)
    return ((known.argmax(axis=1) == truth) & (known.max(axis=1) > 0)).astype(float)


def _log_likelihood(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    found = _normalized(scores)[np.arange(len(truth)), truth]
    return np.log(np.clip(found, _TINY, 1))


def _minus_brier(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    found = _normalized(scores)
    own = found[np.arange(len(truth)), truth]
    return -(np.square(found).sum(axis=1) - 2 * own + 1)


def _normalized(scores: np.ndarray) -> np.ndarray:
    """Rows of mass 1; a row without mass says nothing, and is uniform."""
    scores = np.nan_to_num(scores.astype(np.float64))
    sums = scores.sum(axis=1, keepdims=True)
    return np.where(sums > 0, scores / np.where(sums > 0, sums, 1), 1 / scores.shape[1])


def average_precisions(
    scores: np.ndarray, truth: np.ndarray, sample_weight: np.ndarray | None = None
) -> np.ndarray:
    """Average precision of each label (nan without a positive); truth nan is left out."""
    weight = np.ones(len(truth)) if sample_weight is None else sample_weight
    scores = np.nan_to_num(scores)
    return np.array(
        [_precisions(scores[:, j], truth[:, j], weight[None])[0] for j in range(truth.shape[1])]
    )


def _precisions(scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Average precision of one label under several weightings, ``(n_weightings,)``."""
    known = ~np.isnan(truth)
    scores, truth, weights = scores[known], truth[known], weights[:, known]
    order = np.argsort(-scores, kind="stable")
    scores, weights = scores[order], weights[:, order]
    positive = weights * (truth[order] == 1)
    total, found = np.cumsum(weights, axis=1), np.cumsum(positive, axis=1)
    # Scores that tie are one step: its precision is that at the last of them.
    last = np.append(scores[1:] != scores[:-1], True)
    if not last.all():
        ends = np.flatnonzero(last)
        at = ends[np.searchsorted(ends, np.arange(len(scores)))]
        total, step = total[:, at], found[:, at]
    else:
        step = found
    precision = np.divide(step, total, out=np.zeros(step.shape), where=total > 0)
    sums = (precision * positive).sum(axis=1)
    n_positive = found[:, -1] if found.shape[1] else np.zeros(len(weights))
    return np.divide(sums, n_positive, out=np.full(len(sums), np.nan), where=n_positive > 0)


def _resampled_precision(scores: np.ndarray, truth: np.ndarray, counts: np.ndarray) -> np.ndarray:
    scores, counts = np.nan_to_num(scores), counts.astype(np.float64)
    found = np.stack(
        [_precisions(scores[:, j], truth[:, j], counts) for j in range(truth.shape[1])]
    )
    seen = ~np.isnan(found)
    return np.where(seen, found, 0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)


def _mean_average_precision(
    scores: np.ndarray, truth: np.ndarray, sample_weight: np.ndarray | None
) -> float:
    found = average_precisions(scores, truth, sample_weight)
    seen = ~np.isnan(found)
    return float(found[seen].mean()) if seen.any() else 0.0


def _by_scorer(
    scorer: Any,
    kind: Kind,
    scores: np.ndarray,
    truth: np.ndarray,
    sample_weight: np.ndarray | None,
) -> float:
    """A scikit-learn scorer, asked about answers that are there already."""
    from wassemble.ensemble.learning.answers import Answers

    known = truth
    rows = np.arange(len(truth))
    if kind == "multilabel":
        if np.isnan(truth).any():
            fail("scikit-learn's metrics need to know every label; got a truth with nan.")
        known = truth.astype(int)
        table = np.nan_to_num(scores)
    else:
        table = _normalized(scores)
    answers = Answers(table, kind)
    options = {} if sample_weight is None else {"sample_weight": sample_weight}
    return float(scorer(answers, rows.reshape(-1, 1), known, **options))


_MULTICLASS = {
    "accuracy": Measure("accuracy", _mean_of(_is_right), _is_right),
    "log_loss": Measure("log_loss", _mean_of(_log_likelihood), _log_likelihood),
    "neg_log_loss": Measure("log_loss", _mean_of(_log_likelihood), _log_likelihood),
    "brier": Measure("brier", _mean_of(_minus_brier), _minus_brier),
}
_MULTILABEL = {"mAP": Measure("mAP", _mean_average_precision)}
