"""Means, and the paper's propositions about them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

import wassemble as ws
from wassemble.solvers import arithmetic_mean, geometric_mean, hellinger_mean, power_mean

positive = arrays(np.float64, (3, 4, 5), elements=st.floats(1e-6, 1e3))
WEIGHTS = np.array([0.2, 0.3, 0.5])
MEANS = (arithmetic_mean, geometric_mean, hellinger_mean)


def weighted(array, order):
    if order == 0:
        return np.exp(np.einsum("l,lsj->sj", WEIGHTS, np.log(array)))
    return np.einsum("l,lsj->sj", WEIGHTS, array**order) ** (1 / order)


@given(positive, st.sampled_from([0.0, 1e-9, 0.1, 0.5, 1.0, 3.0]))
def test_power_mean_is_the_textbook_formula(array, order):
    expected = weighted(array, 0.0 if order == 1e-9 else order)
    got = power_mean(array, weights=WEIGHTS, order=order)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@given(positive)
def test_means_are_ordered(array):
    geometric, hellinger, arithmetic = (
        mean(array, weights=WEIGHTS)
        for mean in (
            geometric_mean,
            hellinger_mean,
            arithmetic_mean,
        )
    )
    assert (geometric <= hellinger * (1 + 1e-9)).all()
    assert (hellinger <= arithmetic * (1 + 1e-9)).all()


@pytest.mark.parametrize("mean", MEANS)
def test_a_list_of_arrays_a_stack_and_a_single_sample_agree(mean, rng):
    array = rng.uniform(size=(3, 4, 5))
    stacked = mean(array, weights=WEIGHTS)
    np.testing.assert_array_equal(mean(list(array), weights=WEIGHTS), stacked)
    np.testing.assert_allclose(mean(array[:, 2], weights=WEIGHTS), stacked[2])
    per_label = np.repeat(WEIGHTS[:, None], 5, axis=1)
    np.testing.assert_allclose(mean(array, weights=per_label), stacked)
    np.testing.assert_allclose(mean(array[:, 1], weights=per_label), stacked[1])
    np.testing.assert_allclose(mean(array), mean(array, weights=np.full(3, 1 / 3)))


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_floating_type_is_kept(mean, dtype, rng):
    array = rng.uniform(size=(3, 4, 5)).astype(dtype)
    assert mean(array).dtype == dtype
    assert mean(array, weights=WEIGHTS.astype(dtype)).dtype == dtype


def test_a_zero_is_a_veto_unless_its_weight_is_zero():
    histograms = [[0.0, 0.5], [0.4, 0.5]]
    np.testing.assert_allclose(geometric_mean(histograms), [0, 0.5])
    np.testing.assert_allclose(geometric_mean(histograms, weights=[0, 1]), [0.4, 0.5])
    per_label = [[0.0, 0.5], [1.0, 0.5]]
    np.testing.assert_allclose(geometric_mean(histograms, weights=per_label), [0.4, 0.5])
    np.testing.assert_allclose(hellinger_mean(histograms, weights=[0, 1]), [0.4, 0.5])
    assert power_mean([[0.0], [0.0]], order=0.3).tolist() == [0]


def extended_kl(p, q):
    return (p * np.log(p / q) - p + q).sum()


def test_the_arithmetic_mean_is_the_frechet_mean_of_the_squared_distance(rng):
    """Proposition on the arithmetic mean, point 1."""
    models = rng.uniform(0.1, 1, size=(3, 4))
    found = minimize(
        lambda p: sum(w * ((p - m) ** 2).sum() for w, m in zip(WEIGHTS, models, strict=True)),
        np.ones(4),
    )
    np.testing.assert_allclose(arithmetic_mean(models, weights=WEIGHTS), found.x, atol=1e-5)


def test_the_geometric_mean_is_the_frechet_mean_of_the_extended_kl(rng):
    """Proposition on the geometric mean, point 1."""
    models = rng.uniform(0.1, 1, size=(3, 4))

    def loss(log_p):
        return sum(w * extended_kl(np.exp(log_p), m) for w, m in zip(WEIGHTS, models, strict=True))

    found = minimize(loss, np.zeros(4))
    np.testing.assert_allclose(geometric_mean(models, weights=WEIGHTS), np.exp(found.x), atol=1e-4)


@given(st.integers(0, 1000))
def test_the_geometric_mean_is_no_further_from_an_oracle_than_the_models(seed):
    """Proposition on the geometric mean, points 2 and 3."""
    oracle, *models = np.random.default_rng(seed).dirichlet(np.ones(5), size=4)
    mean = geometric_mean(models, weights=WEIGHTS)
    arithmetic = arithmetic_mean(models, weights=WEIGHTS)
    average = sum(w * extended_kl(oracle, m) for w, m in zip(WEIGHTS, models, strict=True))
    assert extended_kl(oracle, mean) <= average + 1e-12
    assert abs(extended_kl(oracle, mean) - average) <= np.abs(mean - arithmetic).sum() + 1e-12


@given(st.integers(0, 1000))
def test_the_arithmetic_mean_is_close_to_an_oracle_and_at_least_as_uncertain(seed):
    """Proposition on the arithmetic mean, points 2 and 3."""
    oracle, *models = np.random.default_rng(seed).dirichlet(np.ones(5), size=4)
    mean = arithmetic_mean(models, weights=WEIGHTS)
    squares = sum(w * ((oracle - m) ** 2).sum() for w, m in zip(WEIGHTS, models, strict=True))
    assert ((oracle - mean) ** 2).sum() <= 2 * squares

    def entropy(p):
        return -(p * np.log(p)).sum()

    # The paper's sum runs over ordered pairs; strong convexity gives it once per pair.
    spread = sum(
        WEIGHTS[a] * WEIGHTS[b] * np.abs(models[a] - models[b]).sum() ** 2
        for a in range(3)
        for b in range(a)
    )
    average = sum(w * entropy(m) for w, m in zip(WEIGHTS, models, strict=True))
    assert entropy(mean) >= average + spread / 2 - 1e-12


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"histograms": []}, "at least one model; got none"),
        ({"histograms": 3.0}, "one array per model; got float"),
        (
            {"histograms": [[0.5, 0.5], [1.0]]},
            "must have the same label set, not empty; got 2, 1 labels",
        ),
        (
            {"histograms": [[0.5, -0.5]]},
            "must not be negative; got -0.5 at model 0, sample 0, source label 1",
        ),
        (
            {"histograms": [[[0.5, np.nan]]]},
            "must not be nan; got nan at model 0, sample 0, source label 1",
        ),
        ({"histograms": [["a", "b"]]}, "must hold real numbers"),
        ({"histograms": [[0.5, 0.5]], "weights": [0.5]}, r"must sum to 1 .*; got 0.5"),
        ({"histograms": [[0.5, 0.5]], "weights": [0.5, 0.5]}, r"`weights` must have shape \(1,\)"),
        (
            {"histograms": np.ones((2, 3)), "weights": [-0.5, 1.5]},
            "must not be negative; got -0.5 at model 0",
        ),
    ],
)
def test_bad_input_gets_one_clear_error(arguments, words):
    with pytest.raises(ws.InvalidInputError, match=words):
        geometric_mean(arguments.pop("histograms"), **arguments)


@pytest.mark.parametrize("order", [-1.0, np.nan, np.inf, "one", None])
def test_the_order_must_be_a_number_of_at_least_zero(order):
    with pytest.raises(ws.InvalidInputError, match=r"`order` must be .* at least 0"):
        power_mean([[1.0]], order=order)
