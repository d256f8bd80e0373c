"""A measure for figures that are there already, one number for each sample."""

from __future__ import annotations

import numpy as np

from wassemble.ensemble.learning.measure import Measure

__all__ = ["PER_SAMPLE"]

PER_SAMPLE = Measure(
    "mean over samples",
    lambda figures, _, weights: float(np.average(figures, weights=weights)),
    lambda figures, _: figures,
)
