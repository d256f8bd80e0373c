"""Entropy, smoothness and diversity: closed forms, and beside the solver."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st

import wassemble as ws
from wassemble import InvalidInputError
from wassemble.metrics import (
    coupling_entropy,
    entropy,
    pairwise_diversity,
    properties,
    smoothness_energy,
    wasserstein_distance,
)


def draw_space(seed, n_labels=5, n_samples=4):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n_labels, 3))
    squares = ((vectors[:, None] - vectors) ** 2).sum(axis=2)
    return vectors, squares, rng.dirichlet(np.full(n_labels, 0.5), size=n_samples)


@given(st.integers(0, 2**16), st.integers(1, 6))
def test_entropy_is_that_of_scipy_and_bounded(seed, n_labels):
    _, _, histograms = draw_space(seed, n_labels)
    found = entropy(histograms)
    np.testing.assert_allclose(found, scipy.stats.entropy(histograms, axis=1), atol=1e-12)
    assert np.all((found >= 0) & (found <= math.log(n_labels) + 1e-12))
    np.testing.assert_allclose(entropy(7 * histograms), found, atol=1e-12)


def test_entropy_of_known_histograms():
    assert entropy(np.ones(8)) == pytest.approx(math.log(8))
    assert entropy(np.full(8, 1e308)) == pytest.approx(math.log(8))  # the sum would overflow
    np.testing.assert_allclose(entropy([[0, 1], [1, 1]]), [0, math.log(2)])
    assert entropy(np.ones((2, 3, 4))).shape == (2, 3)


@given(st.integers(0, 2**16), st.integers(1, 6))
def test_smoothness_energy_is_the_double_sum_and_twice_the_variance(seed, n_labels):
    vectors, squares, histograms = draw_space(seed, n_labels)
    found = smoothness_energy(histograms, squares)
    pairs = histograms[:, :, None] * histograms[:, None]
    np.testing.assert_allclose(found, (pairs * squares).sum(axis=(1, 2)), atol=1e-12)
    mean = histograms @ vectors
    variance = histograms @ (vectors**2).sum(axis=1) - (mean**2).sum(axis=1)
    np.testing.assert_allclose(found, 2 * variance, atol=1e-9)
    np.testing.assert_allclose(smoothness_energy(histograms[0], squares), found[0])


def test_smoothness_energy_is_the_same_piece_by_piece(monkeypatch):
    _, squares, histograms = draw_space(0, n_samples=7)
    whole = smoothness_energy(histograms, squares)
    monkeypatch.setattr(properties, "_N_ROWS", 3)
    np.testing.assert_allclose(smoothness_energy(histograms, squares), whole, rtol=1e-12)


def test_a_row_without_an_answer_has_no_properties():
    rows = [[0, 0], [np.nan, np.nan], [1, 1]]
    cost = [[0, 1], [1, 0]]
    for found in (entropy(rows), smoothness_energy(rows, cost)):
        np.testing.assert_array_equal(np.isnan(found), [True, True, False])


def test_the_consensus_is_smoother_than_the_models_on_a_line():
    places = np.linspace(0, 1, 21)
    squares = (places[:, None] - places) ** 2
    models = np.exp(-((places - np.array([[0.2], [0.8]])) ** 2) / 0.02)[:, None]
    models /= models.sum(axis=2, keepdims=True)
    kernel = ws.kernels.from_cost(squares, 2e-3, symmetric=True)
    fused = ws.solve_barycenter(models, kernel, debias=True, max_iterations=5000).barycenter
    energy = smoothness_energy(fused, squares)[0]
    assert energy < smoothness_energy(models, squares).mean()  # proposition 1.3
    assert smoothness_energy(models.mean(axis=0), squares)[0] > 10 * energy


@settings(max_examples=8)
@given(st.integers(0, 2**10))
def test_diversity_is_the_mean_over_pairs(seed):
    _, squares, _ = draw_space(seed, n_labels=3)
    rng = np.random.default_rng(seed)
    models = rng.dirichlet(np.ones(3), size=(3, 2))
    found = pairwise_diversity(models, squares)
    pairs = [(0, 1), (0, 2), (1, 2)]
    expected = [wasserstein_distance(models[a], models[b], squares) for a, b in pairs]
    np.testing.assert_allclose(found, np.mean(expected, axis=0))
    np.testing.assert_allclose(pairwise_diversity(models[[2, 0, 1]], squares), found, atol=1e-9)
    np.testing.assert_allclose(pairwise_diversity([models[0]] * 3, squares), 0, atol=1e-9)


def test_diversity_counts_the_models_that_answer():
    models = np.array(
        [[[1, 0], [1, 0], [1, 0]], [[0, 1], [0, 1], [0, 0]], [[0, 1], [0, 0], [0, 0]]]
    )
    found = pairwise_diversity(models, [[0, 3], [3, 0]])
    np.testing.assert_allclose(found, [2, 3, np.nan])


def test_entropic_diversity_is_close_to_the_exact_one():
    _, squares, _ = draw_space(3)
    models = np.random.default_rng(3).dirichlet(np.ones(5), size=(2, 4))
    exact = pairwise_diversity(models, squares)
    found = pairwise_diversity(models, squares, epsilon=0.05)
    assert np.all(found >= exact - 1e-9)
    np.testing.assert_allclose(found, exact, atol=0.02)


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match=r"\(..., n_labels\).*got shape \(\)"):
        entropy(1.0)
    with pytest.raises(
        InvalidInputError, match="must not be negative; got -1 at sample 0, label 0"
    ):
        entropy([-1.0, 2.0])
    with pytest.raises(InvalidInputError, match=r"each of the 2 labels; got shape \(3, 3\)"):
        smoothness_energy([1, 0], np.zeros((3, 3)))
    with pytest.raises(InvalidInputError, match="at least two models; got 1"):
        pairwise_diversity([[[1, 0]]], np.zeros((2, 2)))
    with pytest.raises(InvalidInputError, match=r"models of shape \(1, 2\), \(2, 2\)"):
        pairwise_diversity([[[1, 0]], [[1, 0], [1, 0]]], np.zeros((2, 2)))
    with pytest.raises(InvalidInputError, match=r"symmetric.*got 1 and 2 between labels 0 and 1"):
        pairwise_diversity([[[1, 0]], [[1, 0]]], [[0, 1], [2, 0]])


@given(st.integers(0, 2**16), st.integers(1, 4))
def test_entropy_of_a_coupling_is_its_formula(seed, n_source):
    coupling = np.random.default_rng(seed).uniform(0.01, 1, size=(n_source, 3))
    expected = -(coupling * (np.log(coupling) - 1)).sum()
    assert coupling_entropy(coupling) == pytest.approx(expected)
    wider = np.pad(coupling, 1)  # pairs without mass add nothing
    assert coupling_entropy(wider) == pytest.approx(expected)
