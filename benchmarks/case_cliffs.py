"""What is hard to converge, beside the usual: time against it, and how rows end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import wassemble as ws
from benchmarks.measure import race
from wassemble.solvers.native_sweep import find_native

USUAL = "epsilon .1"


def run(*, quick: bool) -> dict:
    """Seconds of the processor on one thread, and the statuses, of 8 models over 80 labels."""
    n_samples = 20 if quick else 100
    natives = {} if find_native() is None else {"native": "1"}
    found = {}
    for name, native in {**natives, "NumPy": "0"}.items():
        with _sweeps(native):
            found[name] = _measure(n_samples)
    return {"n_samples": n_samples, "combinations": found}


@contextmanager
def _sweeps(native: str) -> Iterator[None]:
    """Native sweeps or those of NumPy."""
    before = os.environ.get("WASSEMBLE_NATIVE")
    if native == "0" or before == "0":
        os.environ["WASSEMBLE_NATIVE"] = native
    try:
        yield
    finally:
        os.environ.pop("WASSEMBLE_NATIVE", None)
        if before is not None:
            os.environ["WASSEMBLE_NATIVE"] = before


def _measure(n_samples: int) -> list[dict[str, Any]]:
    cases = _cases(n_samples)
    timings = race(cases, n_rounds=3, clock=time.process_time)  # type: ignore[arg-type]
    rows = []
    for name, solve in cases.items():
        result = solve()
        rows.append(
            {
                "case": name,
                "ratio": timings[name]["seconds"] / timings[USUAL]["seconds"],
                "sweeps": float(result.n_sweeps.mean()),
                "converged": float(result.converged.mean()),
                "cannot_meet": float((result.status == ws.Status.UNREACHABLE_MASS).mean()),
            }
        )
    return rows


def _cases(n_samples: int) -> dict[str, Callable[[], ws.BarycenterResult]]:
    rng = np.random.default_rng(0)
    histograms = rng.dirichlet(np.full(80, 0.5), size=(8, n_samples))
    vectors = rng.normal(size=(80, 3))
    cost = ((vectors[:, None] - vectors) ** 2).sum(axis=-1)
    cost /= np.median(cost)

    def pose(kernel: ws.kernels.Kernel, *rule: ws.Barycenter) -> Callable[[], ws.BarycenterResult]:
        return partial(ws.solve_barycenter, histograms, kernel, *rule, n_threads=1)

    epsilons = {".1": 0.1, ".03": 0.03, ".01": 0.01, ".003": 0.003}
    return {
        **{f"epsilon {n}": pose(ws.kernels.from_cost(cost, e)) for n, e in epsilons.items()},
        **{
            f"band of {2 * width + 1} labels, sparse": pose(_band(80, width))
            for width in (20, 10, 3)
        },
        "mass_penalty 2000, epsilon .3": pose(
            ws.kernels.from_cost(cost, 0.3), ws.Barycenter(ws.Unbalanced(2000.0, epsilon=0.3))
        ),
        "mass_penalty 2000, epsilon .03": pose(
            ws.kernels.from_cost(cost, 0.03), ws.Barycenter(ws.Unbalanced(2000.0, epsilon=0.03))
        ),
    }


def _band(n_labels: int, width: int) -> ws.kernels.SparseKernel:
    """A kernel that joins labels at most ``width`` apart."""
    apart = np.abs(np.arange(n_labels)[:, None] - np.arange(n_labels))
    similar = np.where(apart <= width, np.exp(-((apart / width) ** 2)), 0)
    return ws.kernels.SparseKernel(sp.csr_array(similar))
