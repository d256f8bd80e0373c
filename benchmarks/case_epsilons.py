"""Smaller and smaller epsilon, with native sweeps and without, with AVX-512 and without.

What a process may use is settled when it starts, so each combination has one of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import wassemble as ws
from benchmarks import peers
from benchmarks.measure import agree, once, race
from wassemble.solvers.native_sweep import find_native

EPSILONS = (0.3, 0.2, 0.05, 0.01)
PENALTY = 2.0


def run(*, quick: bool) -> dict:
    """Seconds of each combination, by epsilon and floating type."""
    rows = {}
    for name, switches in _combinations().items():
        command = [sys.executable, "-m", "benchmarks.case_epsilons", *(["quick"] if quick else [])]
        done = subprocess.run(
            command,
            env=os.environ | switches,
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        rows[name] = json.loads(done.stdout)
    return {"n_samples": _n_samples(quick=quick), "combinations": rows}


def _combinations() -> dict[str, dict[str, str]]:
    """Environment variables of each process."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    newer = [name for name in __cpu_dispatch__ if name.startswith(("AVX512", "X86_V4"))]
    older = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(newer),
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
    }
    natives = {"native": {}} if find_native() is not None else {}
    found = {**natives, "NumPy": {"WASSEMBLE_NATIVE": "0"}}
    if any(__cpu_features__.get(name) for name in newer):
        if natives:
            found["native, without AVX-512"] = {**older, "WASSEMBLE_NATIVE": "avx2"}
        found["NumPy, without AVX-512"] = {**older, "WASSEMBLE_NATIVE": "0"}
    return found


def _n_samples(*, quick: bool) -> int:
    return 1_000 if quick else 35_150


def _measure(*, quick: bool) -> dict[str, Any]:
    """What one process measures."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.001, 1, size=(8, _n_samples(quick=quick), 80))
    vectors = rng.normal(size=(80, 50))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cost = np.square(vectors[:, None] - vectors).sum(axis=2)
    sweeps = [
        _five_sweeps(scores.astype(dtype), cost.astype(dtype), epsilon, quick=quick)
        for dtype in (np.float32, np.float64)
        for epsilon in EPSILONS
    ]
    single = scores.astype(np.float32)
    return {
        "sweeps": sweeps,
        "one": [
            _one_sample(single[:, 0], cost.astype(np.float32), epsilon, quick=quick)
            for epsilon in EPSILONS
        ],
        "diagonal": _diagonal(single, rng, quick=quick),
        "converged": _converged(cost, quick=quick),
    }


def _rule(epsilon: float) -> ws.Barycenter:
    mass = ws.Unbalanced(PENALTY, epsilon=epsilon)
    return ws.Barycenter(mass, max_sweeps=5, tolerance=None)


def _five_sweeps(scores: Any, cost: Any, epsilon: float, *, quick: bool) -> dict[str, Any]:
    """Ours, POT's loop (scaled up from some samples) and the floor."""
    rule, kernel = _rule(epsilon), ws.kernels.from_cost(cost, epsilon)
    some = np.linspace(0, scores.shape[1] - 1, 50 if quick else 500, dtype=int)
    timings = race(
        {
            "ours": lambda: ws.fuse(scores, kernel=kernel, rule=rule, kind="multilabel"),
            "floor": lambda: peers.floor(scores, np.array(kernel.to_dense()), 5),
        },
        n_rounds=2 if quick else 5,
    )
    wide = cost.astype(np.float64)
    peers.pot_loop(scores, wide, rule.mass, 5, some[:1])  # warms up
    pot, timing = once(lambda: peers.pot_loop(scores, wide, rule.mass, 5, some))
    ours = rule.fuse(scores[:, some], kernel, holds="scores")
    gap = agree({"wassemble": ours.scores, "POT": pot}, rtol=5e-3, atol=1e-6)
    result = ws.solve_barycenter(scores[:, some], kernel, rule)
    return {
        "epsilon": epsilon,
        "dtype": scores.dtype.name,
        "solver": str(result.solver),
        "n_log_rows": result.n_log_rows,
        "agreement": gap,
        "ours": timings["ours"]["seconds"],
        "floor": timings["floor"]["seconds"],
        "pot": timing["seconds"] * scores.shape[1] / len(some),
    }


def _one_sample(scores: Any, cost: Any, epsilon: float, *, quick: bool) -> dict[str, float]:
    """Seconds of a prepared call and of POT's."""
    rule, kernel = _rule(epsilon), ws.kernels.from_cost(cost, epsilon)
    fuser = rule.prepare(kernel, n_models=len(scores), dtype=scores.dtype)
    timings = race(
        {
            "ours": lambda: fuser(scores),
            "pot": lambda: peers.pot_loop(scores[:, None], cost, rule.mass, 5),
        },
        n_rounds=3 if quick else 10,
        at_least=0.02,
        clock=time.process_time,
    )
    return {"epsilon": epsilon} | {name: t["seconds"] for name, t in timings.items()}


def _diagonal(scores: Any, rng: np.random.Generator, *, quick: bool) -> dict[str, float]:
    """Seconds of a diagonal kernel, converged, and of NumPy's geometric mean."""
    diagonal = ws.kernels.DiagonalKernel(rng.uniform(0.3, 1, size=80).astype(np.float32))
    rule = ws.Barycenter(ws.Unbalanced(PENALTY, epsilon=0.3))
    timings = race(
        {
            "ours": lambda: ws.fuse(scores, kernel=diagonal, rule=rule, kind="multilabel"),
            "mean": lambda: np.exp(np.log(scores).mean(axis=0)),
        },
        n_rounds=2 if quick else 7,
    )
    return {name: t["seconds"] for name, t in timings.items()}


def _converged(cost: np.ndarray, *, quick: bool) -> dict[str, Any]:
    """Seconds of Algorithm 1 to a tolerance."""
    rng = np.random.default_rng(1)
    histograms = rng.dirichlet(np.full(80, 0.5), size=(8, 30 if quick else 2_000))
    kernel = ws.kernels.from_cost(cost, 0.1)
    rule = ws.Barycenter(max_sweeps=20_000, tolerance=1e-6)
    result, timing = once(lambda: ws.solve_barycenter(histograms, kernel, rule))
    return {
        "seconds": timing["seconds"],
        "products": peers.products(histograms, kernel.to_dense(), result.n_sweeps),
        "sweeps": float(result.n_sweeps.mean()),
        "n_converged": int(result.converged.sum()),
        "n_samples": histograms.shape[1],
    }


if __name__ == "__main__":
    print(json.dumps(_measure(quick="quick" in sys.argv[1:])))
