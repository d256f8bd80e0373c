"""Agreement between raters."""

from typing import Any

import numpy as np

from wassemble._checks import as_float_array, fail
from wassemble.metrics.resamples import Resamples


def krippendorff_alpha(counts: Any, *, is_ordered: bool = False) -> float:
    """Krippendorff's alpha: 1 where raters agree, 0 where they agree as chance would.

    nan where no unit was rated twice, or all ratings are the same.

    Parameters
    ----------
    counts : array of shape (n_units, n_values)
        How many raters gave each unit each value.
    is_ordered : bool
        Whether values are grades, from the lowest to the highest (ordinal level); otherwise they
        are the same or they are not (nominal level).

    References
    ----------
    Krippendorff, Computing Krippendorff's alpha-reliability, 2011.

    Examples
    --------
    >>> krippendorff_alpha([[2, 0], [0, 2], [1, 1]])
    0.4444444444444444
    """
    counts, shares = _read_counts(counts)
    pairs = counts.T @ shares - np.diag(shares.sum(axis=0))
    return _alpha(pairs, is_ordered=is_ordered)


def alpha_on_resamples(
    counts: Any, groups: Any, *, is_ordered: bool = False, n_resamples: int = 1000, seed: int = 0
) -> tuple[float, np.ndarray]:
    """Krippendorff's alpha, and the same on resamples of groups of units.

    ``groups`` has the group of each unit, counted from 0: captions of one item are drawn together.
    """
    counts, shares = _read_counts(counts)
    by_unit = counts[:, :, None] * shares[:, None] - shares[:, :, None] * np.eye(counts.shape[1])
    pairs = np.zeros((np.max(groups) + 1, *by_unit.shape[1:]))
    np.add.at(pairs, np.asarray(groups), by_unit)
    resamples = Resamples.draw(len(pairs), n_resamples=n_resamples, seed=seed)
    drawn = [
        _alpha(each, is_ordered=is_ordered)
        for block in resamples.blocks()
        for each in np.tensordot(block, pairs, axes=1)
    ]
    return _alpha(pairs.sum(axis=0), is_ordered=is_ordered), np.array(drawn)


def _read_counts(counts: Any) -> tuple[np.ndarray, np.ndarray]:
    """How often each value was given, and the same as pairs with each of the other raters."""
    counts = np.asarray(as_float_array(counts, "counts"))
    if counts.ndim != 2:
        fail(f"`counts` must have shape (n_units, n_values); got {counts.shape}.")
    n_raters = counts.sum(axis=1, keepdims=True)
    return counts, np.divide(counts, n_raters - 1, out=np.zeros_like(counts), where=n_raters > 1)


def _alpha(pairs: np.ndarray, *, is_ordered: bool) -> float:
    """Alpha of pairs of values; nan where there is none, or all values are the same."""
    total = pairs.sum(axis=1)
    distance = _between_grades(total) if is_ordered else 1 - np.eye(len(total))
    chance = ((np.outer(total, total) - np.diag(total)) * distance).sum()
    if not chance > 0:
        return float("nan")
    return float(1 - (total.sum() - 1) * (pairs * distance).sum() / chance)


def _between_grades(n_given: np.ndarray) -> np.ndarray:
    """Squared numbers of ratings between each two grades, half of either grade's included."""
    rank = np.cumsum(n_given) - n_given / 2
    return np.asarray((rank[:, None] - rank) ** 2)
