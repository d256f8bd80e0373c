"""Extended KL and unbalanced distances: closed forms, limits, beside POT."""

import numpy as np
import ot
import pytest
from hypothesis import given, settings, strategies as st

from wassemble import ConvergenceWarning, InvalidInputError
from wassemble.metrics import extended_kl, transport, unbalanced_distance, wasserstein_distance


def draw_scores(seed, n_source=4, n_target=5):
    rng = np.random.default_rng(seed)
    p, q = rng.uniform(0.1, 1, size=n_source), rng.uniform(0.1, 2, size=n_target)
    return p, q, rng.uniform(size=(n_source, n_target))


@given(st.integers(0, 2**16))
def test_extended_kl_is_its_formula_and_0_for_equals(seed):
    p, q = np.random.default_rng(seed).uniform(0.1, 2, size=(2, 6))
    assert extended_kl(p, q) == pytest.approx((p * np.log(p / q) - p + q).sum())
    assert extended_kl(p, q) >= 0
    assert extended_kl(p, p) == 0


def test_extended_kl_at_zeros():
    found = extended_kl([[0, 1], [1, 0], [0, 0]], [[0, 1], [0, 1], [2, 1]])
    np.testing.assert_array_equal(found, [0, np.inf, 3])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from([0.1, 1.0, 5.0]))
def test_unbalanced_distance_is_the_least_value_that_pot_finds(seed, mass_penalty):
    p, q, cost = draw_scores(seed)
    plan = ot.unbalanced.mm_unbalanced(
        p, q, cost, mass_penalty, div="kl", numItermax=20_000, stopThr=1e-14
    )
    expected = (plan * cost).sum() + mass_penalty * (
        extended_kl(plan.sum(axis=1), p) + extended_kl(plan.sum(axis=0), q)
    )
    found = unbalanced_distance(p, q, cost, mass_penalty)
    # What POT found is a coupling, so its value is no lower; it creeps down to the least.
    assert found <= expected + 1e-9
    assert found == pytest.approx(expected, rel=1e-3)


@given(st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0, 3), st.floats(0.1, 10))
def test_one_label_on_each_side_has_a_formula(p, q, cost, mass_penalty):
    # Stationary: cost + mass_penalty (log(m / p) + log(m / q)) = 0.
    mass = np.sqrt(p * q) * np.exp(-cost / (2 * mass_penalty))
    expected = mass_penalty * (p + q - 2 * mass)
    found = unbalanced_distance([p], [q], [[cost]], mass_penalty)
    assert found == pytest.approx(expected, abs=1e-7 * mass_penalty)


def test_a_large_penalty_keeps_equal_masses_and_prices_unequal_ones():
    p, q, cost = draw_scores(0)
    p, q = p / p.sum(), q / q.sum()
    exact = wasserstein_distance(p, q, cost)
    assert unbalanced_distance(p, q, cost, 1e4) == pytest.approx(exact, abs=1e-3)
    # Divided by the penalty it tends to the squared difference of the masses' roots ...
    found = unbalanced_distance(p, 4 * q, cost, 1e5) / 1e5
    assert found == pytest.approx((1 - 2) ** 2, rel=1e-3)


def test_labels_that_may_not_mix_give_the_hellinger_distance():
    p, q = np.random.default_rng(1).uniform(0.1, 2, size=(2, 4))
    walls = 1e4 * (1 - np.eye(4))
    expected = 3 * np.square(np.sqrt(p) - np.sqrt(q)).sum()
    assert unbalanced_distance(p, q, walls, 3.0) == pytest.approx(expected, abs=1e-6)


def test_no_mass_on_a_side_costs_all_of_the_other():
    found = unbalanced_distance(
        [[0, 0], [1, 0], [0, 0]], [[2, 1], [0, 0], [0, 0]], np.ones((2, 2)), 2
    )
    np.testing.assert_allclose(found, [6, 2, 0])


def test_a_distance_that_does_not_settle_warns_and_is_a_lower_bound(monkeypatch):
    p, q, cost = draw_scores(2)
    right = unbalanced_distance(p, q, cost, 1.0)
    monkeypatch.setattr(transport, "_MAX_STEPS", 3)
    with pytest.warns(ConvergenceWarning, match="did not settle: row 0 is known to"):
        assert unbalanced_distance(p, q, cost, 1.0) <= right + 1e-9


def test_bad_input_is_named(monkeypatch):
    with pytest.raises(InvalidInputError, match=r"same shape; got \(2,\) and \(3,\)"):
        extended_kl([1, 0], [1, 0, 0])
    with pytest.raises(InvalidInputError, match="`mass_penalty` must be finite and above 0"):
        unbalanced_distance([1], [1], [[0]], 0)
    monkeypatch.setattr(transport, "_MAX_PAIRS", 3)
    with pytest.raises(
        InvalidInputError, match=r"got 2 x 2 at histogram 0\.\nhint: `entropic_distance`"
    ):
        unbalanced_distance([1, 1], [1, 1], np.ones((2, 2)), 1)
