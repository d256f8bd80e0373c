"""Entropic distances and the divergence made of them: closed forms, beside POT."""

import numpy as np
import ot
import pytest
from hypothesis import given, settings, strategies as st

from wassemble import ConvergenceWarning, InvalidInputError
from wassemble.metrics import (
    coupling_entropy,
    entropic_distance,
    extended_kl,
    sinkhorn_divergence,
    transport,
    unbalanced_distance,
    wasserstein_distance,
)


def draw_space(seed, n_labels=5):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n_labels, 2))
    cost = ((vectors[:, None] - vectors) ** 2).sum(axis=2)
    return cost / cost.max(), rng.dirichlet(np.ones(n_labels), size=2)


def value(coupling, cost, epsilon, p=None, q=None, mass_penalty=0):
    """The objective of section 3.3, written down."""
    total = (coupling * cost).sum() - epsilon * coupling_entropy(coupling)
    if mass_penalty:
        total += mass_penalty * extended_kl(coupling.sum(axis=1), p)
        total += mass_penalty * extended_kl(coupling.sum(axis=0), q)
    return total


@settings(max_examples=25)
@given(st.integers(0, 2**16), st.sampled_from([0.1, 0.5, 5.0]))
def test_balanced_is_the_value_of_the_coupling_of_pot(seed, epsilon):
    cost, (p, q) = draw_space(seed)
    plan = ot.sinkhorn(p, q, cost, epsilon, method="sinkhorn_log", numItermax=10_000, stopThr=1e-12)
    found = entropic_distance(p, q, cost, epsilon)
    assert found == pytest.approx(value(plan, cost, epsilon), abs=1e-6)
    independent = np.outer(p, q)
    assert found <= value(independent, cost, epsilon) + 1e-9  # it is the least


@settings(max_examples=25)
@given(st.integers(0, 2**16), st.sampled_from([0.1, 2.0, 50.0]))
def test_unbalanced_is_the_value_of_the_coupling_of_pot(seed, mass_penalty):
    cost, (p, q) = draw_space(seed)
    q = 3 * q
    plan = ot.unbalanced.sinkhorn_unbalanced(
        p, q, cost, 0.2, mass_penalty, reg_type="kl", c=np.ones_like(cost),
        numItermax=20_000, stopThr=1e-12,
    )  # fmt: skip
    found = entropic_distance(p, q, cost, 0.2, mass_penalty=mass_penalty)
    expected = value(plan, cost, 0.2, p, q, mass_penalty)
    assert found == pytest.approx(expected, abs=1e-6 * mass_penalty + 1e-6)


def test_one_label_on_each_side_has_a_formula():
    # Balanced: the only coupling is 1. Unbalanced: the stationary mass of a single entry.
    assert entropic_distance([1.0], [1.0], [[0.7]], 0.5) == pytest.approx(0.7 - 0.5)
    p, q, c, epsilon, penalty = 2.0, 3.0, 0.7, 0.5, 1.5
    mass = (p * q * np.exp(-c / penalty)) ** (penalty / (2 * penalty + epsilon))
    found = entropic_distance([p], [q], [[c]], epsilon, mass_penalty=penalty)
    assert found == pytest.approx(penalty * (p + q) - (2 * penalty + epsilon) * mass)


def test_a_small_epsilon_approaches_the_costs_without_regularisation():
    cost, (p, q) = draw_space(3)
    exact = wasserstein_distance(p, q, cost)
    gaps = [abs(entropic_distance(p, q, cost, e) - exact) for e in (0.1, 0.03, 0.01)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 0.05
    free = unbalanced_distance(p, 2 * q, cost, 1.0)
    gaps = [abs(entropic_distance(p, 2 * q, cost, e, mass_penalty=1.0) - free) for e in (0.1, 0.01)]
    assert gaps[1] < gaps[0] / 3


def test_the_divergence_goes_from_wasserstein_to_mmd_and_is_0_between_equals():
    cost, (p, q) = draw_space(4)
    exact = wasserstein_distance(p, q, cost)
    mmd = -(p - q) @ cost @ (p - q) / 2
    found = [sinkhorn_divergence(p, q, cost, e) for e in (0.005, 0.1, 2.0, 1e5)]
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(exact, rel=0.05)
    assert found[-1] == pytest.approx(mmd, rel=1e-4)
    np.testing.assert_allclose(sinkhorn_divergence([p, q], [p, q], cost, 0.2), 0, atol=1e-9)


def test_only_balanced_rows_are_divided_by_their_sums():
    cost, (p, q) = draw_space(5)
    assert entropic_distance(7 * p, q, cost, 0.3) == pytest.approx(
        entropic_distance(p, q, cost, 0.3)
    )
    near, far = (entropic_distance(s * p, q, cost, 0.3, mass_penalty=1.0) for s in (1, 7))
    assert far > near + 0.1


def test_no_answer_has_no_distance_and_leaves_the_others_alone():
    cost, (p, q) = draw_space(6)
    for penalty in (None, 1.0):
        found = entropic_distance([p, 0 * p], [q, q], cost, 0.3, mass_penalty=penalty)
        alone = entropic_distance(p, q, cost, 0.3, mass_penalty=penalty)
        np.testing.assert_allclose(found, [alone, np.nan])


def test_labels_without_mass_change_nothing():
    cost, (p, q) = draw_space(7)
    wide = np.pad(cost, (0, 1), constant_values=0.1)
    for penalty in (None, 1.0):
        found = entropic_distance(np.append(p, 0), np.append(q, 0), wide, 0.3, mass_penalty=penalty)
        assert found == pytest.approx(entropic_distance(p, q, cost, 0.3, mass_penalty=penalty))


def test_distances_that_do_not_settle_warn_and_stay_lower_bounds(monkeypatch):
    cost, (p, q) = draw_space(8)
    right = entropic_distance(p, q, cost, 0.05)
    monkeypatch.setattr(transport, "_MAX_SWEEPS", 2)
    with pytest.warns(ConvergenceWarning, match="did not settle in 2 sweeps.*lower bounds"):
        assert entropic_distance(p, q, cost, 0.05) <= right + 1e-9


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match="`epsilon` must be finite and above 0; got 0"):
        entropic_distance([1, 0], [1, 0], np.zeros((2, 2)), 0)
    with pytest.raises(InvalidInputError, match="`mass_penalty` must be finite and above 0"):
        entropic_distance([1, 0], [1, 0], np.zeros((2, 2)), 1.0, mass_penalty=-1)
    with pytest.raises(InvalidInputError, match=r"shape \(2, 3\); got \(2, 2\)"):
        entropic_distance([1, 0], [1, 0, 0], np.zeros((2, 2)), 1.0)
