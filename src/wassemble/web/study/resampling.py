"""Means over answers, and over resamples of the raters who gave them and the items they rate."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

__all__ = ["interval", "resample_means"]

_N_TOGETHER = 2_000_000  # weights computed at a time: bounds memory


def resample_means(
    table: np.ndarray, raters: np.ndarray, items: np.ndarray, *, n_resamples: int, seed: int
) -> np.ndarray:
    """Means of the table's columns in each resample (Owen 2007, the pigeonhole bootstrap).

    Raters are drawn with replacement, and items are drawn with replacement; an answer counts
    as often as its rater was drawn times as often as its item was drawn.

    Parameters
    ----------
    table : ndarray of shape (n_answers, n_columns)
        What is averaged.
    raters, items : ndarray of shape (n_answers,)
        Who gave each answer, and to what; counted from 0.
    n_resamples, seed : int
        How many resamples, and of which random numbers.

    Returns
    -------
    ndarray of shape (n_found, n_columns)
        One row for each resample with an answer in it: where raters saw different items, those
        of a draw may have seen none of its items.
    """
    rng = np.random.default_rng(seed)
    found = []
    n_left = n_resamples
    while n_left > 0:
        n_now = min(n_left, max(1, _N_TOGETHER // len(table)))
        n_left -= n_now
        weights = _draw(rng, raters, n_now) * _draw(rng, items, n_now)
        total = weights.sum(axis=1)
        some = total > 0
        found.append(weights[some] @ table / total[some, None])
    return np.concatenate(found)


def interval(
    value: float,
    draws: np.ndarray,
    *,
    n_groups: int,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float, float]:
    """A 95 % interval: Student's t with the spread of the draws, cut at the possible values.

    ``n_groups`` is the smaller of the numbers of raters and items. Percentiles of the draws
    would be too narrow where raters are few; these hold the truth as often as they say.
    """
    half = float(stats.t.ppf(0.975, n_groups - 1) * draws.std())
    return max(limits[0], value - half), min(limits[1], value + half)


def _draw(rng: np.random.Generator, groups: np.ndarray, n_resamples: int) -> np.ndarray:
    """How often the group of each answer is drawn, in each resample."""
    size = int(groups.max()) + 1
    counts = rng.multinomial(size, np.full(size, 1 / size), size=n_resamples)
    return counts[:, groups].astype(float)
