"""One sample at a time: 8 models, 80 labels, 5 sweeps."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import wassemble as ws
from benchmarks import peers
from benchmarks.measure import agree, race
from wassemble.solvers.plain_sweep import PlainSweep
from wassemble.solvers.problem import BarycenterProblem

MASS = ws.Unbalanced(2.0, epsilon=0.3)
RULE = ws.Barycenter(MASS, max_sweeps=5, tolerance=None)


def run(*, quick: bool) -> dict:
    """Seconds of one call, in float32 and float64."""
    timings = {}
    for dtype in (np.float32, np.float64):
        scores, cost = _draw(dtype)
        kernel = ws.kernels.from_cost(cost, MASS.epsilon)
        fuser = RULE.prepare(kernel, n_models=len(scores), dtype=dtype)

        def prepared(scores=scores, fuser=fuser):
            return fuser(scores)

        def from_scratch(scores=scores, kernel=kernel):
            return RULE.fuse(scores, kernel, holds="scores").scores[0]

        def pot(scores=scores[:, None], cost=cost):
            return peers.pot_loop(scores, cost, MASS, 5)[0]

        contenders = {"prepared": prepared, "from scratch": from_scratch, "POT": pot}
        agree({name: call() for name, call in contenders.items()}, rtol=2e-3)
        name = np.dtype(dtype).name
        timings |= race(
            {f"{contender}, {name}": call for contender, call in contenders.items()},
            n_rounds=10 if quick else 30,
            at_least=0.02,
            clock=time.process_time,  # one thread does all of it
        )
    return {"timings": timings, "profile": _profile()}


def _draw(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores, (n_models, n_labels), and squared distances of unit vectors."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(80, 50))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cost = np.square(vectors[:, None] - vectors).sum(axis=2)
    return rng.uniform(0.01, 1, size=(8, 80)).astype(dtype), cost.astype(dtype)


def _profile() -> dict[str, float]:
    """Where the time of one call goes, in seconds."""
    scores, cost = _draw(np.float32)
    kernel = ws.kernels.from_cost(cost, MASS.epsilon)
    fuser = RULE.prepare(kernel, n_models=len(scores), dtype=np.float32)
    rows, image = scores.copy(), np.empty_like(scores)
    sweep = PlainSweep(BarycenterProblem(scores, kernel, RULE).tile(0, 1), MASS, None)
    timings = race(
        {
            "prepared call": lambda: fuser(scores),
            "one sweep": lambda: sweep.step(watch=False),
            "its matrix products": lambda: [
                np.dot(rows, kernel.to_dense(), image) for _ in range(2)
            ],
        },
        n_rounds=10,
        at_least=0.02,
        clock=time.process_time,
    )
    return {name: timing["seconds"] for name, timing in timings.items()}
