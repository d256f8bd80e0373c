"""Agreement between raters."""

from typing import Any

import numpy as np

from wassemble._checks import as_float_array, fail


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
    counts = np.asarray(as_float_array(counts, "counts"))
    if counts.ndim != 2:
        fail(f"`counts` must have shape (n_units, n_values); got {counts.shape}.")
    n_raters = counts.sum(axis=1)
    counts, n_raters = counts[n_raters > 1], n_raters[n_raters > 1]
    shares = counts / (n_raters - 1)[:, None]
    pairs = counts.T @ shares - np.diag(shares.sum(axis=0))
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
