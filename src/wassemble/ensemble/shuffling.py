"""Shuffles according to the neighbourhoods of K: a label and its nearest, its star.

The best labels of each model are hubs; scores change places inside the star of each. A hub's mass
falls on one of its neighbours, another one in every model, and what is near them all is the hub: a
rule that knows K can find it. In groups without a middle, where each label is as central as any
other, nothing could be found again.
"""

from __future__ import annotations

import numpy as np

from wassemble.inputs import Predictions
from wassemble.kernels import LabelledKernel
from wassemble.labels import LabelSpace

N_HUBS = 10


def label_similarity(kernel: LabelledKernel) -> np.ndarray:
    """Similarity of each pair of different labels, relative to the rows, both ways alike."""
    target: LabelSpace = kernel.target
    dense = np.asarray(kernel.align(target, target).to_dense(), dtype=np.float64)
    largest = dense.max(axis=1, keepdims=True)
    relative = np.divide(dense, largest, out=np.zeros_like(dense), where=largest > 0)
    similar = (relative + relative.T) / 2
    np.fill_diagonal(similar, 0)
    return similar


def shuffle_model(
    model: Predictions,
    similar: np.ndarray,
    labels: LabelSpace,
    size: int,
    rng: np.random.Generator,
) -> Predictions:
    """A model whose scores are shuffled inside stars of ``size``, anew for each sample.

    ``similar`` is between ``labels``, of which the model may have some; its other labels keep
    their scores.
    """
    known = LabelSpace([name for name in model.labels if name in labels])
    among, mine = labels.places(known), model.labels.places(known)
    stars = make_stars(similar[np.ix_(among, among)], min(size, len(known)))
    scores = model.scores.copy()
    keys = rng.random((len(scores), len(known)))
    scores[:, mine] = shuffle_stars(scores[:, mine], stars, keys, n_hubs=N_HUBS)
    return model.replace(scores=scores)


def make_stars(similar: np.ndarray, size: int) -> np.ndarray:
    """Each label and its most similar ones, of shape (n_labels, size).

    ``similar``, (n_labels, n_labels), has a diagonal of 0. A label that has fewer similar ones,
    those above 0, has ``n_labels`` in the last places.

    Examples
    --------
    >>> make_stars(np.array([[0, 0.5, 0.2], [0.5, 0, 0], [0.2, 0, 0]]), 3)
    array([[0, 1, 2],
           [1, 0, 3],
           [2, 0, 3]])
    """
    n_labels = len(similar)
    near = np.argpartition(-similar, size - 1, axis=1)[:, : size - 1]
    is_near = np.take_along_axis(similar, near, axis=1) > 0
    near = np.sort(np.where(is_near, near, n_labels), axis=1)
    return np.concatenate([np.arange(n_labels)[:, None], near], axis=1)


def shuffle_stars(
    scores: np.ndarray, stars: np.ndarray, keys: np.ndarray, *, n_hubs: int
) -> np.ndarray:
    """Scores that changed places inside the stars of each row's ``n_hubs`` best labels.

    The best label comes first; what has moved once stays where it is, else mass would wander from
    star to star. Labels whose star is empty are no hubs. ``keys``, random numbers of the shape of
    ``scores``, are the permutation: rows with the same keys and hubs are shuffled alike.

    Examples
    --------
    >>> stars = np.array([[0, 1], [1, 0], [2, 3]])
    >>> shuffle_stars(np.array([[0.6, 0.3, 0.1]]), stars, np.array([[0.9, 0.2, 0.5]]), n_hubs=1)
    array([[0.3, 0.6, 0.1]])
    """
    n_rows, n_labels = scores.shape
    is_hub = (stars[:, 1:] < n_labels).any(axis=1)
    hubs = _best(np.where(is_hub, scores, -np.inf), n_hubs)
    # One place more, for the empty places of stars: its key is the largest, so it stays.
    shuffled = np.concatenate([scores, np.zeros((n_rows, 1), scores.dtype)], axis=1)
    keys = np.concatenate([keys, np.full((n_rows, 1), np.inf)], axis=1)
    is_free = np.ones(shuffled.shape, dtype=bool)
    for hub in hubs.T:
        star = stars[hub]
        may_move = np.take_along_axis(is_free, star, axis=1) & is_free[np.arange(n_rows), hub, None]
        star = np.sort(np.where(may_move, star, n_labels), axis=1)
        np.put_along_axis(is_free, star, values=False, axis=1)
        order = np.take_along_axis(keys, star, axis=1).argsort(axis=1, kind="stable")
        moved = np.take_along_axis(shuffled, np.take_along_axis(star, order, axis=1), axis=1)
        np.put_along_axis(shuffled, star, moved, axis=1)
    return shuffled[:, :n_labels]


def _best(scores: np.ndarray, n_best: int) -> np.ndarray:
    """The places of the best scores of each row, from the best on."""
    n_best = min(n_best, scores.shape[1])
    places = np.argpartition(-scores, n_best - 1, axis=1)[:, :n_best]
    order = np.take_along_axis(-scores, places, axis=1).argsort(axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)
