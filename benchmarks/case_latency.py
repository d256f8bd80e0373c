"""One sample at a time: 8 models, 80 labels, 5 sweeps."""

from __future__ import annotations

import numpy as np

import wassemble as ws
from benchmarks import peers
from benchmarks.measure import agree, race

TITLE = "One sample at a time"
MASS = ws.Unbalanced(2.0, epsilon=0.3)


def run(*, quick: bool) -> dict:
    """Seconds of one call, in float32 and float64."""
    rng = np.random.default_rng(0)
    timings = {}
    for dtype in (np.float32, np.float64):
        scores = rng.uniform(0.01, 1, size=(8, 1, 80)).astype(dtype)
        cost = rng.uniform(size=(80, 80)).astype(dtype)
        cost = (cost + cost.T) / 2
        kernel = peers.kernel_of(cost, MASS.epsilon)

        def ours(scores=scores[:, 0], kernel=kernel):
            return ws.fuse(scores, kernel=kernel, mass=MASS, max_iterations=5, tolerance=None)

        def pot(scores=scores, cost=cost):
            return peers.pot_loop(scores, cost, MASS, 5)[0]

        agree({"wassemble": ours(), "POT": pot()}, rtol=2e-3)
        name = np.dtype(dtype).name
        timings |= race(
            {f"wassemble, {name}": ours, f"POT, {name}": pot},
            n_rounds=10 if quick else 30,
            at_least=0.05,
        )
    return {"timings": timings}
