"""The temperature of a consensus: how sure it is, without changing the order of its labels."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from wassemble._arrays import Array, namespace

# Before any sample, the logarithm of a temperature is normal around 0 with this precision: 19
# of 20 rules then lie within a factor of 2.4 of being as sure as they should be.
_PRIOR_PRECISION = 5.0
# Scores below this share of the row's largest count as this share.
_TINY = 1e-12
# Logarithms of temperatures that are tried.
_LOG_RANGE = (-6.0, 3.0)
_LOG_STEP = 0.5


def temper(scores: Array, temperature: float) -> Array:
    """Histograms raised to 1 / temperature and divided by their sums."""
    xp = namespace(scores)
    top = xp.max(scores, axis=1, keepdims=True)
    raised = (scores / xp.where(top > 0, top, 1.0)) ** (1 / temperature)
    sums = xp.sum(raised, axis=1, keepdims=True)
    return raised / xp.where(sums > 0, sums, 1.0)


def fit_temperature(
    scores: np.ndarray, truth: np.ndarray, sample_weight: np.ndarray | None = None
) -> float:
    """The temperature of least log-loss, held back towards 1 where samples are few.

    Where every sample is right, log-loss alone is least at a temperature of 0, and the first
    mistake on other samples then costs without bound. So this is the most probable temperature
    under a normal prior of its logarithm around 0. The log-likelihood grows with the number of
    samples and the prior does not: beside many samples it counts for nothing.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    truth : array of shape (n_samples,)
        Place of the true label.
    sample_weight : array of shape (n_samples,), optional
        A sample of weight 2 counts as two.
    """
    scores = np.nan_to_num(scores.astype(np.float64))
    weight = np.ones(len(scores)) if sample_weight is None else sample_weight
    # A true label without any mass must not decide: no temperature could mend it.
    kept = (scores[np.arange(len(scores)), truth] > 0) & (weight > 0)
    if not kept.any():
        return 1.0
    scores, truth, weight = scores[kept], truth[kept], weight[kept]
    top = scores.max(axis=1, keepdims=True)
    logs = np.log(np.maximum(scores / top, _TINY))
    logs_or_none = np.where(scores > 0, logs, -np.inf)
    own = weight @ logs[np.arange(len(logs)), truth]

    def minus_log_posterior(log_temperature: float) -> float:
        power = float(np.exp(-log_temperature))
        loss = weight @ np.log(np.exp(power * logs_or_none).sum(axis=1)) - power * own
        return float(loss + _PRIOR_PRECISION / 2 * log_temperature**2)

    # Of nearly uniform histograms there may be two minima: the better one is bracketed first.
    grid = np.arange(_LOG_RANGE[0], _LOG_RANGE[1] + _LOG_STEP, _LOG_STEP).tolist()
    start = min(grid, key=minus_log_posterior)
    bracket = (start - _LOG_STEP, start + _LOG_STEP)
    least = minimize_scalar(minus_log_posterior, bounds=bracket, method="bounded")
    # Histograms without doubt are the same at any temperature.
    return float(np.exp(least.x)) if least.fun < minus_log_posterior(0.0) else 1.0
