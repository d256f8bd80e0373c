"""Coefficients by Newton's method: conditional logit and logistic regression, with a ridge."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, log_expit, log_softmax

_N_STEPS = 50
_N_HALVINGS = 30
# A step that gains less ends the search.
_LEAST_GAIN = 1e-6

_Objective = Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]]


def fit_conditional_logit(
    features: np.ndarray,
    truth: np.ndarray,
    sample_weight: np.ndarray,
    ridge: float,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Coefficients of least log-loss where each sample has one true candidate.

    Parameters
    ----------
    features : array of shape (n_samples, n_candidates, n_features)
    truth : array of shape (n_samples,)
        Place of the true candidate.
    sample_weight : array of shape (n_samples,)
    ridge : float
        Half of it, times the sum of squares of the coefficients of features that are scaled
        to a standard deviation of 1, is added to the mean loss.
    start : array of shape (n_features,), optional
        Coefficients near the best ones, where the search starts.

    Returns
    -------
    coefficients : array of shape (n_features,)

    Examples
    --------
    >>> features = np.array([[[1.0], [0.0]], [[2.0], [0.0]], [[0.0], [1.0]], [[0.5], [0.0]]])
    >>> fit_conditional_logit(features, np.array([0, 0, 1, 1]), np.ones(4), 0.0).round(2)
    array([1.75])
    """
    scaled, scale = _scale(features)
    rows, share = np.arange(len(truth)), sample_weight / sample_weight.sum()
    own = share @ scaled[rows, truth]
    n_features = scaled.shape[2]
    flat = scaled.reshape(-1, n_features)

    def look(coefficients: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        logs = log_softmax(scaled @ coefficients, axis=1)
        loss = -share @ logs[rows, truth]
        chances = np.exp(logs)
        expected = np.matmul(chances[:, None, :], scaled)[:, 0]  # (n_samples, n_features)
        gradient = share @ expected - own
        weighted = flat * (chances * share[:, None]).reshape(-1, 1)
        hessian = weighted.T @ flat - (expected * share[:, None]).T @ expected
        return loss, gradient, hessian

    return _descend(look, _start_at(start, scale), ridge) / scale


def fit_logistic(
    features: np.ndarray,
    truth: np.ndarray,
    sample_weight: np.ndarray,
    ridge: float,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Coefficients of least log-loss where each row is true or not.

    Parameters
    ----------
    features : array of shape (n_rows, n_features)
    truth : array of shape (n_rows,)
        1 or 0.
    sample_weight, ridge, start
        As in `fit_conditional_logit`. Features that do not vary are not scaled.

    Examples
    --------
    >>> features = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    >>> fit_logistic(features, np.array([0, 1, 0, 1]), np.ones(4), 0.0).round(2)
    array([-1.36,  0.91])
    """
    scaled, scale = _scale(features, keep_constant=True)
    share = sample_weight / sample_weight.sum()

    def look(coefficients: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        margins = scaled @ coefficients
        loss = -share @ (truth * log_expit(margins) + (1 - truth) * log_expit(-margins))
        chances = expit(margins)
        gradient = (share * (chances - truth)) @ scaled
        hessian = (scaled * (share * chances * (1 - chances))[:, None]).T @ scaled
        return loss, gradient, hessian

    return _descend(look, _start_at(start, scale), ridge) / scale


def _scale(features: np.ndarray, *, keep_constant: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Features with a standard deviation of 1, and what they were divided by.

    Those that do not vary tell nothing: infinity, so that their coefficient is 0.
    """
    scale = features.std(axis=tuple(range(features.ndim - 1)))
    size = np.abs(features).max(axis=tuple(range(features.ndim - 1)), initial=0)
    scale = np.where(scale > 1e-9 * size, scale, 1.0 if keep_constant else np.inf)
    return features / scale, scale


def _start_at(start: np.ndarray | None, scale: np.ndarray) -> np.ndarray:
    if start is None:
        return np.zeros(len(scale))
    return np.where(np.isfinite(scale), start * np.where(np.isfinite(scale), scale, 1), 0)


def _descend(look: _Objective, at: np.ndarray, ridge: float) -> np.ndarray:
    """Where a convex loss with a ridge is least: Newton steps, halved until they gain."""
    # Without a ridge, features that say the same have no one answer: the smallest will do.
    ridge = max(ridge, 1e-9)

    def penalised(at: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        loss, gradient, hessian = look(at)
        own = ridge * np.eye(len(at))
        return loss + ridge / 2 * (at @ at), gradient + ridge * at, hessian + own

    loss, gradient, hessian = penalised(at)
    for _ in range(_N_STEPS):
        step = cho_solve(cho_factor(hessian), gradient)
        expected = float(gradient @ step)
        size = 1.0
        for _ in range(_N_HALVINGS):
            nearer = penalised(at - size * step)
            if nearer[0] <= loss - 1e-4 * size * expected:
                break
            size /= 2
        else:
            return at
        gain, at = loss - nearer[0], at - size * step
        loss, gradient, hessian = nearer
        if gain < _LEAST_GAIN:
            break
    return at
