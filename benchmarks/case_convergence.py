"""To convergence, balanced, for smaller and smaller epsilon: sweeps and time."""

from __future__ import annotations

import numpy as np

import wassemble as ws
from benchmarks import peers
from benchmarks.measure import agree, once, race

EPSILONS = (1.0, 0.3, 0.1, 0.03)
TOLERANCE = 1e-6


def run(*, quick: bool) -> dict:
    """Sweeps and seconds of 8 models over 80 labels in float64."""
    n_samples = 8 if quick else 20
    rng = np.random.default_rng(0)
    histograms = rng.dirichlet(np.full(80, 0.5), size=(8, n_samples))
    vectors = rng.normal(size=(80, 3))
    cost = ((vectors[:, None] - vectors) ** 2).sum(axis=-1)
    cost /= np.median(cost)
    rows = []
    for epsilon in EPSILONS if not quick else EPSILONS[:3]:
        kernel = ws.kernels.from_cost(cost, epsilon)

        def ours(kernel=kernel):
            return ws.solve_barycenter(
                histograms, kernel, tolerance=TOLERANCE, max_iterations=100_000
            )

        ott = peers.ott_balanced(histograms, cost, epsilon, TOLERANCE, 20_000)
        result = ours()
        (pot_answer, pot_sweeps), pot_timing = once(
            lambda e=epsilon: peers.pot_balanced(histograms, cost, e, TOLERANCE, 20_000)
        )
        ott()  # compiles
        (ott_answer, ott_errors), ott_timing = once(ott)
        ott_sweeps = 10 * (ott_errors[..., 0] > -1).sum(axis=1)
        gap = agree(
            {"wassemble": result.barycenter, "POT": pot_answer, "OTT": ott_answer},
            rtol=0,
            atol=2e-3,
        )
        timings = race({"wassemble": ours}, n_rounds=5)
        timings["OTT-JAX, vmap"] = ott_timing
        timings["POT, loop"] = pot_timing
        rows.append(
            {
                "epsilon": epsilon,
                "n_converged": int(result.converged.sum()),
                "sweeps": {
                    "wassemble": float(result.n_iterations.mean()),
                    "POT, loop": float(pot_sweeps.mean()),
                    "OTT-JAX, vmap": float(ott_sweeps.mean()),
                },
                "agreement": gap,
                "timings": timings,
            }
        )
    return {"n_samples": n_samples, "tolerance": TOLERANCE, "rows": rows}
