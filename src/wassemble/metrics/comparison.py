"""How sure the difference between two rules on the same samples is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._arrays import detached
from wassemble._checks import as_float_array, check_count, fail, refuse_names

__all__ = ["BootstrapResult", "paired_bootstrap"]

_N_DRAWS = 1_000_000
"""Samples drawn at a time: bounds the memory of a resample of many samples."""


@dataclass(frozen=True)
class BootstrapResult:
    """The difference between two rules, first minus second, and how far it can be trusted.

    Attributes
    ----------
    difference : float
        On the samples themselves.
    standard_error : float
        Standard deviation of the difference over the resamples.
    low, high : float
        Percentile interval over the resamples.
    p_better : float
        Share of the resamples in which the first is larger, equal ones counted half. Where
        smaller is better, 1 minus this.
    n_resamples : int
        Resamples in which the metric was defined.
    """

    difference: float
    standard_error: float
    low: float
    high: float
    p_better: float
    n_resamples: int


def paired_bootstrap(
    first: Any,
    second: Any,
    *,
    metric: Callable[[np.ndarray, np.ndarray], float] | None = None,
    truth: Any = None,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    groups: Any = None,
) -> BootstrapResult:
    """Difference between two rules with its interval (Efron and Tibshirani 1993, chapter 13).

    Samples are drawn with replacement, the same ones for both rules.

    Parameters
    ----------
    first, second : arrays of shape (n_samples,), or of shape (n_samples, ...) with ``metric``
        A value per sample, whose means are compared; or what ``metric`` takes.
    metric : callable, optional
        ``metric(scores, truth)``, computed anew on each resample: `mean_average_precision`
        for example, which is no mean over samples.
    truth : array of shape (n_samples, ...), optional
        Goes with ``metric``.
    n_resamples : int
    confidence : float
        Share of the resamples in the interval from ``low`` to ``high``.
    seed : int
    groups : array of shape (n_samples,), optional
        Samples of one group are drawn together: frames of a video, texts of an author.

    Examples
    --------
    >>> right_a, right_b = [1, 1, 1, 1, 1, 0, 1, 1], [1, 0, 1, 0, 1, 0, 0, 1]
    >>> found = paired_bootstrap(right_a, right_b)
    >>> found.difference, found.low, found.high
    (0.375, 0.125, 0.75)
    """
    check_count(n_resamples, "n_resamples", at_least=2)
    if not isinstance(confidence, float | int | np.number) or not 0 < confidence < 1:
        fail(f"`confidence` must be between 0 and 1; got {confidence!r}.")
    rng = np.random.default_rng(seed)
    if metric is None:
        if truth is not None:
            fail("`truth` must come with a `metric` that takes it; got it alone.")
        one, other = _read_values(first, "first"), _read_values(second, "second")
        if len(one) != len(other):
            fail(f"both rules must have the same samples; got {len(one)} and {len(other)}.")
        numbers = _read_groups(groups, len(one))
        difference, found = _of_means(one - other, numbers, n_resamples, rng)
    else:
        difference, found = _of_metric(first, second, truth, metric, groups, n_resamples, rng)
    found = found[~np.isnan(found)]
    if len(found) < 2:
        fail(f"`metric` must be a number on some resamples; got nan on all but {len(found)}.")
    low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
    return BootstrapResult(
        difference,
        float(found.std(ddof=1)),
        float(low),
        float(high),
        float((found > 0).mean() + (found == 0).mean() / 2),
        len(found),
    )


def _of_means(
    values: np.ndarray, groups: np.ndarray | None, n_resamples: int, rng: np.random.Generator
) -> tuple[float, np.ndarray]:
    """Mean of ``values``, and of each resample."""
    n_samples, sizes = len(values), None
    if groups is not None:
        sizes, values = np.bincount(groups), np.bincount(groups, weights=values)
    n_drawn = max(1, _N_DRAWS // len(values))
    found = []
    for start in range(0, n_resamples, n_drawn):
        drawn = rng.integers(len(values), size=(min(n_drawn, n_resamples - start), len(values)))
        n_each = n_samples if sizes is None else sizes[drawn].sum(axis=1)
        found.append(values[drawn].sum(axis=1) / n_each)
    return float(values.sum() / n_samples), np.concatenate(found)


def _of_metric(
    first: Any,
    second: Any,
    truth: Any,
    metric: Callable[[np.ndarray, np.ndarray], float],
    groups: Any,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[float, np.ndarray]:
    """Difference in ``metric`` on the samples, and on each resample."""
    if truth is None:
        fail("`truth` must be given with `metric`; got none.")
    for name, each in {"first": first, "second": second, "truth": truth}.items():
        refuse_names(each, name)
    arrays = [np.asarray(detached(each)) for each in (first, second, truth)]
    if len({array.shape[:1] for array in arrays}) > 1 or not arrays[0].shape:
        fail(
            "`first`, `second` and `truth` must hold the same samples; got shapes"
            f" {', '.join(str(array.shape) for array in arrays)}."
        )
    n_samples = len(arrays[0])
    if not n_samples:
        fail("`first` must hold at least one sample; got none.")

    def differ(rows: Any) -> float:
        one, other, true = (array[rows] for array in arrays)
        return float(metric(one, true)) - float(metric(other, true))

    difference = differ(slice(None))
    if not np.isfinite(difference):
        fail(f"`metric` must be finite on all samples; their difference is {difference}.")
    numbers = _read_groups(groups, n_samples)
    if numbers is None:
        found = [differ(rng.integers(n_samples, size=n_samples)) for _ in range(n_resamples)]
    else:
        order = np.argsort(numbers, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(numbers))[:-1])
        draws = (rng.integers(len(members), size=len(members)) for _ in range(n_resamples))
        found = [differ(np.concatenate([members[g] for g in drawn])) for drawn in draws]
    return difference, np.array(found)


def _read_values(values: Any, name: str) -> np.ndarray:
    array = detached(as_float_array(values, name)).astype(np.float64)
    if array.ndim != 1 or not len(array):
        fail(
            f"`{name}` must hold one value per sample; got shape {array.shape}.",
            hint="`metric` and `truth` compare scores",
        )
    if not np.isfinite(array).all():
        sample = int((~np.isfinite(array)).argmax())
        fail(f"`{name}` must be finite; got {array[sample]} at sample {sample}.")
    return array


def _read_groups(groups: Any, n_samples: int) -> np.ndarray | None:
    """Number of each sample's group, counted from 0."""
    if groups is None:
        return None
    refuse_names(groups, "groups")
    names = np.asarray(groups)
    if names.shape != (n_samples,):
        fail(
            f"`groups` must hold one group for each of the {n_samples} samples;"
            f" got shape {names.shape}."
        )
    return np.unique(names, return_inverse=True)[1]
