"""The solver against exact optimal transport, against POT, and the paper's propositions."""

import numpy as np
import ot
import pytest
from hypothesis import given, strategies as st
from problems import make_case, swept_once
from scipy.optimize import linprog

import wassemble as ws

pytestmark = pytest.mark.usefixtures("sweeps")


def distance(p, q, cost):
    """Exact transport cost between two histograms, by linear programming."""
    n, m = cost.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    found = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([p, q]))
    assert found.status == 0
    return found.fun


def exact_barycenter(histograms, costs, weights):
    """Exact barycenter and its objective (equation Wbary), by linear programming."""
    n_target = costs[0].shape[1]
    objective, blocks, right = [], [], []
    sizes = [cost.size for cost in costs]
    width = sum(sizes) + n_target
    first = 0
    for histogram, cost, weight in zip(histograms, costs, weights, strict=True):
        objective.append(weight * cost.ravel())
        n_source = len(histogram)
        rows = np.zeros((n_source + n_target, width))
        rows[:n_source, first : first + cost.size] = np.kron(np.eye(n_source), np.ones(n_target))
        rows[n_source:, first : first + cost.size] = np.kron(np.ones(n_source), np.eye(n_target))
        rows[n_source:, -n_target:] = -np.eye(n_target)
        blocks.append(rows)
        right.append(np.concatenate([histogram, np.zeros(n_target)]))
        first += cost.size
    found = linprog(
        np.concatenate([*objective, np.zeros(n_target)]),
        A_eq=np.vstack(blocks),
        b_eq=np.concatenate(right),
    )
    assert found.status == 0
    return found.x[-n_target:], found.fun


