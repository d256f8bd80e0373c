"""One sample at a time: 8 models, 80 labels, 5 sweeps."""

from __future__ import annotations

import numpy as np

import wassemble as ws
from benchmarks import peers
from benchmarks.measure import agree, race
from wassemble.solvers.plain_sweep import PlainSweep
from wassemble.solvers.problem import BarycenterProblem

MASS = ws.Unbalanced(2.0, epsilon=0.3)


def run(*, quick: bool) -> dict:
    """Seconds of one call, in float32 and float64."""
    rng = np.random.default_rng(0)
    timings = {}
    for dtype in (np.float32, np.float64):
        scores = rng.uniform(0.01, 1, size=(8, 1, 80)).astype(dtype)
        cost = rng.uniform(size=(80, 80)).astype(dtype)
        cost = (cost + cost.T) / 2
        kernel = ws.kernels.from_cost(cost, MASS.epsilon)

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
    return {"timings": timings, "profile": _profile(rng)}


def _profile(rng: np.random.Generator) -> dict[str, float]:
    """Where the time of one call goes, in seconds."""
    scores = rng.uniform(0.01, 1, size=(8, 80)).astype(np.float32)
    kernel = ws.kernels.DenseKernel(np.exp(-rng.uniform(size=(80, 80))).astype(np.float32))
    options = {"mass": MASS, "max_iterations": 5, "tolerance": None}
    problem = BarycenterProblem(scores, kernel, **options)
    tile = problem.tile(0, 1)
    rows, image = scores.copy(), np.empty_like(scores)
    sweep = PlainSweep(tile, MASS, None)
    timings = race(
        {
            "whole call": lambda: ws.fuse(scores, kernel=kernel, **options),
            "reading and checking": lambda: BarycenterProblem(scores, kernel, **options),
            "one sweep": lambda: sweep.step(watch=False),
            "its matrix products": lambda: [
                np.matmul(rows, kernel.to_dense(), out=image) for _ in range(2)
            ],
        },
        n_rounds=10,
        at_least=0.02,
    )
    return {name: timing["seconds"] for name, timing in timings.items()}
