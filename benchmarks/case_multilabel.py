"""The paper's timing table: 35,150 samples, 8 models, 80 labels, Algorithm 2."""

from __future__ import annotations

import numpy as np

import wassemble as ws
from benchmarks import peers
from benchmarks.measure import agree, once, race

MASS = ws.Unbalanced(2.0, epsilon=0.3)
# Seconds for the whole test set in the paper's timing table, by sweeps (V100, K80).
PAPER = {1: (36.742, 38.954), 5: (135.950, 152.987), 10: (249.775, 302.254)}


def run(*, quick: bool) -> dict:
    """Seconds of each rule and peer, and of the kernel as a diagonal."""
    import torch

    n_samples, n_rounds = (6_000, 5) if quick else (35_150, 7)
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.001, 1, size=(8, n_samples, 80)).astype(np.float32)
    cost = rng.uniform(size=(80, 80))
    cost = ((cost + cost.T) / 2).astype(np.float32)
    np.fill_diagonal(cost, 0)
    kernel = ws.kernels.from_cost(cost, MASS.epsilon)
    matrix = kernel.to_dense()
    tensors = torch.from_numpy(scores), torch.from_numpy(np.array(matrix))
    diagonal = ws.kernels.DiagonalKernel(
        rng.uniform(0.3, 1, size=(n_samples, 80)).astype(np.float32)
    )

    def ours(n_sweeps, kernel=kernel, **options):
        rule = ws.Barycenter(MASS, max_sweeps=n_sweeps, tolerance=None)
        return ws.fuse(scores, kernel=kernel, rule=rule, kind="multilabel", **options)

    gap = agree(
        {
            "wassemble": ours(5),
            "NumPy, whole batch": peers.whole_batch(np, scores, matrix, MASS, 5),
            "torch, whole batch": peers.whole_batch(torch, *tensors, MASS, 5).numpy(),
        },
        rtol=2e-3,
    )
    some = np.arange(0, n_samples, n_samples // 50)
    gap_pot = agree(
        {"wassemble": ours(5)[some], "POT": peers.pot_loop(scores, cost, MASS, 5, some)}, rtol=2e-3
    )
    timings = race(
        {
            "arithmetic mean, NumPy": lambda: scores.mean(axis=0),
            "geometric mean, NumPy": lambda: np.exp(np.log(scores).mean(axis=0)),
            "arithmetic mean": lambda: ws.ARITHMETIC.fuse(scores),
            "geometric mean": lambda: ws.GEOMETRIC.fuse(scores),
            "diagonal kernel, converged": lambda: ws.fuse(
                scores, kernel=diagonal, rule=ws.Barycenter(MASS), kind="multilabel"
            ),
            "dense kernel, 1 sweep": lambda: ours(1),
            "dense kernel, 5 sweeps": lambda: ours(5),
            "dense kernel, 5 sweeps, 1 thread": lambda: ours(5, n_threads=1),
            "dense kernel, 10 sweeps": lambda: ours(10),
            "floor of 5 sweeps": lambda: peers.floor(scores, matrix, 5),
        },
        n_rounds=n_rounds,
    )
    timings |= race(
        {
            "NumPy, whole batch, 5 sweeps": lambda: peers.whole_batch(np, scores, matrix, MASS, 5),
            "torch, whole batch, 5 sweeps": lambda: peers.whole_batch(torch, *tensors, MASS, 5),
        },
        n_rounds=2,
    )
    _, timings["POT, loop, 5 sweeps"] = once(lambda: peers.pot_loop(scores, cost, MASS, 5))
    return {
        "n_samples": n_samples,
        "agreement": {"whole batch": gap, "POT": gap_pot},
        "status": repr(
            ws.solve_barycenter(scores, kernel, ws.Barycenter(MASS, max_sweeps=5, tolerance=None))
        ),
        "timings": timings,
        "paper_seconds": {str(k): {"V100": v, "K80": k80} for k, (v, k80) in PAPER.items()},
    }
