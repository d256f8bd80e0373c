"""Barycenter problems for the tests, drawn by Hypothesis or from a seed."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

import wassemble as ws
from wassemble.solvers.arithmetics import (
    ClosedFormSolver,
    DebiasedSolver,
    LogSolver,
    NativeSolver,
    PlainSolver,
)
from wassemble.solvers.barycenter import _Run
from wassemble.solvers.native_sweep import find_native
from wassemble.solvers.problem import BarycenterProblem
from wassemble.solvers.tiles import run_tiles

# Names of the arithmetics that sweep here.
ARITHMETICS = ("plain", "log", "native") if find_native() else ("plain", "log")
# With and without native sweeps: what the fixture `sweeps` of solvers takes.
SWEEPS = ("native", "NumPy")
# For tests in which nothing is swept natively in any case: once is enough.
swept_once = pytest.mark.parametrize("sweeps", SWEEPS[1:], indirect=True)
KNOBS = tuple(knob.name for knob in fields(ws.Barycenter))
MASSES = (ws.Balanced(), ws.Unbalanced(2.0, epsilon=0.3), ws.Unbalanced(0.2, epsilon=1.0))


def pose_with(histograms: Any, kernels: Any, **options: Any) -> BarycenterProblem:
    """A problem whose options are those of its rule and its own, mixed."""
    rule = ws.Barycenter(**{name: options.pop(name) for name in KNOBS if name in options})
    return BarycenterProblem(histograms, kernels, rule, **options)


def solve_with(histograms: Any, kernels: Any, **options: Any) -> ws.BarycenterResult:
    """`solve_barycenter` with the options of its rule and its own, mixed."""
    rule = ws.Barycenter(**{name: options.pop(name) for name in KNOBS if name in options})
    return ws.solve_barycenter(histograms, kernels, rule, **options)


def rule_with(**knobs: Any) -> ws.Barycenter:
    """A barycenter with some knobs turned; its mass is the usual one if none is given."""
    usual = ws.Balanced() if knobs.get("debias") else ws.USUAL_RULE.mass
    return ws.Barycenter(**{"mass": usual} | knobs)


def fusion_with(**options: Any) -> ws.Fusion:
    """A fusion whose options are those of a barycenter and its own, mixed."""
    knobs = {name: options.pop(name) for name in KNOBS if name in options}
    return ws.Fusion(**({"rule": rule_with(**knobs)} if knobs else {}) | options)


def fuse_with(predictions: Any, **options: Any) -> Any:
    """`fuse` with the options of a barycenter and its own, mixed."""
    how = {name: options.pop(name) for name in ("n_threads", "progress", "out") if name in options}
    return fusion_with(**options).fuse(predictions, **how)


@dataclass(frozen=True)
class Case:
    """The arguments of `solve_barycenter`."""

    histograms: list[np.ndarray]
    kernels: list[np.ndarray]
    weights: np.ndarray
    mass: Any

    def solve(self, **options: Any) -> ws.BarycenterResult:
        return solve_with(
            self.histograms, self.kernels, weights=self.weights, mass=self.mass, **options
        )

    def but(self, **changes: Any) -> Case:
        return replace(self, **changes)

    @property
    def kind(self) -> str:
        """What `fuse` is told: scores of any mass are called so."""
        return "multiclass" if isinstance(self.mass, ws.Balanced) else "multilabel"

    @property
    def dtype(self) -> np.dtype:
        return self.histograms[0].dtype


def make_case(
    seed: int = 0,
    *,
    n_models: int = 3,
    n_samples: int = 4,
    n_source: tuple[int, ...] | int = 5,
    n_target: int = 6,
    mass: Any = MASSES[0],
    dtype: Any = np.float64,
    per_label: bool = False,
    kernel_spread: float = 3.0,
) -> Case:
    """A case with positive kernels; one kernel for all if ``n_source`` is one number."""
    rng = np.random.default_rng(seed)
    sizes = (n_source,) * n_models if isinstance(n_source, int) else n_source
    histograms = []
    for size in sizes:
        if isinstance(mass, ws.Balanced):
            values = rng.dirichlet(np.ones(size), size=n_samples).astype(dtype)
            values /= values.sum(axis=1, keepdims=True)
        else:
            values = rng.uniform(0.01, 1, size=(n_samples, size)).astype(dtype)
        histograms.append(values)
    if isinstance(n_source, int):
        kernels = [_kernel(rng, n_source, n_target, kernel_spread, dtype)] * n_models
    else:
        kernels = [_kernel(rng, size, n_target, kernel_spread, dtype) for size in sizes]
    shape = (n_models, n_target) if per_label else n_models
    weights = rng.uniform(0.1, 1, size=shape)
    return Case(histograms, kernels, weights / weights.sum(axis=0), mass)


def _kernel(rng: Any, n_source: int, n_target: int, spread: float, dtype: Any) -> np.ndarray:
    return np.exp(-spread * rng.uniform(size=(n_source, n_target))).astype(dtype)


@st.composite
def cases(
    draw: Any, *, masses: Any = MASSES, dtypes: Any = (np.float64,), shared: Any = None
) -> Case:
    n_models = draw(st.integers(1, 4))
    share = draw(st.booleans()) if shared is None else shared
    size = st.integers(1, 6)
    sizes = draw(size) if share else tuple(draw(size) for _ in range(n_models))
    return make_case(
        draw(st.integers(0, 2**16)),
        n_models=n_models,
        n_samples=draw(st.integers(1, 4)),
        n_source=sizes,
        n_target=draw(st.integers(1, 6)),
        mass=draw(st.sampled_from(masses)),
        dtype=draw(st.sampled_from(dtypes)),
        per_label=draw(st.booleans()),
    )


def with_zeros(case: Case, seed: int, *, histograms: bool = True) -> Case:
    """The case with about a third of the kernel and histogram entries set to 0."""
    rng = np.random.default_rng(seed)
    distinct = {id(k): k * (rng.uniform(size=k.shape) > 0.35) for k in case.kernels}
    kernels = [distinct[id(k)] for k in case.kernels]
    values = case.histograms
    if histograms:
        values = [h * (rng.uniform(size=h.shape) > 0.35) for h in values]
        if isinstance(case.mass, ws.Balanced):
            values = [_normalised(h + (h.sum(axis=1, keepdims=True) == 0)) for h in values]
    return case.but(kernels=kernels, histograms=values)


def _normalised(values: np.ndarray) -> np.ndarray:
    return values / values.sum(axis=1, keepdims=True)


def solve_in(name: str, case: Case, **options: Any) -> ws.BarycenterResult:
    """Solve with the arithmetic ``name``, whatever `select_solver` would say."""
    problem = pose_with(
        case.histograms, case.kernels, weights=case.weights, mass=case.mass, **options
    )
    solvers = {each.name: each for each in (ClosedFormSolver, LogSolver)}
    for each in (PlainSolver, NativeSolver):
        solvers[each.name] = partial(each, types=[problem.dtype])
    kind = DebiasedSolver if problem.rule.debias else solvers[name]
    run = _Run(problem, kind(problem, "asked for by a test"), keep_scalings=True)
    run_tiles(run.solve_tile, problem.n_samples, max(1, problem.n_samples), 1)
    return run.result()


def as_sparse(matrix: np.ndarray) -> ws.kernels.SparseKernel:
    return ws.kernels.SparseKernel(sp.csr_array(matrix))


def as_low_rank(matrix: np.ndarray) -> ws.kernels.LowRankKernel:
    """The same matrix as a product of non-negative factors of full rank."""
    return ws.kernels.LowRankKernel(matrix, np.eye(matrix.shape[1], dtype=matrix.dtype))
