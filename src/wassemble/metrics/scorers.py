"""scikit-learn's scorers, asked about answers that are there already."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names

from wassemble._checks import fail, option
from wassemble.metrics.arguments import histograms_of


def ask_scorer(
    scorer: Any,
    name: str,
    scores: np.ndarray,
    truth: np.ndarray,
    sample_weight: np.ndarray | None,
) -> float:
    """What a scorer says; ``truth`` is a place for each sample, or 0 and 1 for each label.

    Metrics of probabilities get those of the labels that occur in the truth, as scikit-learn wants
    it, divided by their sums.
    """
    if np.isnan(truth).any():
        fail("scikit-learn's metrics need to know every label; got a truth with nan.")
    given = scores, truth, sample_weight
    try:
        return _ask(scorer, *given)
    except ValueError as error:
        task = "one true label per sample" if truth.ndim == 1 else "any number of true labels"
        fail(
            f"{option('metric')} must be for {task}; scikit-learn says of {name!r}: {error}",
            hint=_find_other(name, *given),
        )


def _find_other(name: str, *given: Any) -> str | None:
    """Scorers of the same name with another ending that serve, in words."""
    others = [each for each in get_scorer_names() if each.startswith(f"{name}_")]
    served = [each for each in others if _serves(get_scorer(each), *given)]
    return f"these are: {', '.join(served)}" if served else None


def _serves(scorer: Any, *given: Any) -> bool:
    try:
        return bool(np.isfinite(_ask(scorer, *given)))
    except ValueError:
        return False


def _ask(
    scorer: Any, scores: np.ndarray, truth: np.ndarray, sample_weight: np.ndarray | None
) -> float:
    if truth.ndim == 2:
        answers, truth = _Answers(np.nan_to_num(scores)), truth.astype(int)
        answers.classes_ = [np.array([0, 1])] * truth.shape[1]
    else:
        answers = _Answers(histograms_of(scores))
        answers.classes_ = np.unique(truth)
    options = {} if sample_weight is None else {"sample_weight": sample_weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels that nobody answered, rule by rule
        return float(scorer(answers, np.arange(len(truth)).reshape(-1, 1), truth, **options))


class _Answers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose samples are rows of a table of scores."""

    classes_: Any

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Answers:
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        scores = self.scores[np.asarray(X).ravel()]
        if isinstance(self.classes_, list) or len(self.classes_) == scores.shape[1]:
            return scores
        return histograms_of(scores[:, self.classes_])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Best label, or 0 and 1 by the threshold of one half."""
        scores = self.scores[np.asarray(X).ravel()]
        is_multilabel = isinstance(self.classes_, list)
        return (scores >= 0.5).astype(int) if is_multilabel else scores.argmax(axis=1)
