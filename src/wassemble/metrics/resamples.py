"""Samples drawn with replacement, the same ones for everything that is compared."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import stdtrit

from wassemble._checks import check_count, fail, refuse_names
from wassemble.metrics.arguments import read_sample_weight

MOST_DRAWS = 20_000_000
"""Counts of samples at a time: bounds memory."""


@dataclass(frozen=True, eq=False)
class Resamples:
    """How often each sample is drawn in each resample: as often as all its groups multiplied."""

    n_samples: int
    counts: tuple[np.ndarray, ...]  # (n_resamples, n_groups) each: how often each group is drawn
    # (n_samples,) for each of the counts: the group of each sample; None where it is its own.
    groups: tuple[np.ndarray | None, ...]

    @classmethod
    def draw(
        cls,
        n_samples: int,
        *groups: Any,
        sample_weight: Any = None,
        n_resamples: int = 1000,
        seed: int = 0,
    ) -> Resamples:
        """Draw as many samples, or groups, as there are (Efron and Tibshirani 1993).

        Parameters
        ----------
        n_samples : int
        *groups : array of shape (n_samples,)
            Samples of one group are drawn together: frames of a video, texts of an author.
            Several ways to group, as raters and items, are drawn apart, and a sample counts
            as often as its rater was drawn times its item (Owen 2007, pigeonhole bootstrap).
        sample_weight : array of shape (n_samples,), optional
            Samples are drawn in proportion to it; not with ``groups``.
        n_resamples, seed : int

        Examples
        --------
        >>> Resamples.draw(3, n_resamples=2, seed=1).counts[0]
        array([[1., 2., 0.],
               [0., 3., 0.]])
        """
        check_count(n_resamples, "n_resamples", at_least=2)
        rng = np.random.default_rng(check_count(seed, "seed", at_least=0))
        if not groups:
            shares = np.full(n_samples, 1 / n_samples)
            if sample_weight is not None:
                weight = read_sample_weight(sample_weight, n_samples)
                shares = weight / weight.sum()
            return cls(n_samples, (_draw(rng, shares, n_resamples),), (None,))
        if sample_weight is not None:
            fail("`sample_weight` must not be given with `groups`; got both.")
        numbers = tuple(_read_groups(each, n_samples) for each in groups)
        sizes = [int(each.max()) + 1 for each in numbers]
        counts = tuple(_draw(rng, np.full(size, 1 / size), n_resamples) for size in sizes)
        return cls(n_samples, counts, numbers)

    def __len__(self) -> int:
        return len(self.counts[0])

    def blocks(self) -> Iterator[np.ndarray]:
        """How often each sample is drawn, ``(n_now, n_samples)``, some resamples at a time."""
        n_now = max(1, MOST_DRAWS // self.n_samples)
        for start in range(0, len(self), n_now):
            rows = slice(start, start + n_now)
            pairs = zip(self.counts, self.groups, strict=True)
            yield reduce(
                np.multiply,
                [each[rows] if group is None else each[rows][:, group] for each, group in pairs],
            )

    def means(self, values: np.ndarray) -> np.ndarray:
        """Mean of each column on each resample; nan where no sample is drawn.

        ``(n_samples,)`` to ``(n_resamples,)``, or ``(n_samples, n_columns)`` likewise.
        """
        blocks, sizes = self.blocks(), np.ones(self.n_samples)
        if len(self.groups) == 1 and (group := self.groups[0]) is not None:
            # What a group sums up to is drawn with it, and there are fewer groups than samples.
            members = sp.csr_array((sizes, (group, np.arange(self.n_samples))))
            blocks, sizes, values = iter(self.counts), members @ sizes, members @ values
        drawn = [(counts @ sizes, counts @ values) for counts in blocks]
        totals, sums = (np.concatenate(each) for each in zip(*drawn, strict=True))
        totals[totals == 0] = np.nan
        return sums / totals.reshape(-1, *(1,) * (sums.ndim - 1))


def percentile_interval(drawn: np.ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """The middle of the values on resamples; those that are nan are left out.

    Examples
    --------
    >>> percentile_interval(np.arange(101.0), 0.9)
    (5.0, 95.0)
    """
    tail = round((1 - confidence) / 2, 12)
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return math.nan, math.nan
    low, high = np.quantile(known, [tail, 1 - tail])
    return float(low), float(high)


def student_interval(
    value: float,
    drawn: np.ndarray,
    *,
    n_groups: int,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[float, float]:
    """A 95 % interval: Student's t with the spread of the resamples, cut at possible values.

    ``n_groups`` is the number of groups drawn, the smaller one of two ways to group.
    Percentiles would be too narrow where groups are few; these hold the truth as often as
    they say.
    """
    half = float(stdtrit(n_groups - 1, 0.975) * np.nanstd(drawn))
    return max(limits[0], value - half), min(limits[1], value + half)


def wilson_interval(share: Any, n_samples: Any) -> tuple[Any, Any]:
    """A 95 % interval of a share (Wilson 1927), of positive width even where all agree."""
    near = 1.96  # standard errors on either side
    n = np.maximum(n_samples, 1)
    middle = (share + near**2 / (2 * n)) / (1 + near**2 / n)
    spread = np.sqrt(share * (1 - share) / n + near**2 / (4 * n**2)) * near / (1 + near**2 / n)
    return middle - spread, middle + spread


def _draw(rng: np.random.Generator, shares: np.ndarray, n_resamples: int) -> np.ndarray:
    # As float64, which is what a product with values needs.
    return rng.multinomial(len(shares), shares, size=n_resamples).astype(np.float64)


def _read_groups(groups: Any, n_samples: int) -> np.ndarray:
    """Number of each sample's group, counted from 0."""
    refuse_names(groups, "groups")
    names = np.asarray(groups)
    if names.shape != (n_samples,):
        fail(
            f"`groups` must hold one group for each of the {n_samples} samples;"
            f" got shape {names.shape}."
        )
    return np.unique(names, return_inverse=True)[1]
