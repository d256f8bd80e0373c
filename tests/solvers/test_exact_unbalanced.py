"""The unbalanced barycenter without regularisation (the paper, equation 4)."""

import numpy as np
import pytest
from problems import SWEEPS
from scipy.optimize import minimize

import wassemble as ws
from wassemble.metrics import unbalanced_distance
from wassemble.solvers.native_sweep import find_native


@pytest.mark.parametrize("seed", range(3))
def test_a_small_epsilon_reaches_the_unbalanced_barycenter_without_regularisation(
    seed, monkeypatch
):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.2, 1, size=(2, 4))
    cost = rng.uniform(0.1, 1, size=(4, 3))

    def total(consensus):
        rows = np.tile(consensus, (2, 1))
        return unbalanced_distance(scores, rows, cost, 2.0).mean()

    best = minimize(
        lambda logs: total(np.exp(logs)), np.zeros(3), method="Nelder-Mead",
        options={"xatol": 1e-5, "fatol": 1e-9, "maxiter": 2000},
    ).fun  # fmt: skip
    # Both kinds of sweeps in one test: what they are compared with takes nearly all the time.
    for sweeps in SWEEPS if find_native() else SWEEPS[1:]:
        if sweeps == "NumPy":
            monkeypatch.setenv("WASSEMBLE_NATIVE", "0")
        gaps = []
        for epsilon in (0.3, 0.03, 0.01):
            mass = ws.Unbalanced(2.0, epsilon=epsilon)
            result = ws.solve_barycenter(
                scores,
                ws.kernels.from_cost(cost, epsilon),
                ws.Barycenter(mass, max_sweeps=100_000, tolerance=1e-8),
            )
            gaps.append(total(result.barycenter) - best)
        assert gaps == sorted(gaps, reverse=True)
        assert -1e-6 < gaps[-1] < 0.01 * best
