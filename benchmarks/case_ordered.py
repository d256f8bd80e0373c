"""Exact barycenters on a line beside a sort of the same numbers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import wassemble as ws
from benchmarks.measure import agree, race

# Rows cost the same each: as many as fit a test machine's memory twice.
N_SAMPLES, QUICK = 50_000, 5_000


def run(*, quick: bool) -> dict:
    """Seconds of a thread for 8 models and 100 labels, and of a sort of each row's numbers."""
    rng = np.random.default_rng(0)
    models = rng.dirichlet(np.full(100, 0.5), size=(8, QUICK if quick else N_SAMPLES))
    numbers = np.ascontiguousarray(np.moveaxis(models, 0, 1)).reshape(models.shape[1], -1)
    weights = rng.dirichlet(np.ones(8))
    _check(models[:, :100])

    def fuse(power: int, **given: Any) -> Any:
        return lambda: ws.LineBarycenter(power).fuse(models, n_threads=1, **given)

    contenders = {
        "sort": lambda: np.sort(numbers, axis=1),
        "arithmetic mean": lambda: ws.ARITHMETIC.fuse(models, n_threads=1),
        "median, equal weights": fuse(1),
        "median, weights": fuse(1, weights=weights),
        "mean of quantiles, equal weights": fuse(2),
        "mean of quantiles, weights": fuse(2, weights=weights),
    }
    found = race(contenders, n_rounds=3, clock=time.process_time)
    seconds = {name: each["seconds"] for name, each in found.items()}
    return {"n_samples": models.shape[1], "n_models": 8, "n_labels": 100, "seconds": seconds}


def _check(models: np.ndarray) -> None:
    """The median is NumPy's, and weights that differ by rounding change nothing."""
    below = np.median(np.cumsum(models, axis=2), axis=0)
    ours = np.cumsum(ws.LineBarycenter(1).fuse(models).scores, axis=1)
    agree({"NumPy": below[:, :-1], "ours": ours[:, :-1]}, rtol=0, atol=1e-9)
    nearly = np.full(8, 1 / 8) + np.linspace(-1e-12, 1e-12, 8)
    both = [ws.LineBarycenter(2).fuse(models, weights=w).scores for w in (None, nearly)]
    agree(dict(zip(("equal", "nearly"), both, strict=True)), rtol=0, atol=1e-9)
