"""Rows finished by Newton's method: the answers of sweeps, sooner, and what cannot be answered."""

from __future__ import annotations

import numpy as np
import pytest
from covering import covering
from hypothesis import given, strategies as st
from problems import (
    ARITHMETICS,
    SWEEPS,
    as_low_rank,
    as_sparse,
    cases,
    make_case,
    pose_with,
    solve_in,
    solve_with,
    with_zeros,
)
from scipy.optimize import linprog

import wassemble as ws
from wassemble.solvers import arithmetics, newton
from wassemble.solvers.barycenter import solve
from wassemble.solvers.problem import BarycenterProblem

pytestmark = pytest.mark.usefixtures("sweeps")

MASSES = (ws.Balanced(), ws.Unbalanced(20.0, epsilon=0.3), ws.Unbalanced(2000.0, epsilon=0.3))
SWEPT = MASSES[:2]  # those whose sweeps arrive in a time that a test can wait
SOON = 8  # sweeps


@pytest.fixture(autouse=True, scope="module")
def impatient():
    """Newton's method takes over after a few sweeps."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_PATIENCE", "_PATIENCE_IN_LOGS", "_PATIENCE_WITH_ZEROS"):
            patch.setattr(arithmetics, name, 0)
        patch.setattr(arithmetics, "_FEWEST", SOON)
        yield


def solve_by_sweeps(problem):
    """The same problem by plain sweeps alone."""
    problem.has_one_fixed_point = False
    return solve(problem)


def by_sweeps(case, **options):
    options = {"max_sweeps": 3000, "tolerance": 1e-10} | options
    return solve_by_sweeps(
        pose_with(case.histograms, case.kernels, weights=case.weights, mass=case.mass, **options)
    )


def assert_same(result, expected, atol=1e-6):
    both = (result.statuses == ws.Status.CONVERGED) & (expected.statuses == ws.Status.CONVERGED)
    scale = np.maximum(expected.barycenter.sum(axis=-1, keepdims=True), 1e-300)
    np.testing.assert_allclose(
        (result.barycenter / scale)[both], (expected.barycenter / scale)[both], atol=atol
    )


@given(case=cases(masses=SWEPT))
def test_newton_ends_where_sweeps_end(case):
    case = case.but(weights=np.mean(case.weights.reshape(len(case.histograms), -1), axis=1))
    result = case.solve(tolerance=1e-10)
    assert np.all(result.converged)
    assert result.n_sweeps.max() < 100
    assert_same(result, by_sweeps(case))


@covering(2, name=ARITHMETICS, mass=MASSES, sweeps=SWEEPS)
def test_every_arithmetic_hands_over_and_a_batch_is_its_rows(name, mass):
    case = make_case(3, mass=mass, kernel_spread=15.0, n_samples=6)
    whole = solve_in(name, case, tolerance=1e-9)
    assert whole.converged.all()
    assert (whole.n_sweeps > SOON).any()
    for sample in range(6):
        alone = case.but(histograms=[h[sample] for h in case.histograms]).solve(tolerance=1e-9)
        np.testing.assert_allclose(alone.barycenter, whole.barycenter[sample], atol=1e-7)


@pytest.mark.parametrize("mass", MASSES, ids=str)
def test_couplings_after_newton_have_their_marginals(mass):
    case = make_case(5, mass=mass, kernel_spread=25.0, n_source=(4, 5, 7))
    result = case.solve(tolerance=1e-9)
    assert result.converged.all()
    assert (result.n_sweeps > SOON).all()
    for sample in range(4):
        plans = [result.coupling(model, sample) for model in range(3)]
        total = sum(w * plan.sum(axis=0) for w, plan in zip(case.weights, plans, strict=True))
        np.testing.assert_allclose(total, result.barycenter[sample], atol=1e-7)
        if isinstance(mass, ws.Balanced):
            for plan, histograms in zip(plans, case.histograms, strict=True):
                np.testing.assert_allclose(plan.sum(axis=1), histograms[sample], atol=1e-9)
                np.testing.assert_allclose(plan.sum(axis=0), result.barycenter[sample], atol=1e-7)


@given(case=cases(masses=SWEPT), seed=st.integers(0, 2**16))
def test_zeros_stay_zeros_and_nothing_is_called_converged_that_is_not(case, seed):
    case = with_zeros(case, seed)
    case = case.but(weights=np.mean(case.weights.reshape(len(case.histograms), -1), axis=1))
    result = case.solve(tolerance=1e-8, max_sweeps=500)
    assert result.n_sweeps.max() < 100
    expected = by_sweeps(case, max_sweeps=400, tolerance=1e-8)
    np.testing.assert_array_equal(result.barycenter == 0, expected.barycenter == 0)
    found = result.statuses == ws.Status.CONVERGED
    assert (result.residuals[found] <= 1e-8).all()
    assert_same(result, expected, atol=1e-5)


@covering(
    3,
    mass=SWEPT,
    kind=["dense", "sparse", "low rank", "diagonal too"],
    dtype=[np.float32, np.float64],
    sweeps=SWEEPS,
)
def test_every_kernel_type_and_missing_models(mass, kind, dtype):
    rng = np.random.default_rng(0)
    line = np.exp(-((np.arange(7)[:, None] - np.arange(7)) ** 2) * 3.0).astype(dtype)
    kernel = {"sparse": as_sparse, "low rank": as_low_rank}.get(kind, lambda matrix: matrix)(line)
    kernels = [kernel] * 3
    if kind == "diagonal too":
        diagonals = rng.uniform(0.5, 1, size=(5, 7)).astype(dtype)
        kernels[1] = ws.kernels.DiagonalKernel(diagonals)
    histograms = rng.dirichlet(np.ones(7), size=(3, 5)).astype(dtype)
    weights = rng.uniform(0.1, 1, size=(3, 5, 1))
    weights[2, :2] = 0
    weights[0, 2, :] = 0
    weights /= weights.sum(axis=0)
    options = {"mass": mass, "weights": weights, "normalize": isinstance(mass, ws.Balanced)}
    result = solve_with(histograms, kernels, tolerance=1e-6, **options)
    assert result.converged.all()
    assert (result.n_sweeps > SOON).any()
    expected = solve_by_sweeps(
        pose_with(
            histograms.astype(np.float64), kernels, tolerance=1e-8, max_sweeps=3000, **options
        )
    )
    assert_same(result, expected, atol=2e-4 if dtype == np.float32 else 2e-5)


def test_components_of_unequal_mass_end_as_algorithm_1_does():
    blocks = np.kron(np.eye(2), np.exp(-3.0 * np.abs(np.arange(4)[:, None] - np.arange(4))))
    histograms = np.random.default_rng(1).dirichlet(np.ones(8), size=(3, 4))
    result = ws.solve_barycenter(histograms, blocks, ws.Barycenter(tolerance=1e-9))
    assert result.converged.all()
    assert (result.n_sweeps > SOON).all()
    expected = solve_by_sweeps(pose_with(histograms, blocks, tolerance=1e-9, max_sweeps=3000))
    assert_same(result, expected)


def can_meet(histograms, reaches):
    """Whether some consensus is within reach of all models, by linear programming."""
    n_models, n_labels = histograms.shape
    source, target = np.nonzero(reaches)
    rows = (source == np.arange(n_labels)[:, None]).astype(float)
    columns = (target == np.arange(n_labels)[:, None]).astype(float)
    blocks = np.kron(np.eye(n_models), np.vstack([rows, columns]))
    consensus = np.tile(
        np.vstack([np.zeros((n_labels, n_labels)), -np.eye(n_labels)]), (n_models, 1)
    )
    equations = np.hstack([blocks, consensus])
    right = np.hstack([histograms, np.zeros_like(histograms)]).ravel()
    return linprog(np.zeros(equations.shape[1]), A_eq=equations, b_eq=right).status == 0


@given(seed=st.integers(0, 2**16))
def test_mass_that_cannot_meet_is_told_and_the_rest_converges(seed):
    rng = np.random.default_rng(seed)
    histograms = rng.dirichlet(np.full(8, 0.7), size=(3, 4))
    apart = np.abs(np.arange(8)[:, None] - np.arange(8))
    band = np.where(apart <= rng.integers(1, 5), np.exp(-apart / 2.0), 0)
    result = ws.solve_barycenter(histograms, as_sparse(band), ws.Barycenter(max_sweeps=2000))
    for sample, status in enumerate(result.statuses):
        expected = ws.Status.CONVERGED
        if not can_meet(histograms[:, sample], band > 0):
            expected = ws.Status.UNREACHABLE_MASS
            assert result.residual[sample] > result.problem.tolerance
        assert status == expected


def test_what_cannot_meet_keeps_the_consensus_of_sweeps():
    band = np.array([[1.0, 0.5, 0.0, 0.0], [0.5, 1.0, 0.5, 0.0], [0, 0.5, 1, 0.5], [0, 0, 0.5, 1]])
    histograms = np.array([[[0.7, 0.1, 0.1, 0.1]], [[0.1, 0.1, 0.1, 0.7]]])
    result = ws.solve_barycenter(histograms, as_sparse(band))
    assert result.statuses[0] == ws.Status.UNREACHABLE_MASS
    assert not result.converged[0]
    rule = ws.Barycenter(max_sweeps=1000, tolerance=None)
    limit = ws.solve_barycenter(histograms, as_sparse(band), rule).barycenter
    np.testing.assert_allclose(result.barycenter, limit, atol=0.05)


@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": None, "max_sweeps": 40},
        {"debias": True},
        {"weights": np.array([[0.5, 0.2, 0.3, 0.9], [0.5, 0.8, 0.7, 0.1]])},
    ],
    ids=["fixed number", "debiased", "weights per label"],
)
def test_newton_keeps_out_of_what_has_no_minimum_or_asks_for_sweeps(options, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError

    monkeypatch.setattr(arithmetics, "NewtonSweep", refuse)
    kernel = ws.kernels.DenseKernel(
        np.exp(-9.0 * (np.arange(4)[:, None] - np.arange(4)) ** 2 / 9), symmetric=True
    )
    histograms = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3))
    result = solve_with(histograms, kernel, **options)
    assert (result.n_sweeps > SOON).all()


def test_a_newton_step_counts_as_a_sweep():
    # Zeros, though none that matters: no other sweeps come first.
    case = make_case(5, n_samples=1, kernel_spread=25.0)
    kernel = np.where(case.kernels[0] > case.kernels[0].min(), case.kernels[0], 0)
    case = case.but(kernels=[kernel] * len(case.kernels))
    result = case.solve(tolerance=1e-9)
    least = int(result.n_sweeps.max())
    assert least > SOON + 1
    cut = case.solve(tolerance=1e-9, max_sweeps=least - 1)
    assert cut.n_sweeps.max() == least - 1
    assert (cut.statuses == ws.Status.MAX_SWEEPS).any()


def test_inverses_are_those_of_numpy_where_rounding_left_something_negative_too(rng):
    factors = rng.normal(size=(2, 3, 5, 5))
    matrices = factors @ factors.swapaxes(-1, -2)
    matrices[1, 2, 0, 0] = -1
    np.testing.assert_allclose(newton._invert(matrices), np.linalg.inv(matrices), rtol=1e-9)


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e9, -1e9])
def test_a_step_that_all_models_take_leads_nowhere_however_long_it_is(length, rng):
    mass = ws.Unbalanced(2.0, epsilon=0.1)
    problem = BarycenterProblem(
        rng.dirichlet(np.ones(4), size=(3, 2)), rng.uniform(0.1, 1, (4, 4)), ws.Barycenter(mass)
    )
    log_v = np.zeros((3, 2, 4))
    log_v[0, :, 1] = -np.inf  # of a label that a model does not reach
    point = newton._Point.at(problem.tile(0, 2), log_v, mass, None)
    settled = point._after(np.zeros_like(log_v))
    found = point._after(np.full_like(log_v, length))
    np.testing.assert_allclose(found, settled, atol=1e-12 + 1e-15 * abs(length))
