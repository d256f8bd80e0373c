"""Means over one label set: the simple rules that every barycenter is measured against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wassemble._arrays import Array, convert_like, detached, find_torch, new_zeros
from wassemble._checks import as_float_array, check_nonnegative, check_weights_sum, fail
from wassemble.solvers.histograms import Histograms, listed
from wassemble.solvers.power_means import power_mean_of, take_rows, with_three_axes
from wassemble.solvers.tiles import rows_per_tile, run_tiles

__all__ = ["arithmetic_mean", "check_weights", "geometric_mean", "hellinger_mean", "power_mean"]


def arithmetic_mean(histograms: Sequence[Any] | Array, *, weights: Any = None) -> Array:
    """Weighted arithmetic mean: rewards a model's confidence.

    Parameters
    ----------
    histograms : array of shape (n_models, n_samples, n_labels), or one array per model
        Non-negative. A single sample may drop the sample axis.
    weights : array, optional
        On the simplex over models; uniform if not given. Of shape (n_models,),
        (n_models, n_labels), (n_models, n_samples, 1) or (n_models, n_samples, n_labels).

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
    like = find_torch(histograms, weights)
    data = Histograms(histograms, like)
    if len(set(data.n_labels)) > 1 or data.n_labels[0] == 0:
        fail(
            "a mean needs the same label set, not empty, from every model;"
            f" got {listed(data.n_labels)} labels.",
            hint="label sets that differ need kernels: `solve_barycenter`",
        )
    n_labels = data.n_labels[0]
    mean = new_zeros((data.n_samples, n_labels), like, data.dtype)
    found = check_weights(weights, data.n_models, n_labels, like=mean, n_samples=data.n_samples)
    say = with_three_axes(found)
    models = range(data.n_models)

    def average(start: int, stop: int) -> None:
        rows = data.read(models, start, stop)
        own = take_rows(say, slice(start, stop))
        mean[start:stop] = power_mean_of(rows, own, order=order)

    if like is None:
        n_rows = rows_per_tile(data.n_models, n_labels, one_pass=True)
        run_tiles(average, data.n_samples, n_rows, None)
    else:
        average(0, data.n_samples)
    return mean[0] if data.drops_sample_axis else mean


def check_weights(
    weights: Any,
    n_models: int,
    n_target: int,
    *,
    like: Array,
    whole: bool = True,
    n_samples: int | None = None,
) -> Array:
    """Weights on the simplex over models, in ``like``'s library.

    One per model, per model and target label or, with ``n_samples``, per model and sample
    or per model, sample and target label. Only a ``whole`` set of models has weights that
    sum to 1.
    """
    if weights is None:
        return convert_like(np.full(n_models, 1 / n_models), like, like.dtype)
    weights = as_float_array(weights, "weights", like=like)
    shape = tuple(weights.shape)
    shapes = [(n_models,), (n_models, n_target)]
    if n_samples is not None:
        shapes += [(n_models, n_samples, 1), (n_models, n_samples, n_target)]
    if shape not in shapes:
        per_sample = f"({n_models}, {n_samples}, 1) or ({n_models}, {n_samples}, {n_target})"
        also = "" if n_samples is None else f" (per sample: {per_sample})"
        fail(
            f"`weights` must have shape ({n_models},), one per model, or ({n_models}, {n_target}),"
            f" one per model and target label{also}; got {shape}."
        )
    place = ("model {}", "model {}, target label {}", "model {}, sample {}, target label {}")
    check_nonnegative(weights, "weights", place[weights.ndim - 1].format)
    if whole:
        check_weights_sum(detached(weights))
    return weights
