"""Shuffles among labels of like meaning: who belongs to a star, and what becomes of scores."""

import numpy as np
import pytest

from wassemble.ensemble.shuffling import (
    label_similarity,
    make_stars,
    shuffle_model,
    shuffle_stars,
)
from wassemble.inputs import Predictions
from wassemble.kernels import from_ratings
from wassemble.labels import LabelSpace

N_LABELS = 30


@pytest.fixture
def scores(rng):
    return rng.dirichlet(np.full(N_LABELS, 0.2), size=50).astype(np.float32)


@pytest.fixture
def similar(rng):
    both = rng.random((N_LABELS, N_LABELS))
    both = both + both.T
    np.fill_diagonal(both, 0)
    both[-3:] = both[:, -3:] = 0  # three labels without neighbours
    return both


def test_a_star_is_a_label_with_its_most_similar_ones(similar):
    stars = make_stars(similar, 4)
    for label in range(N_LABELS - 3):
        assert stars[label, 0] == label
        assert set(stars[label, 1:]) == set(np.argsort(-similar[label])[:3])
    assert (stars[-3:, 1:] == N_LABELS).all()
    assert make_stars(similar, 1).shape == (N_LABELS, 1)


def test_every_score_is_there_again_and_labels_without_neighbours_keep_theirs(scores, similar, rng):
    moved = shuffle_stars(scores, make_stars(similar, 5), rng.random(scores.shape), n_hubs=10)
    assert np.array_equal(np.sort(moved, axis=1), np.sort(scores, axis=1))
    assert np.array_equal(moved[:, -3:], scores[:, -3:])
    assert not np.array_equal(moved, scores)
    assert moved.dtype == scores.dtype


def test_the_best_score_stays_in_the_star_of_its_label(scores, similar, rng):
    stars = make_stars(similar, 5)
    moved = shuffle_stars(scores, stars, rng.random(scores.shape), n_hubs=10)
    hubs = scores[:, :-3].argmax(axis=1)
    for row, hub in enumerate(hubs):
        assert scores[row, hub] in moved[row, stars[hub]]


def test_the_same_keys_shuffle_alike_and_stars_of_one_nothing(scores, similar, rng):
    keys = rng.random(scores.shape)
    stars = make_stars(similar, 5)
    first, second = (shuffle_stars(scores, stars, keys, n_hubs=3) for _ in range(2))
    assert np.array_equal(first, second)
    alone = shuffle_stars(scores, make_stars(similar, 1), keys, n_hubs=3)
    assert np.array_equal(alone, scores)


def test_a_model_with_other_labels_is_shuffled_among_those_that_it_shares(rng):
    labels = LabelSpace(["a", "b", "c"])
    similar = np.array([[0, 0.9, 0.5], [0.9, 0, 0], [0.5, 0, 0]])
    model = Predictions("m", range(20), ["d", "b", "a"], rng.random((20, 3)), kind="multilabel")
    moved = shuffle_model(model, similar, labels, 3, rng).scores
    assert np.array_equal(moved[:, 0], model.scores[:, 0])
    assert np.array_equal(np.sort(moved[:, 1:], axis=1), np.sort(model.scores[:, 1:], axis=1))
    assert 0 < (moved[:, 1] != model.scores[:, 1]).sum() < 20  # each sample anew


def test_similarity_is_that_of_different_labels_both_ways():
    kernel = from_ratings(np.array([[2.0, 1.0], [0.0, 4.0]]), ["a", "b"])
    assert label_similarity(kernel) == pytest.approx(np.array([[0, 0.25], [0.25, 0]]))
