"""A table of predictions that can stand where a fitted model is wanted."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from wassemble._checks import fail
from wassemble.inputs import Predictions
from wassemble.labels import name_of

__all__ = ["TableMember"]


class TableMember(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A table of predictions as a fitted member: its samples are looked up by id.

    Parameters
    ----------
    predictions : Predictions

    Examples
    --------
    >>> table = Predictions("m", ["a", "b"], ["cat", "dog"], [[0.9, 0.1], [0.2, 0.8]])
    >>> TableMember(table).predict_proba([["b"]])
    array([[0.2, 0.8]])
    """

    def __init__(self, predictions: Predictions) -> None:
        self.predictions = predictions

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing to learn: the answers are there."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        """The labels of the table."""
        return np.array(list(self.predictions.labels), dtype=object)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Scores of the samples whose ids are in ``X``; nan where there are none."""
        place = {str(s): row for row, s in enumerate(self.predictions.samples.tolist())}
        ids = np.asarray(X, dtype=object).reshape(len(X), -1)[:, 0]
        # Whole numbers among features are floats.
        texts = [name_of(sample) or str(sample) for sample in ids]
        rows = np.array([place.get(text, -1) for text in texts], dtype=np.int64)
        if (rows < 0).all():
            fail(
                f"`X` must hold sample ids of {self.predictions.model!r}; got none, such as"
                f" {str(ids[0])!r}."
            )
        scores = self.predictions.scores[rows].copy()
        scores[rows < 0] = np.nan
        return np.asarray(scores)

    def predict(self, X: Any) -> np.ndarray:
        """Best label of each sample."""
        return self.classes_[np.nan_to_num(self.predict_proba(X)).argmax(axis=1)]
