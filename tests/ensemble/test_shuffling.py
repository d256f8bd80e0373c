"""Shuffles among labels of like meaning."""

import numpy as np
import pytest

from wassemble.ensemble.shuffling import group_labels, label_similarity, shuffle_inside
from wassemble.inputs import Predictions
from wassemble.kernels import from_ratings

LABELS = ["a", "b", "c", "d", "e", "f"]


def test_groups_hold_neighbours_and_each_label_once():
    similar = np.array([[0, 0.9, 0.1, 0], [0.9, 0, 0, 0], [0.1, 0, 0, 0.5], [0, 0, 0.5, 0]])
    assert group_labels(similar, 1) == [[0], [1], [2], [3]]
    assert group_labels(similar, 2) == [[0, 1], [2, 3]]
    assert group_labels(similar, 4) == [[0, 1, 2], [3]]  # label 3 is like 2 only


def test_shuffling_stays_inside_its_groups(rng):
    models = [
        Predictions(name, range(20), LABELS, rng.random((20, 6)), kind="multilabel")
        for name in ("first", "second")
    ]
    turned = shuffle_inside(models, [["a", "b"], ["c", "d", "e"]], rng)
    moved = []
    for before, after in zip(models, turned, strict=True):
        for some in (slice(0, 2), slice(2, 5), slice(5, 6)):
            old, new = (np.sort(m.scores[:, some], axis=1) for m in (before, after))
            assert np.array_equal(old, new)
        moved.append(before.scores[:, 0] != after.scores[:, 0])
    # Each sample of each model is shuffled anew.
    assert 0 < moved[0].sum() < 20
    assert not np.array_equal(moved[0], moved[1])


def test_similarity_is_that_of_different_labels_both_ways():
    kernel = from_ratings(np.array([[2.0, 1.0], [0.0, 4.0]]), ["a", "b"])
    assert label_similarity(kernel) == pytest.approx(np.array([[0, 0.25], [0.25, 0]]))
