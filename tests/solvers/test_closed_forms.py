"""Answers that are known without iterating."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, strategies as st
from problems import make_case, solve_in, swept_once

import wassemble as ws

pytestmark = pytest.mark.usefixtures("sweeps")

DTYPES = (np.float32, np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [{}, {"max_sweeps": 5, "tolerance": None}])
def test_identity_kernel_gives_the_geometric_mean(dtype, options):
    case = make_case(1, n_source=5, n_target=5, dtype=dtype)
    result = case.but(kernels=[ws.kernels.IdentityKernel(5)] * 3).solve(**options)
    expected = ws.GEOMETRIC.fuse(case.histograms, weights=case.weights).consensus
    np.testing.assert_allclose(result.barycenter, expected, rtol=1e-5)
    assert result.converged.all()
    assert (result.n_sweeps == 0).all()


@given(st.integers(1, 40), st.sampled_from(DTYPES))
def test_identity_matrix_gives_the_geometric_mean_at_every_sweep(sweeps, dtype):
    case = make_case(2, n_source=4, n_target=4, dtype=dtype)
    case = case.but(kernels=[np.eye(4, dtype=dtype)] * 3)
    expected = ws.GEOMETRIC.fuse(case.histograms, weights=case.weights).consensus
    result = case.solve(max_sweeps=sweeps, tolerance=None)
    np.testing.assert_allclose(result.barycenter, expected, rtol=1e-5)


@swept_once
@given(
    st.integers(0, 1000),
    st.floats(0.05, 20),
    st.floats(0.05, 5),
    st.sampled_from(DTYPES),
    st.booleans(),
)
def test_diagonal_formula_is_the_fixed_point_of_algorithm_2(
    seed, mass_penalty, epsilon, dtype, per_label
):
    mass = ws.Unbalanced(mass_penalty, epsilon=epsilon)
    case = make_case(seed, n_source=4, n_target=4, mass=mass, dtype=dtype, per_label=per_label)
    rng = np.random.default_rng(seed)
    diagonals = [rng.uniform(0.1, 2, size=4).astype(dtype) for _ in range(3)]
    formula = case.but(kernels=[ws.kernels.DiagonalKernel(d) for d in diagonals]).solve()
    dense = case.but(kernels=[np.diag(d) for d in diagonals])
    iterated = solve_in("log", dense, max_sweeps=20_000, tolerance=1e-12)
    slack = 1e-4 if dtype == np.float32 else 1e-8
    np.testing.assert_allclose(formula.barycenter, iterated.barycenter, rtol=slack)
    np.testing.assert_allclose(
        formula.log_scalings(), iterated.log_scalings(), rtol=100 * slack, atol=1000 * slack
    )


def _one_to_one(rng, n_target, dtype):
    """A kernel by which some labels, in any order, are similar to one label each."""
    n_source = int(rng.integers(1, 7))
    n_joined = int(rng.integers(0, min(n_source, n_target) + 1))
    source, target = (rng.permutation(n)[:n_joined] for n in (n_source, n_target))
    entries = rng.uniform(0.1, 2, n_joined).astype(dtype)
    return sp.csr_array((entries, (source, target)), shape=(n_source, n_target))


@given(
    st.integers(0, 10_000),
    st.sampled_from(
        [ws.Balanced(), ws.Unbalanced(2.0, epsilon=0.3), ws.Unbalanced(0.5, epsilon=1.0)]
    ),
    st.sampled_from(DTYPES),
    st.booleans(),
)
def test_one_to_one_kernels_have_the_fixed_point_of_the_sweeps(seed, mass, dtype, per_label):
    rng = np.random.default_rng(seed)
    case = make_case(seed, n_target=5, mass=mass, dtype=dtype, per_label=per_label)
    kernels = [_one_to_one(rng, 5, dtype), _one_to_one(rng, 5, dtype), ws.kernels.IdentityKernel(5)]
    histograms = [rng.dirichlet(np.ones(k.shape[0]), 4).astype(dtype) for k in kernels]
    case = case.but(histograms=histograms, kernels=kernels)
    formula = case.solve(normalize=True)
    assert formula.solver.name == "closed form"
    iterated = solve_in("log", case, max_sweeps=20_000, tolerance=1e-12, normalize=True)
    slack = 1e-4 if dtype == np.float32 else 1e-8
    np.testing.assert_allclose(formula.barycenter, iterated.barycenter, rtol=slack, atol=1e-30)
    unreachable = ws.Status.UNREACHABLE_MASS
    assert ((formula.status == unreachable) == (iterated.status == unreachable)).all()
    for model in range(3):
        ours, theirs = (result.coupling(model, 1) for result in (formula, iterated))
        if not isinstance(mass, ws.Balanced):
            np.testing.assert_allclose(ours, theirs, rtol=100 * slack, atol=1e-6)
        assert ((ours > 0) <= (kernels[model].toarray() > 0 if model < 2 else np.eye(5) > 0)).all()


@pytest.mark.parametrize("mass", [ws.Balanced(), ws.Unbalanced(2.0, epsilon=0.3)])
@pytest.mark.parametrize("has_dense", [False, True])
@pytest.mark.parametrize("n_top", [None, 2])
def test_matched_labels_have_the_consensus_of_a_sparse_permutation(mass, has_dense, n_top):
    rng = np.random.default_rng(1)
    matches = [
        ws.kernels.MatchKernel([2, 0, -1, 4], 5),
        ws.kernels.MatchKernel([3, 1, 0, 2, 4], 5),
    ]
    dense = [rng.uniform(0.1, 1, (3, 5))] if has_dense else []
    histograms = [rng.dirichlet(np.ones(n), 6) for n in (4, 5, 3)[: 2 + has_dense]]
    histograms[0][:3, 2] = 0  # where it has mass, some of it leads nowhere
    histograms[0] /= histograms[0].sum(axis=1, keepdims=True)
    rule = ws.Barycenter(mass, n_top=n_top)
    found = ws.solve_barycenter(histograms, [*matches, *dense], rule)
    sparse = [ws.kernels.SparseKernel(match.to_sparse()) for match in matches]
    expected = ws.solve_barycenter(histograms, [*sparse, *dense], rule)
    assert found.solver.name == expected.solver.name
    assert (found.solver.name == "closed form") == (not has_dense)
    np.testing.assert_allclose(found.barycenter, expected.barycenter, rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(found.status, expected.status)
    np.testing.assert_allclose(found.coupling(0, 1), expected.coupling(0, 1), rtol=1e-9)


@swept_once
def test_a_gradient_goes_through_one_to_one_kernels():
    kernels = [ws.kernels.SparseKernel(sp.csr_array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]))] * 2
    scores = torch.tensor([[[0.3, 0.7]], [[0.6, 0.4]]], dtype=torch.float64, requires_grad=True)

    def consensus(values):
        mass = ws.Unbalanced(2.0, epsilon=0.3)
        return ws.solve_barycenter(list(values), kernels, ws.Barycenter(mass)).barycenter[:, :2]

    assert torch.autograd.gradcheck(consensus, (scores,))


def test_a_shared_diagonal_is_a_gated_power_mean():
    mass = ws.Unbalanced(2.0, epsilon=0.3)
    case = make_case(3, n_source=4, n_target=4, mass=mass)
    k, f = np.array([1.0, 0.5, 0.2, 2.0]), mass.exponent
    powers = np.stack(case.histograms) ** (f / (1 + f))
    expected = k ** (1 - f) * np.einsum("l,lsj->sj", case.weights, powers) ** (1 + f)
    result = case.but(kernels=[ws.kernels.DiagonalKernel(k)] * 3).solve()
    np.testing.assert_allclose(result.barycenter, expected)


def test_five_sweeps_and_convergence_are_two_estimators():
    mass = ws.Unbalanced(2.0, epsilon=0.3)
    case = make_case(4, n_source=6, n_target=6, mass=mass).but(
        kernels=[ws.kernels.IdentityKernel(6)] * 3
    )
    paper = case.solve(max_sweeps=5, tolerance=None)
    converged = case.solve()
    gap = np.abs(paper.barycenter / converged.barycenter - 1).max()
    assert 0.01 < gap < 0.2
    assert not paper.converged.any()
    assert (paper.n_sweeps == 5).all()
    assert (paper.status == ws.Status.MAX_SWEEPS).all()


def test_a_huge_mass_penalty_with_the_identity_gives_the_hellinger_mean():
    case = make_case(5, n_source=6, n_target=6, mass=ws.Unbalanced(1e9, epsilon=1.0))
    result = case.but(kernels=[ws.kernels.IdentityKernel(6)] * 3).solve()
    expected = ws.HELLINGER.fuse(case.histograms, weights=case.weights).consensus
    np.testing.assert_allclose(result.barycenter, expected, rtol=1e-6)


@pytest.mark.parametrize("mass", [ws.Balanced(), ws.Unbalanced(2.0, epsilon=0.3)])
def test_mass_under_a_zero_of_the_diagonal_is_out_of_reach(mass):
    case = make_case(6, n_source=3, n_target=3, mass=mass)
    gate = np.array([[1.0, 0.0, 1.0], *[[1.0, 1.0, 1.0]] * 3])
    result = case.but(kernels=[ws.kernels.DiagonalKernel(gate)] * 3).solve()
    assert result.status.tolist() == [ws.Status.UNREACHABLE_MASS] + [ws.Status.CONVERGED] * 3
    assert result.barycenter[0, 1] == 0
    assert (result.barycenter[1:] > 0).all()


def test_the_blur_of_equal_gaussians_is_half_of_epsilon():
    grid, epsilon, variance = np.linspace(-6, 6, 241), 0.4, 0.25
    result = ws.solve_barycenter(
        _gaussians(grid, [(-1.0, variance), (2.0, variance)]),
        _kernel(grid, epsilon),
        ws.Barycenter(tolerance=1e-10),
        weights=[0.25, 0.75],
    )
    mean, spread = _moments(grid, result.barycenter)
    assert mean == pytest.approx(0.25 * -1 + 0.75 * 2, abs=1e-6)
    assert spread == pytest.approx(variance + epsilon / 2, rel=1e-5)


def test_debiasing_takes_the_blur_of_equal_gaussians_out():
    grid, epsilon, variance = np.linspace(-6, 6, 241), 0.4, 0.25
    result = ws.solve_barycenter(
        _gaussians(grid, [(-1.0, variance), (2.0, variance)]),
        _kernel(grid, epsilon),
        ws.Barycenter(max_sweeps=5000, tolerance=1e-9, debias=True),
        weights=[0.25, 0.75],
    )
    mean, spread = _moments(grid, result.barycenter)
    assert result.converged
    assert mean == pytest.approx(1.25, abs=1e-5)
    assert spread == pytest.approx(variance, rel=1e-4)
    assert result.barycenter.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("debias", [False, True])
def test_gaussians_of_different_width_have_the_known_width(debias):
    # Janati et al. 2020, theorem 3, with s = epsilon / 2 for the kernel exp(-(x - y)^2 / epsilon):
    # sum_l w_l sqrt(s^2 + 4 a_l a) = sqrt(s^2 + 4 a^2) debiased, and 2 a - s plain.
    grid, epsilon = np.linspace(-7, 7, 281), 0.6
    variances, weights = np.array([0.2, 0.9]), np.array([0.4, 0.6])
    result = ws.solve_barycenter(
        _gaussians(grid, [(0.0, v) for v in variances]),
        _kernel(grid, epsilon),
        ws.Barycenter(max_sweeps=5000, tolerance=1e-10, debias=debias),
        weights=weights,
    )
    _, width = _moments(grid, result.barycenter)
    blur = epsilon / 2
    left = (weights * np.sqrt(blur**2 + 4 * variances * width)).sum()
    right = np.sqrt(blur**2 + 4 * width**2) if debias else 2 * width - blur
    assert left == pytest.approx(right, rel=1e-4)


@swept_once
def test_a_huge_epsilon_debiased_gives_the_arithmetic_mean():
    case = make_case(7, n_samples=2, n_source=4, n_target=4)
    points = np.arange(4.0)[:, None] / 4
    kernel = ws.kernels.from_embeddings(points, epsilon=5.0, metric="euclidean")
    debiased = case.but(kernels=kernel).solve(debias=True, tolerance=1e-4, max_sweeps=20_000)
    assert debiased.converged.all()
    plain = case.but(kernels=kernel).solve()
    expected = ws.ARITHMETIC.fuse(case.histograms, weights=case.weights).consensus
    np.testing.assert_allclose(debiased.barycenter, expected, atol=3e-3)
    np.testing.assert_allclose(plain.barycenter, 1 / 4, atol=0.05)  # the paper's "gibberish"


@swept_once
def test_debiasing_does_not_call_creeping_convergence():
    case = make_case(7, n_source=6, n_target=6)
    kernel = ws.kernels.from_embeddings(
        np.arange(6.0)[:, None] / 6, epsilon=1e4, metric="euclidean"
    )
    result = case.but(kernels=kernel).solve(debias=True, max_sweeps=2000)
    expected = ws.ARITHMETIC.fuse(case.histograms, weights=case.weights).consensus
    assert np.abs(result.barycenter - expected).max() > 0.05  # far away, in tiny steps
    assert not result.converged.any()
    assert (result.residual > 0.01).all()


def test_debiasing_leaves_labels_that_are_out_of_reach_at_zero():
    kernel = np.eye(3)
    kernel[0, 1] = kernel[1, 0] = 0.5
    histograms = [[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]]
    result = ws.solve_barycenter(
        histograms, ws.kernels.DenseKernel(kernel, symmetric=True), ws.Barycenter(debias=True)
    )
    assert result.barycenter[2] == 0
    assert result.converged
    alone = ws.solve_barycenter(
        [[0.5, 0.5], [0.2, 0.8]],
        ws.kernels.DenseKernel(kernel[:2, :2], symmetric=True),
        ws.Barycenter(debias=True),
    )
    np.testing.assert_allclose(result.barycenter[:2], alone.barycenter, rtol=1e-5)


def _gaussians(grid, parameters):
    values = np.stack([np.exp(-((grid - m) ** 2) / (2 * v)) for m, v in parameters])
    return values / values.sum(axis=1, keepdims=True)


def _kernel(grid, epsilon):
    return ws.kernels.from_cost((grid[:, None] - grid) ** 2, epsilon, symmetric=True)


def _moments(grid, p):
    p = p / p.sum()
    mean = (p * grid).sum()
    return mean, (p * (grid - mean) ** 2).sum()


def test_debiasing_serves_a_kernel_that_differs_per_sample(rng):
    histograms = rng.dirichlet(np.ones(3), size=(2, 20))
    kernel = ws.kernels.DiagonalKernel(10 ** rng.uniform(-3, 3, size=(20, 3)))
    result = ws.solve_barycenter(histograms, kernel, ws.Barycenter(tolerance=1e-10, debias=True))
    assert len(set(result.n_sweeps)) > 1  # rows left at different times
    np.testing.assert_allclose(
        result.barycenter, ws.GEOMETRIC.fuse(histograms).consensus, rtol=1e-6
    )


def test_mass_that_is_too_small_to_be_seen_at_first_arrives():
    # After the first sweep the consensus has a mass of exp(-1100), 0 in floating point.
    distance = np.abs(np.arange(12.0)[:, None] - np.arange(12))
    kernel = ws.kernels.DenseKernel.from_log(-200 * distance)
    result = ws.solve_barycenter([np.eye(12)[0], np.eye(12)[11]], kernel)
    assert result.converged
    np.testing.assert_allclose(result.barycenter, 1 / 12, rtol=1e-6)
