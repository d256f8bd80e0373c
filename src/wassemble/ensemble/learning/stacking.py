"""Stacking by logistic regression: the rival that every leaderboard names."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from wassemble._extras import load_extra
from wassemble.ensemble.learning.search import Search
from wassemble.ensemble.learning.trial import Trial

__all__ = ["stack_scores"]


def stack_scores(search: Search) -> np.ndarray:
    """Out-of-fold scores of a logistic regression on all scores of all models."""
    trial = search.trial
    features = np.hstack([np.nan_to_num(model.scores) for model in trial.models])
    found = np.zeros((trial.n_samples, len(trial.target)))
    for k in range(search.n_folds):
        inside = search.folds == k
        outside = trial.take(~inside)
        found[inside] = fit_and_predict(outside, features[~inside], features[inside])
    return found


def fit_and_predict(trial: Trial, seen: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """Scores over the target labels; 0 for labels that did not occur."""
    linear = load_extra("sklearn.linear_model", "learn", purpose="stacking")
    scores = np.zeros((len(unseen), len(trial.target)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge costs it, nobody else
        if trial.task == "multiclass":
            model = linear.LogisticRegression(C=10.0, max_iter=100, tol=1e-3)
            model.fit(seen, trial.truth, sample_weight=trial.sample_weight)
            scores[:, model.classes_] = model.predict_proba(unseen)
            return scores
        for label in range(len(trial.target)):
            known = ~np.isnan(trial.truth[:, label])
            truth: Any = trial.truth[known, label].astype(int)
            if truth.min(initial=1) == truth.max(initial=0):
                scores[:, label] = truth.mean() if len(truth) else 0
                continue
            model = linear.LogisticRegression(C=1.0, max_iter=100, tol=1e-3).fit(seen[known], truth)
            scores[:, label] = model.predict_proba(unseen)[:, 1]
    return scores
