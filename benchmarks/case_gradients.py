"""Consensus and gradient of torch tensors beside the sweeps as one writes them in torch."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import wassemble as ws
from benchmarks import peers
from benchmarks.measure import agree, race

# Samples and sweeps; torch keeps every sweep: 50 of 2,000 samples would take gigabytes.
SIZES = ((64, 5), (64, 50), (200, 50), (2_000, 5))
QUICK = ((64, 5),)


def run(*, quick: bool) -> dict:
    """Seconds of both for each size, type, epsilon and mass, on one thread and on all."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(80, 50))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cost = np.square(vectors[:, None] - vectors).sum(axis=2)
    rows = []
    for (n_samples, n_sweeps), dtype, epsilon in itertools.product(
        QUICK if quick else SIZES, ("float32", "float64"), (0.3, 0.05)
    ):
        histograms = rng.dirichlet(np.full(80, 0.5), size=(8, n_samples)) + 1e-4
        histograms /= histograms.sum(axis=-1, keepdims=True)
        for mass in (ws.Balanced(), ws.Unbalanced(2.0, epsilon=epsilon)):
            rule = ws.Barycenter(mass, max_sweeps=n_sweeps, tolerance=None)
            found = _compare(histograms.astype(dtype), np.exp(-cost / epsilon).astype(dtype), rule)
            kind = type(mass).__name__.lower()
            told = {"n_samples": n_samples, "n_sweeps": n_sweeps, "dtype": dtype}
            rows.append(told | {"epsilon": epsilon, "mass": kind} | found)
    return {"rows": rows}


def _compare(histograms: np.ndarray, matrix: np.ndarray, rule: ws.Barycenter) -> dict[str, Any]:
    """Seconds of ours and of torch's lines, after their gradients were found to agree."""
    import torch

    inputs = torch.tensor(histograms, requires_grad=True), torch.tensor(matrix, requires_grad=True)
    asked = torch.linspace(-1, 1, matrix.shape[1], dtype=inputs[0].dtype)

    def gradients(consensus: Callable[[], Any]) -> tuple[Any, ...]:
        return torch.autograd.grad((consensus() * asked).sum(), inputs)

    def lines() -> Any:
        return peers.whole_batch(torch, *inputs, rule.mass, rule.max_sweeps)

    calls = {
        "ours": lambda: gradients(lambda: rule.fuse(*inputs).scores),
        "lines": lambda: gradients(lines),
    }
    single = histograms.dtype == np.float32
    found = {name: [np.asarray(each) for each in call()] for name, call in calls.items()}
    gaps = [
        agree(
            {name: each[place] for name, each in found.items()},
            rtol=1e-3 if single else 1e-8,
            atol=(1e-4 if single else 1e-10) * float(np.abs(found["lines"][place]).max()),
        )
        for place in range(len(inputs))
    ]
    with _one_thread():
        alone = race(calls, n_rounds=3, at_least=0.05, clock=time.process_time)
    together = race(calls, n_rounds=3, at_least=0.05)
    return {
        "agreement": max(gaps),
        **{name: timing["seconds"] for name, timing in alone.items()},
        **{f"{name}, all threads": timing["seconds"] for name, timing in together.items()},
    }


@contextmanager
def _one_thread() -> Any:
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(n_threads)
