"""Answers that are there already, in the shape of a scikit-learn classifier."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from wassemble.inputs import Kind

__all__ = ["Answers"]


class Answers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose samples are rows of a table of scores."""

    def __init__(self, scores: np.ndarray, kind: Kind) -> None:
        self.scores = scores
        self.kind = kind
        labels = np.arange(scores.shape[1])
        self.classes_ = [np.array([0, 1])] * len(labels) if kind == "multilabel" else labels

    def fit(self, X: np.ndarray, y: np.ndarray) -> Answers:
        """Nothing to learn."""
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Scores of the rows ``X``."""
        return self.scores[np.asarray(X).ravel()]

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """The same."""
        return self.predict_proba(X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Best label, or 0 and 1 by the threshold of one half."""
        found = self.predict_proba(X)
        return (found >= 0.5).astype(int) if self.kind == "multilabel" else found.argmax(axis=1)
