"""Means over one label set: the simple rules that every barycenter is measured against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wassemble._arrays import Array, convert_like, detached, find_torch, log_of, namespace
from wassemble._checks import as_float_array, check_nonnegative, check_weights_sum, fail

__all__ = [
    "arithmetic_mean",
    "check_weights",
    "geometric_mean",
    "hellinger_mean",
    "log_power_mean",
    "power_mean",
]

# Below this order sum(w * x^order) is too close to 1 for its logarithm to be exact.
_SMALL_ORDER = 1e-3


def arithmetic_mean(histograms: Sequence[Any] | Array, *, weights: Any = None) -> Array:
    """Weighted arithmetic mean: rewards a model's confidence.

    Parameters
    ----------
    histograms : array of shape (n_models, n_samples, n_labels), or one array per model
        Non-negative. A single sample may drop the sample axis.
    weights : array of shape (n_models,) or (n_models, n_labels), optional
        On the simplex; uniform if not given.

    Returns
    -------
    mean : array of shape (n_samples, n_labels)

    Examples
    --------
    >>> arithmetic_mean([[0.9, 0.1], [0.5, 0.5]])
    array([0.7, 0.3])
    """
    return power_mean(histograms, weights=weights, order=1.0)


def geometric_mean(histograms: Sequence[Any] | Array, *, weights: Any = None) -> Array:
    """Weighted geometric mean: seeks what all models agree on; a zero is a veto.

    Not divided by its sum. Parameters as in `arithmetic_mean`.

    Examples
    --------
    >>> geometric_mean([[0.9, 0.1], [0.4, 0.4]]).round(6)
    array([0.6, 0.2])
    """
    return power_mean(histograms, weights=weights, order=0.0)


def hellinger_mean(histograms: Sequence[Any] | Array, *, weights: Any = None) -> Array:
    """Weighted mean of square roots, squared: what Algorithm 2 with K = I tends to.

    Parameters as in `arithmetic_mean`.

    Examples
    --------
    >>> hellinger_mean([[0.81, 0.09], [0.25, 0.25]])
    array([0.49, 0.16])
    """
    return power_mean(histograms, weights=weights, order=0.5)


def power_mean(histograms: Sequence[Any] | Array, *, order: float, weights: Any = None) -> Array:
    """Weighted power mean: order 1 is arithmetic, 0 geometric, 1/2 Hellinger.

    Parameters
    ----------
    order : float
        At least 0. Other parameters as in `arithmetic_mean`.

    Examples
    --------
    >>> power_mean([[1.0, 0.0], [4.0, 4.0]], order=0.5)
    array([2.25, 1.  ])
    """
    if not (isinstance(order, int | float) and math.isfinite(order) and order >= 0):
        fail(f"`order` must be finite and at least 0; got {order!r}.")
    stacked = _stack(histograms, weights)
    xp = namespace(stacked)
    per_model = check_weights(weights, stacked.shape[0], stacked.shape[-1], like=stacked)
    if per_model.ndim < stacked.ndim:  # a sample axis, and a label axis if there is none yet
        n_models, *labels = per_model.shape
        per_model = xp.reshape(
            per_model, (n_models, *[1] * (stacked.ndim - per_model.ndim), *labels)
        )
    if order == 1:
        return xp.sum(per_model * stacked, axis=0)
    return xp.exp(log_power_mean(log_of(stacked), per_model, order=order))


def _stack(histograms: Sequence[Any] | Array, weights: Any) -> Array:
    """Histograms of one label set as one array, models first."""
    like = find_torch(histograms, weights)
    try:
        arrays = [as_float_array(h, "histograms", like=like) for h in histograms]
    except TypeError:
        fail(f"`histograms` must be one array per model; got {type(histograms).__name__}.")
    if not arrays:
        fail("`histograms` must hold at least one model; got none.")
    shapes = {tuple(a.shape) for a in arrays}
    if len(shapes) > 1 or arrays[0].ndim not in (1, 2) or arrays[0].shape[-1] == 0:
        fail(
            "a mean needs the same label set from every model, (n_samples, n_labels);"
            f" got shapes {', '.join(map(str, sorted(shapes)))}.",
            hint="label sets that differ need kernels: `solve_barycenter`",
        )
    stacked = namespace(arrays[0]).stack(arrays)
    place = "model {}, label {}" if stacked.ndim == 2 else "model {}, sample {}, label {}"
    check_nonnegative(stacked, "histograms", place.format)
    return stacked


def check_weights(weights: Any, n_models: int, n_target: int, *, like: Array) -> Array:
    """Weights on the simplex, per model or per model and target label, in ``like``'s library."""
    if weights is None:
        return convert_like(np.full(n_models, 1 / n_models), like, like.dtype)
    weights = as_float_array(weights, "weights", like=like)
    shape = tuple(weights.shape)
    if shape not in ((n_models,), (n_models, n_target)):
        fail(
            f"`weights` must have shape ({n_models},), one per model, or ({n_models}, {n_target}),"
            f" one per model and target label; got {shape}."
        )
    place = "model {}" if weights.ndim == 1 else "model {}, target label {}"
    check_nonnegative(weights, "weights", place.format)
    check_weights_sum(detached(weights))
    return weights


def log_power_mean(log_images: Array, weights: Array, *, order: float) -> Array:
    """Weighted power mean over the first axis, in logs on both ends.

    ``order`` 0 is the geometric mean (Alg. 1, line p), 1 the arithmetic mean;
    ``epsilon / (epsilon + mass_penalty)`` is Alg. 2, line p. ``weights`` broadcast
    against ``log_images``.
    """
    xp = namespace(log_images)
    # A model with weight zero must not veto a label it scores zero: 0 * -inf is nan.
    votes = (log_images > -xp.inf) & (weights > 0)
    finite = xp.where(votes, log_images, 0.0)
    if order == 0:
        vetoed = xp.any(~votes & (weights > 0), axis=0)
        return xp.where(vetoed, -xp.inf, xp.sum(weights * finite, axis=0))
    top = xp.max(xp.where(votes, log_images, -xp.inf), axis=0)
    any_vote = top > -xp.inf
    top = xp.where(any_vote, top, 0.0)
    below = xp.where(votes, order * (finite - top), 0.0)
    if order < _SMALL_ORDER:
        # log(sum w e^x) = log1p(sum w (e^x - 1)) because the weights sum to 1.
        terms = xp.where(votes, xp.expm1(below), -1.0)
        total = xp.log1p(xp.sum(weights * terms, axis=0))
    else:
        terms = xp.where(votes, xp.exp(below), 0.0)
        total = log_of(xp.sum(weights * terms, axis=0))
    return xp.where(any_vote, top + total / order, -xp.inf)
