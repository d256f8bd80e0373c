"""Bounds of the arithmetic and the geometric mean (the paper's propositions 2 and 3)."""

from __future__ import annotations

import numpy as np

from paper.record.findings import Claim
from wassemble.metrics import entropy, extended_kl
from wassemble.solvers import ARITHMETIC, GEOMETRIC

__all__ = ["mean_claims"]

_SLACK = 1e-9


def mean_claims(histograms: np.ndarray, truth: np.ndarray) -> list[Claim]:
    """For how many samples each bound holds, given histograms and the places of the truth."""
    n_models, _, n_labels = histograms.shape
    certain = np.eye(n_labels)[truth]
    arithmetic, geometric = (mean.fuse(histograms).consensus for mean in (ARITHMETIC, GEOMETRIC))
    each = np.stack([extended_kl(certain, h) for h in histograms])
    apart = [
        np.abs(histograms[i] - histograms[j]).sum(axis=1) for i in range(n_models) for j in range(i)
    ]
    bounds = {
        ("extended KL of the truth to the geometric mean is at most the models' mean", "2.2"): (
            extended_kl(certain, geometric) <= each.mean(axis=0) + _SLACK
        ),
        ("squared distance of the arithmetic mean to the truth is at most twice theirs", "3.2"): (
            np.square(arithmetic - certain).sum(axis=1)
            <= 2 * np.square(histograms - certain).sum(axis=2).mean(axis=0) + _SLACK
        ),
        (
            "entropy of the arithmetic mean is above theirs by the L1 distances (pairs once)",
            "3.3",
        ): (
            entropy(arithmetic)
            >= entropy(histograms).mean(axis=0)
            + np.square(apart).sum(axis=0) / n_models**2 / 2
            - _SLACK
        ),
    }
    return [
        Claim(
            statement,
            f"proposition {number}",
            bool(held.all()),
            f"{held.sum()} of {held.size} images",
        )
        for (statement, number), held in bounds.items()
    ]