@pytest.mark.parametrize("seed", range(4))
def test_a_vanishing_epsilon_reaches_the_exact_barycenter(seed):
    rng = np.random.default_rng(seed)
    histograms = [rng.dirichlet(np.ones(n)) for n in (4, 5)]
    costs = [rng.uniform(size=(n, 6)) for n in (4, 5)]
    weights = [0.3, 0.7]
    _, best = exact_barycenter(histograms, costs, weights)
    gaps = []
    for epsilon in (0.1, 0.02, 0.004):
        kernels = [ws.kernels.from_cost(cost, epsilon) for cost in costs]
        result = ws.solve_barycenter(
            histograms, kernels, ws.Barycenter(max_sweeps=100_000, tolerance=1e-7), weights=weights
        )
        assert result.converged
        p = result.barycenter / result.barycenter.sum()
        reached = sum(
            w * distance(h, p, c) for w, h, c in zip(weights, histograms, costs, strict=True)
        )
        np.testing.assert_allclose(
            weights @ result.transport_cost(costs), reached, atol=10 * epsilon
        )
        gaps.append(reached - best)
    assert min(gaps) > -1e-6
    assert gaps[-1] < 0.004
    assert gaps[-1] <= gaps[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ten_thousand_sweeps_at_a_tiny_epsilon_stay_honest(dtype):
    rng = np.random.default_rng(5)
    histograms = rng.dirichlet(np.ones(5), size=(2, 3)).astype(dtype)
    histograms /= histograms.sum(axis=-1, keepdims=True)
    cost = rng.uniform(size=(5, 5))
    result = ws.solve_barycenter(
        histograms,
        ws.kernels.from_cost(cost.astype(dtype), 1e-4),
        ws.Barycenter(max_sweeps=10_000, tolerance=1e-4),
    )
    assert np.isfinite(result.barycenter).all()
    for sample in range(3):
        models = histograms[:, sample].astype(float)
        models /= models.sum(axis=1, keepdims=True)
        _, best = exact_barycenter(models, [cost] * 2, [0.5, 0.5])
        p = result.barycenter[sample].astype(float)
        reached = sum(0.5 * distance(model, p / p.sum(), cost) for model in models)
        # Converged rows are at the optimum; the others say how far they are.
        assert reached <= best + 1e-3 + 2 * result.residual[sample]
        assert abs(p.sum() - 1) <= result.residual[sample] + 1e-5
        if result.status[sample] == ws.Status.CONVERGED:
            assert reached == pytest.approx(best, abs=2e-3)


@pytest.mark.parametrize("seed", range(5))
def test_the_exact_barycenter_is_within_four_times_the_models_distance_to_an_oracle(seed):
    """Proposition 1, point 1."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(6, 2))
    cost = ((points[:, None] - points) ** 2).sum(axis=-1)
    oracle, *models = rng.dirichlet(np.full(6, 0.5), size=4)
    weights = rng.dirichlet(np.ones(3))
    barycenter, _ = exact_barycenter(models, [cost] * 3, weights)
    left = distance(np.maximum(barycenter, 0) / np.maximum(barycenter, 0).sum(), oracle, cost)
    right = sum(w * distance(m, oracle, cost) for w, m in zip(weights, models, strict=True))
    assert left <= 4 * right + 1e-9


@given(st.integers(0, 500), st.sampled_from([0.1, 0.5, 2.0]))
def test_entropies_of_consensus_and_model_bound_the_entropy_of_their_coupling(seed, epsilon):
    """The lemma on controllable entropy."""
    rng = np.random.default_rng(seed)
    histograms = rng.dirichlet(np.ones(5), size=(3, 1))
    kernel = ws.kernels.from_cost(rng.uniform(size=(5, 4)), epsilon)
    result = ws.solve_barycenter(
        histograms, kernel, ws.Barycenter(max_sweeps=50_000, tolerance=1e-9)
    )
    for model in range(3):
        joint = result.coupling(model, 0)
        bound = entropy(result.barycenter[0]) + entropy(histograms[model, 0])
        assert bound >= entropy(joint.ravel()) - 1e-6


def test_entropy_of_the_consensus_grows_with_epsilon():
    rng = np.random.default_rng(0)
    histograms = rng.dirichlet(np.full(8, 0.3), size=(4, 1))
    vectors = rng.normal(size=(8, 3))
    entropies, distances = [], []
    for epsilon in (0.05, 0.5, 2.0, 10.0, 100.0):
        kernel = ws.kernels.from_embeddings(vectors, epsilon=epsilon)
        distances.append(ws.kernels.distance_to_identity(kernel))
        result = ws.solve_barycenter(
            histograms, kernel, ws.Barycenter(max_sweeps=100_000, tolerance=1e-6)
        )
        entropies.append(entropy(result.barycenter[0]))
    assert sorted(distances) == distances
    assert sorted(entropies) == entropies
    assert entropies[-1] == pytest.approx(np.log(8), abs=0.01)


def entropy(p):
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
def test_balanced_equals_pot_in_logs(epsilon):
    rng = np.random.default_rng(1)
    histograms = rng.dirichlet(np.ones(8), size=(3, 1))
    points = rng.normal(size=(8, 2))
    cost = ((points[:, None] - points) ** 2).sum(axis=-1)
    cost /= cost.max()
    weights = np.array([0.2, 0.3, 0.5])
    # Only POT's log method is right for weights that are not uniform.
    expected = ot.bregman.barycenter(
        histograms[:, 0].T.copy(),
        cost,
        epsilon,
        weights=weights,
        method="sinkhorn_log",
        numItermax=50_000,
        stopThr=1e-13,
    )
    result = ws.solve_barycenter(
        histograms,
        ws.kernels.from_cost(cost, epsilon),
        ws.Barycenter(max_sweeps=50_000, tolerance=1e-10),
        weights=weights,
    )
    np.testing.assert_allclose(result.barycenter[0], expected, atol=1e-7)


@pytest.mark.parametrize("mass_penalty", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("sweeps", [1, 2, 5, 20])
@pytest.mark.filterwarnings("ignore:.*did not converge.*")
def test_unbalanced_equals_pot_sweep_by_sweep(mass_penalty, sweeps):
    epsilon = 0.3
    case = make_case(
        2, n_samples=1, n_source=7, n_target=7, mass=ws.Unbalanced(mass_penalty, epsilon=epsilon)
    )
    kernel = (case.kernels[0] + case.kernels[0].T) / 2
    case, cost = case.but(kernels=[kernel] * 3), -epsilon * np.log(kernel)
    expected = ot.unbalanced.barycenter_unbalanced(
        np.stack([h[0] for h in case.histograms], axis=1),
        cost,
        epsilon,
        mass_penalty,
        weights=case.weights,
        numItermax=sweeps,
        stopThr=0,
    )
    result = case.solve(max_sweeps=sweeps, tolerance=None)
    np.testing.assert_allclose(result.barycenter[0], expected, rtol=1e-12)


@swept_once
@pytest.mark.filterwarnings("ignore:Sinkhorn did not converge")
def test_debiased_equals_pot():
    rng = np.random.default_rng(3)
    grid = np.linspace(0, 1, 12)
    cost = (grid[:, None] - grid) ** 2
    histograms = np.stack([np.exp(-((grid - m) ** 2) / 0.1) for m in (0.2, 0.5, 0.7)])
    histograms /= histograms.sum(axis=1, keepdims=True)
    weights = rng.dirichlet(np.ones(3))
    expected = ot.bregman.barycenter_debiased(
        histograms.T.copy(),
        cost,
        0.02,
        weights=weights,
        method="sinkhorn_log",
        numItermax=20_000,
        stopThr=1e-12,
    )
    result = ws.solve_barycenter(
        histograms,
        ws.kernels.from_cost(cost, 0.02, symmetric=True),
        ws.Barycenter(max_sweeps=20_000, tolerance=1e-9, debias=True),
        weights=weights,
    )
    np.testing.assert_allclose(result.barycenter, expected, atol=1e-6)
