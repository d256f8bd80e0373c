"""Stacking by logistic regression: the rival that every leaderboard names."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from wassemble._checks import fail
from wassemble._extras import load_extra
from wassemble._files import whole_file
from wassemble.ensemble.learning.search import Search
from wassemble.ensemble.learning.trial import Trial
from wassemble.inputs import Kind, Predictions

STACKING = "stacking (logistic regression)"
"""Its name on the leaderboard."""


@dataclass(frozen=True, eq=False)
class Stacking:
    """A fitted logistic regression on all scores of all models.

    Attributes
    ----------
    coefficients : array of shape (n_target, n_features)
    intercepts : array of shape (n_target,)
        Minus infinity for labels that did not occur.
    """

    task: Kind
    coefficients: np.ndarray
    intercepts: np.ndarray

    def fuse(self, models: Sequence[Predictions]) -> np.ndarray:
        """Scores over the target labels; models and their labels in the order fitted on."""
        return self.predict(_features(models))

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Scores over the target labels, ``(n_samples, n_target)``."""
        margins = features @ self.coefficients.T + self.intercepts
        return np.asarray(softmax(margins, axis=1) if self.task == "multiclass" else expit(margins))

    def save(self, path: Path) -> None:
        """Write the coefficients as ``.npz``."""
        with whole_file(path) as temporary:
            np.savez(temporary, coefficients=self.coefficients, intercepts=self.intercepts)

    @staticmethod
    def load(path: Path, task: Kind, n_target: int, n_features: int) -> Stacking:
        """What `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                stacking = Stacking(task, arrays["coefficients"], arrays["intercepts"])
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            fail(f"{path}: must hold the coefficients of stacking; {error}.")
        shapes = stacking.coefficients.shape, stacking.intercepts.shape
        if shapes != ((n_target, n_features), (n_target,)):
            fail(f"{path}: must hold {n_target} x {n_features} coefficients.")
        return stacking


def stack_scores(search: Search) -> np.ndarray:
    """Out-of-fold scores of a logistic regression on all scores of all models."""
    trial = search.trial
    scores = np.zeros((trial.n_samples, len(trial.target)))
    for k in range(search.n_folds):
        inside = search.folds == k
        scores[inside] = fit_stacking(trial.take(~inside)).fuse(trial.take(inside).models)
    return scores


def _features(models: Sequence[Predictions]) -> np.ndarray:
    return np.hstack([np.nan_to_num(model.scores) for model in models])


def fit_stacking(trial: Trial, features: np.ndarray | None = None) -> Stacking:
    """A logistic regression fitted on all samples of a trial, or on other features of them."""
    features = _features(trial.models) if features is None else features
    linear = load_extra("sklearn.linear_model", "learn", purpose="stacking")
    n_target = len(trial.target)
    stacking = Stacking(
        trial.task, np.zeros((n_target, features.shape[1])), np.full(n_target, -np.inf)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge costs it, nobody else
        if trial.task == "multiclass":
            if len(seen := np.unique(trial.truth)) == 1:  # nothing to tell apart
                stacking.intercepts[seen] = 0
                return stacking
            model = linear.LogisticRegression(C=10.0, max_iter=100, tol=1e-3)
            model.fit(features, trial.truth, sample_weight=trial.sample_weight)
            # Of two classes there is one margin, that of the second; the first has 0.
            places = model.classes_[-len(model.coef_) :]
            stacking.intercepts[model.classes_] = 0
            stacking.coefficients[places] = model.coef_
            stacking.intercepts[places] = model.intercept_
            return stacking
        for label in range(n_target):
            known = ~np.isnan(trial.truth[:, label])
            truth: Any = trial.truth[known, label].astype(int)
            if len(np.unique(truth)) < 2:
                stacking.intercepts[label] = np.inf if truth.any() else -np.inf
                continue
            model = linear.LogisticRegression(C=1.0, max_iter=100, tol=1e-3)
            model.fit(features[known], truth)
            stacking.coefficients[label] = model.coef_[0]
            stacking.intercepts[label] = model.intercept_[0]
    return stacking
