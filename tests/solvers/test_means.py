"""Means, and the paper's propositions about them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import logsumexp

import wassemble as ws
from wassemble.solvers import ARITHMETIC, GEOMETRIC, HELLINGER, GatedMean, PowerMean

positive = arrays(np.float64, (3, 4, 5), elements=st.floats(1e-6, 1e3))
WEIGHTS = np.array([0.2, 0.3, 0.5])
MEANS = (ARITHMETIC, GEOMETRIC, HELLINGER)


def weighted(array, order):
    if order == 0:
        return np.exp(np.einsum("l,lsj->sj", WEIGHTS, np.log(array)))
    return np.einsum("l,lsj->sj", WEIGHTS, array**order) ** (1 / order)


@given(positive, st.sampled_from([0.0, 1e-9, 0.1, 0.5, 1.0, 3.0]))
def test_power_mean_is_the_textbook_formula(array, order):
    expected = weighted(array, 0.0 if order == 1e-9 else order)
    got = PowerMean(order).fuse(array, weights=WEIGHTS).consensus
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@given(positive)
def test_means_are_ordered(array):
    geometric, hellinger, arithmetic = (
        mean.fuse(array, weights=WEIGHTS).consensus for mean in (GEOMETRIC, HELLINGER, ARITHMETIC)
    )
    assert (geometric <= hellinger * (1 + 1e-9)).all()
    assert (hellinger <= arithmetic * (1 + 1e-9)).all()


@pytest.mark.parametrize("mean", MEANS)
def test_a_list_of_arrays_a_stack_and_a_single_sample_agree(mean, rng):
    array = rng.uniform(size=(3, 4, 5))
    stacked = mean.fuse(array, weights=WEIGHTS).consensus
    np.testing.assert_array_equal(mean.fuse(list(array), weights=WEIGHTS).consensus, stacked)
    np.testing.assert_allclose(mean.fuse(array[:, 2], weights=WEIGHTS).consensus, stacked[2])
    per_label = np.repeat(WEIGHTS[:, None], 5, axis=1)
    np.testing.assert_allclose(mean.fuse(array, weights=per_label).consensus, stacked)
    np.testing.assert_allclose(mean.fuse(array[:, 1], weights=per_label).consensus, stacked[1])
    np.testing.assert_allclose(
        mean.fuse(array).consensus, mean.fuse(array, weights=np.full(3, 1 / 3)).consensus
    )


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_floating_type_is_kept(mean, dtype, rng):
    array = rng.uniform(size=(3, 4, 5)).astype(dtype)
    assert mean.fuse(array).consensus.dtype == dtype
    assert mean.fuse(array, weights=WEIGHTS.astype(dtype)).consensus.dtype == dtype


def test_a_zero_is_a_veto_unless_its_weight_is_zero():
    histograms = [[0.0, 0.5], [0.4, 0.5]]
    np.testing.assert_allclose(GEOMETRIC.fuse(histograms).consensus, [0, 0.5])
    np.testing.assert_allclose(GEOMETRIC.fuse(histograms, weights=[0, 1]).consensus, [0.4, 0.5])
    per_label = [[0.0, 0.5], [1.0, 0.5]]
    np.testing.assert_allclose(GEOMETRIC.fuse(histograms, weights=per_label).consensus, [0.4, 0.5])
    np.testing.assert_allclose(HELLINGER.fuse(histograms, weights=[0, 1]).consensus, [0.4, 0.5])
    assert PowerMean(0.3).fuse([[0.0], [0.0]]).consensus.tolist() == [0]


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [1.5, 10.0, 300.0, 1e6, 1e30, 1e308])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_powers_of_any_order_stay_in_range(library, dtype, order, scale):
    array = np.array([[[0.5, 0.0, 1e-6, 1.0]], [[0.25, 0.5, 1e-6, 0.0]], [[0.1, 0.5, 1e-6, 0.9]]])
    log_shares = np.log(WEIGHTS)[:, None, None]
    with np.errstate(divide="ignore", over="ignore"):
        expected = scale * np.exp(logsumexp(order * np.log(array) + log_shares, axis=0) / order)
    if order > 1e300:
        expected = scale * array.max(axis=0)
    given = (scale * array).astype(dtype)
    if library == "torch":
        given = pytest.importorskip("torch").asarray(given)
    for rule in (PowerMean(order), GatedMean(order, n_top=4, floor=0.5)):
        got = np.asarray(rule.fuse(given, weights=WEIGHTS).consensus)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, expected, rtol=1e-4 if dtype == "float32" else 1e-12)


def extended_kl(p, q):
    return (p * np.log(p / q) - p + q).sum()


def test_the_arithmetic_mean_is_the_frechet_mean_of_the_squared_distance(rng):
    """Proposition on the arithmetic mean, point 1."""
    models = rng.uniform(0.1, 1, size=(3, 4))
    found = minimize(
        lambda p: sum(w * ((p - m) ** 2).sum() for w, m in zip(WEIGHTS, models, strict=True)),
        np.ones(4),
    )
    np.testing.assert_allclose(
        ARITHMETIC.fuse(models, weights=WEIGHTS).consensus, found.x, atol=1e-5
    )


def test_the_geometric_mean_is_the_frechet_mean_of_the_extended_kl(rng):
    """Proposition on the geometric mean, point 1."""
    models = rng.uniform(0.1, 1, size=(3, 4))

    def loss(log_p):
        return sum(w * extended_kl(np.exp(log_p), m) for w, m in zip(WEIGHTS, models, strict=True))

    found = minimize(loss, np.zeros(4))
    np.testing.assert_allclose(
        GEOMETRIC.fuse(models, weights=WEIGHTS).consensus, np.exp(found.x), atol=1e-4
    )


@given(st.integers(0, 1000))
def test_the_geometric_mean_is_no_further_from_an_oracle_than_the_models(seed):
    """Proposition on the geometric mean, points 2 and 3."""
    oracle, *models = np.random.default_rng(seed).dirichlet(np.ones(5), size=4)
    mean = GEOMETRIC.fuse(models, weights=WEIGHTS).consensus
    arithmetic = ARITHMETIC.fuse(models, weights=WEIGHTS).consensus
    average = sum(w * extended_kl(oracle, m) for w, m in zip(WEIGHTS, models, strict=True))
    assert extended_kl(oracle, mean) <= average + 1e-12
    assert abs(extended_kl(oracle, mean) - average) <= np.abs(mean - arithmetic).sum() + 1e-12


@given(st.integers(0, 1000))
def test_the_arithmetic_mean_is_close_to_an_oracle_and_at_least_as_uncertain(seed):
    """Proposition on the arithmetic mean, points 2 and 3."""
    oracle, *models = np.random.default_rng(seed).dirichlet(np.ones(5), size=4)
    mean = ARITHMETIC.fuse(models, weights=WEIGHTS).consensus
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
        GEOMETRIC.fuse(arguments.pop("histograms"), **arguments)


@pytest.mark.parametrize("order", [-1.0, np.nan, np.inf, "one", None])
def test_the_order_must_be_a_number_of_at_least_zero(order):
    with pytest.raises(ws.InvalidInputError, match=r"`order` must be .* at least 0"):
        PowerMean(order)
