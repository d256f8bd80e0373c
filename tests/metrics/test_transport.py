"""Wasserstein distances: closed forms, the laws of a distance, beside POT."""

import numpy as np
import ot
import pytest
from hypothesis import given, strategies as st

from wassemble import ConvergenceWarning, InvalidInputError
from wassemble.metrics import transport, wasserstein_distance


def draw_space(seed, n_labels=5):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n_labels, 2))
    distances = np.linalg.norm(vectors[:, None] - vectors, axis=2)
    histograms = rng.dirichlet(np.full(n_labels, 0.7), size=3)
    histograms[rng.uniform(size=histograms.shape) < 0.3] = 0
    histograms[:, 0] += 0.01
    return distances, histograms / histograms.sum(axis=1, keepdims=True)


@given(st.integers(0, 2**16), st.integers(2, 6))
def test_exact_distance_is_a_distance_and_that_of_pot(seed, n_labels):
    cost, (a, b, c) = draw_space(seed, n_labels)
    ab, bc, ac = wasserstein_distance([a, b, a], [b, c, c], cost)
    assert ac <= ab + bc + 1e-9
    assert wasserstein_distance(b, a, cost) == pytest.approx(ab, abs=1e-9)
    assert wasserstein_distance(a, a, cost) == pytest.approx(0, abs=1e-9)
    assert 0 <= ab <= cost.max() + 1e-9
    assert ab == pytest.approx(ot.emd2(a, b, cost), abs=1e-9)


@given(st.integers(0, 2**16), st.integers(2, 9))
def test_on_a_line_it_is_the_distance_of_cumulated_histograms(seed, n_labels):
    rng = np.random.default_rng(seed)
    a, b = rng.dirichlet(np.ones(n_labels), size=2)
    places = np.arange(n_labels)
    cost = np.abs(places[:, None] - places)
    expected = np.abs(np.cumsum(a - b)).sum()
    assert wasserstein_distance(a, b, cost) == pytest.approx(expected)
    assert wasserstein_distance(9 * a, b, cost) == pytest.approx(expected)  # only shares count


def test_mass_on_one_label_has_one_way_to_go():
    cost = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert wasserstein_distance([0, 1, 0], [0.25, 0.75], cost) == 3.75
    assert wasserstein_distance([0.5, 0, 0.5], [0, 1], cost) == 4


def test_unequal_label_sets_and_leading_axes():
    rng = np.random.default_rng(0)
    cost = rng.uniform(size=(3, 4))
    first, second = rng.dirichlet(np.ones(3), size=(2, 2)), rng.dirichlet(np.ones(4), size=(2, 2))
    found = wasserstein_distance(first, second, cost)
    assert found.shape == (2, 2)
    assert found[1, 0] == pytest.approx(ot.emd2(first[1, 0], second[1, 0], cost))


def test_no_answer_has_no_distance():
    found = wasserstein_distance([[0, 0], [1, 0]], [[1, 0], [0, 1]], [[0, 1], [1, 0]])
    np.testing.assert_array_equal(found, [np.nan, 1])
    found = wasserstein_distance([[0, 0], [1, 0]], [[1, 0], [0, 1]], [[0, 1], [1, 0]], 0.1)
    np.testing.assert_allclose(found, [np.nan, 1])


@given(st.integers(0, 2**16), st.integers(1, 6), st.sampled_from([0.1, 1.0, 10.0]))
def test_entropic_distance_is_at_least_the_exact_one(seed, n_labels, epsilon):
    cost, (a, b, _) = draw_space(seed, n_labels)
    exact = wasserstein_distance(a, b, cost)
    found = wasserstein_distance(a, b, cost, epsilon)
    assert found >= exact - 1e-9
    assert found <= a @ cost @ b + 1e-9  # the coupling of a huge epsilon


def test_entropic_distance_goes_from_exact_to_independent():
    cost, (a, b, _) = draw_space(5)
    exact = wasserstein_distance(a, b, cost)
    found = [wasserstein_distance(a, b, cost, epsilon) for epsilon in (0.02, 0.2, 2.0, 2e6)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(exact, abs=1e-3)
    assert found[-1] == pytest.approx(a @ cost @ b, rel=1e-5)
    rows, columns = a > 0, b > 0  # POT divides by every entry
    cost = cost[rows][:, columns]
    plan = ot.sinkhorn(a[rows], b[columns], cost, 0.2, stopThr=1e-12)
    assert found[1] == pytest.approx((plan * cost).sum(), rel=1e-5)


def test_entropic_distances_of_many_rows_are_those_of_each(monkeypatch):
    cost, histograms = draw_space(6)
    monkeypatch.setattr(transport, "_N_ROWS", 2)
    found = wasserstein_distance(histograms, histograms[[1, 2, 0]], cost, 0.3)
    each = [
        wasserstein_distance(histograms[i], histograms[(i + 1) % 3], cost, 0.3) for i in range(3)
    ]
    np.testing.assert_allclose(found, each, rtol=1e-5)


def test_a_cost_of_0_everywhere_costs_nothing():
    for epsilon in (None, 0.1):
        assert wasserstein_distance([0.5, 0.5], [0.1, 0.9], np.zeros((2, 2)), epsilon) == 0


def test_distances_that_do_not_settle_warn_and_stay_upper_bounds(monkeypatch):
    cost, (a, b, _) = draw_space(7)
    monkeypatch.setattr(transport, "_MAX_SWEEPS", 2)
    with pytest.warns(ConvergenceWarning, match="did not settle in 2 sweeps.*upper bounds"):
        found = wasserstein_distance(a, b, cost, 0.01)
    assert found >= wasserstein_distance(a, b, cost) - 1e-9


def test_too_many_labels_for_an_exact_distance_are_refused(monkeypatch):
    monkeypatch.setattr(transport, "_MAX_PAIRS", 5)
    half = [[1, 0, 0], [0.5, 0.5, 0.5]]
    with pytest.raises(InvalidInputError, match=r"got 3 x 3 at histogram 1\.\nhint: `epsilon`"):
        wasserstein_distance(half, half, np.ones((3, 3)))
    wasserstein_distance([0.5, 0.5, 0], [0.5, 0.5, 0], np.ones((3, 3)))  # 2 x 2 with mass


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match=r"as many histograms; got \(1,\) and \(2,\)"):
        wasserstein_distance([[1, 0]], [[1, 0], [1, 0]], np.zeros((2, 2)))
    with pytest.raises(InvalidInputError, match=r"shape \(2, 3\); got \(2, 2\)"):
        wasserstein_distance([1, 0], [1, 0, 0], np.zeros((2, 2)))
    with pytest.raises(InvalidInputError, match="`epsilon` must be finite and above 0; got 0"):
        wasserstein_distance([1, 0], [1, 0], np.zeros((2, 2)), 0)
    with pytest.raises(
        InvalidInputError, match="`cost` must be finite; got inf at row 0, column 1"
    ):
        wasserstein_distance([1, 0], [1, 0], [[0, np.inf], [1, 0]])
