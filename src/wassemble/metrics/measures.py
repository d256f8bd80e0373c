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
    return _precisions(scores, truth, weight[:, None])[:, 0]


def _precisions(scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Average precision of labels under several weightings, ``(n_labels, n_weightings)``.

    ``weights`` has shape (n_samples, n_weightings): a column is how often samples count.
    scikit-learn's function takes one label and one weighting at a time.
    """
    scores = np.nan_to_num(scores)
    order = np.argsort(-scores, axis=0, kind="stable")
    return np.stack(
        [
            _precision(scores[rows, j], truth[rows, j], weights, rows)
            for j, rows in enumerate(order.T)
        ]
    )


def _precision(
    scores: np.ndarray, truth: np.ndarray, weights: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Of one label whose samples ``rows`` are sorted, best first."""
    known = ~np.isnan(truth)
    if not known.all():
        scores, truth, rows = scores[known], truth[known], rows[known]
    positive = np.flatnonzero(truth == 1)
    if not len(positive):
        return np.full(weights.shape[1], np.nan)
    weights = weights[rows]
    found = np.cumsum(weights[positive], axis=0)
    # Scores that tie are one step: its precision is that at the last of them.
    last = np.flatnonzero(np.concatenate([scores[1:] != scores[:-1], [True]]))
    ends = last[np.searchsorted(last, positive)]
    is_new = np.concatenate([[True], ends[1:] != ends[:-1]])
    steps, step_of = ends[is_new], np.cumsum(is_new) - 1
    starts = np.concatenate([[0], steps[:-1] + 1])
    total = np.cumsum(np.add.reduceat(weights[: steps[-1] + 1], starts), axis=0)
    found_at = found[np.searchsorted(positive, steps, side="right") - 1]
    precision = np.divide(found_at, total, out=np.zeros_like(found_at), where=total > 0)
    sums = (precision[step_of] * weights[positive]).sum(axis=0)
    out = np.full(len(sums), np.nan, dtype=sums.dtype)
    return np.divide(sums, found[-1], out=out, where=found[-1] > 0)


def _resampled_precision(scores: np.ndarray, truth: np.ndarray, counts: np.ndarray) -> np.ndarray:
    # Sums of counts are exact in float32, and half as many bytes.
    found = _precisions(scores, truth, np.ascontiguousarray(counts.T, dtype=np.float32))
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
