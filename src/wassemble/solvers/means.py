"""Means over one label set: the simple rules that every barycenter is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wassemble._arrays import Array
from wassemble.solvers.rules import PowerMean

__all__ = ["arithmetic_mean", "geometric_mean", "hellinger_mean", "power_mean"]


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
    fused = PowerMean(order).fuse(histograms, weights=weights, holds="scores")
    return fused.scores[0] if fused.drops_sample_axis else fused.scores
