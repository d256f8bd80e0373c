"""scikit-learn's scorers, asked about answers that are there already."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from wassemble._checks import fail
from wassemble.metrics.arguments import histograms_of


def ask_scorer(
    scorer: Any, scores: np.ndarray, truth: np.ndarray, sample_weight: np.ndarray | None
) -> float:
    """What a scorer says; ``truth`` is a place for each sample, or 0 and 1 for each label."""
    if truth.ndim == 2:
        if np.isnan(truth).any():
            fail("scikit-learn's metrics need to know every label; got a truth with nan.")
        answers, truth = _Answers(np.nan_to_num(scores)), truth.astype(int)
        answers.classes_ = [np.array([0, 1])] * truth.shape[1]
    else:
        answers = _Answers(histograms_of(scores))
        answers.classes_ = np.arange(scores.shape[1])
    options = {} if sample_weight is None else {"sample_weight": sample_weight}
    return float(scorer(answers, np.arange(len(truth)).reshape(-1, 1), truth, **options))


class _Answers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose samples are rows of a table of scores."""

    classes_: Any

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Answers:
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.scores[np.asarray(X).ravel()]

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return self.predict_proba(X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Best label, or 0 and 1 by the threshold of one half."""
        scores = self.predict_proba(X)
        is_multilabel = isinstance(self.classes_, list)
        return (scores >= 0.5).astype(int) if is_multilabel else scores.argmax(axis=1)
