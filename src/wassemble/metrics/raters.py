"""Agreement between raters."""

from typing import Any

import numpy as np

from wassemble._checks import as_float_array, fail


def krippendorff_alpha(counts: Any, points: Any = None) -> float:
    """Krippendorff's alpha: 1 where raters agree, 0 where they agree as chance would.

    nan where no unit was rated twice, or all ratings are the same.

    Parameters
    ----------
    counts : array of shape (n_units, n_values)
        How many raters gave each unit each value.
    points : array of shape (n_values,), optional
        Where the values lie on a line, whose squared distances count (interval level); without,
        values are the same or they are not (nominal level).

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
    n_values = counts.shape[1]
    distance = 1 - np.eye(n_values)
    if points is not None:
        point = np.asarray(as_float_array(points, "points"))
        distance = (point[:, None] - point) ** 2
    pairs = counts.T @ (counts / (n_raters - 1)[:, None])
    pairs -= np.diag((counts / (n_raters - 1)[:, None]).sum(axis=0))
    total = pairs.sum(axis=1)
    expected = np.outer(total, total) - np.diag(total)
    chance = (expected * distance).sum()
    if not chance > 0:
        return float("nan")
    return float(1 - (total.sum() - 1) * (pairs * distance).sum() / chance)
