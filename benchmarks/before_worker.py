"""What `case_before.py` measures with the library of each age: only what both of them know."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import scipy.sparse as sp

import wassemble as ws


def measure(*, quick: bool) -> dict[str, float]:
    """Seconds of the best of some calls."""
    cases = {
        "converged": _converged(30 if quick else 2_000),
        "words": _words(2_000 if quick else 10_096),
        "usual": _usual(20 if quick else 100),
    }
    return {name: _best(call) for name, call in cases.items()}


def _converged(n_samples: int):
    """Algorithm 1 at epsilon .1 to a tolerance of 1e-6, as in `case_epsilons.py`."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(80, 50))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cost = np.square(vectors[:, None] - vectors).sum(axis=2)
    histograms = np.random.default_rng(1).dirichlet(np.full(80, 0.5), size=(8, n_samples))
    kernel = ws.kernels.from_cost(cost, 0.1)
    rule = ws.Barycenter(max_sweeps=20_000, tolerance=1e-6)
    return lambda: ws.solve_barycenter(histograms, kernel, rule)


def _words(n_words: int):
    """Five sweeps of 5 models x 5 beams, 50 neighbours a word, as in `case_captioning.py`."""
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(n_words, 0.5), size=(5, 5)).astype(np.float32) + np.float32(1e-9)
    rows = np.repeat(np.arange(n_words), 49)
    columns, values = rng.integers(n_words, size=len(rows)), rng.uniform(0.05, 0.5, len(rows))
    matrix = sp.csr_array((values.astype(np.float32), (rows, columns)), shape=(n_words, n_words))
    kernel = ws.kernels.SparseKernel(matrix + sp.eye_array(n_words, dtype=np.float32))
    rule = ws.Barycenter(max_sweeps=5, tolerance=None)
    return lambda: ws.fuse(words, kernel=kernel, rule=rule, normalize=True)


def _usual(n_samples: int):
    """What `case_cliffs.py` calls the usual, on one thread."""
    rng = np.random.default_rng(0)
    histograms = rng.dirichlet(np.full(80, 0.5), size=(8, n_samples))
    vectors = rng.normal(size=(80, 3))
    cost = ((vectors[:, None] - vectors) ** 2).sum(axis=-1)
    kernel = ws.kernels.from_cost(cost / np.median(cost), 0.1)
    return lambda: ws.solve_barycenter(histograms, kernel, n_threads=1)


def _best(call) -> float:
    call()
    times = []
    for _ in range(5):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


if __name__ == "__main__":
    print(json.dumps(measure(quick="quick" in sys.argv[1:])))
