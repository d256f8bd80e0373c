"""From what a solve found to a consensus of histograms that is a histogram."""

from __future__ import annotations

from typing import Any

import numpy as np

from wassemble._arrays import Array, namespace, without_gradient
from wassemble.solvers import MassRule

__all__ = ["to_histograms"]


def to_histograms(found: Array, mass: MassRule | None, *, out: np.ndarray | None = None) -> Array:
    """Consensus of histograms, each row with mass 1; rows without mass stay without.

    Algorithm 2 raises what all models agree on to its exponent, f = mass_penalty /
    (mass_penalty + epsilon), which flattens it: rows are raised to 1 / f, so that models that
    agree are left as they are, and divided by their sums. ``mass`` None is for means, which
    flatten nothing.

    Examples
    --------
    >>> from wassemble import Unbalanced
    >>> to_histograms(np.array([0.9, 0.1]) ** 0.8, Unbalanced(0.8, epsilon=0.2))
    array([0.9, 0.1])
    """
    xp = namespace(found)
    exponent = 1.0 if mass is None else mass.exponent
    largest = without_gradient(xp.max(found, axis=-1))  # changes nothing but the range
    largest = xp.where(largest > 0, largest, 1.0)[..., None]
    shares: Any = found / largest if out is None else np.divide(found, largest, out=out)
    if exponent < 1:
        shares = shares ** (1 / exponent) if out is None else np.power(out, 1 / exponent, out=out)
    sums = xp.sum(shares, axis=-1)
    sums = xp.where(sums > 0, sums, 1.0)[..., None]
    return shares / sums if out is None else np.divide(out, sums, out=out)
