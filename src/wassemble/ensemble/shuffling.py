"""Shuffles among labels of like meaning: groups of neighbours, and scores shuffled inside."""

from collections.abc import Sequence

import numpy as np

from wassemble.inputs import Predictions
from wassemble.kernels import LabelledKernel
from wassemble.labels import LabelSpace


def label_similarity(kernel: LabelledKernel) -> np.ndarray:
    """Similarity of each pair of different labels, relative to the rows, both ways alike."""
    target: LabelSpace = kernel.target
    dense = np.asarray(kernel.align(target, target).to_dense(), dtype=np.float64)
    largest = dense.max(axis=1, keepdims=True)
    relative = np.divide(dense, largest, out=np.zeros_like(dense), where=largest > 0)
    similar = (relative + relative.T) / 2
    np.fill_diagonal(similar, 0)
    return similar


def group_labels(similar: np.ndarray, size: int) -> list[list[int]]:
    """Groups of at most ``size`` labels that are similar to their first, each label in one.

    Labels with the closest neighbours choose first.
    """
    free = np.ones(len(similar), dtype=bool)
    groups = []
    for first in np.argsort(-similar.max(axis=1), kind="stable").tolist():
        if not free[first]:
            continue
        free[first] = False
        nearest = np.argsort(-np.where(free, similar[first], 0), kind="stable")[: size - 1]
        near = [i for i in nearest.tolist() if free[i] and similar[first, i] > 0]
        free[near] = False
        groups.append([first, *near])
    return groups


def shuffle_inside(
    models: Sequence[Predictions], groups: Sequence[Sequence[str]], rng: np.random.Generator
) -> list[Predictions]:
    """Models whose scores are shuffled inside groups of labels, anew for each sample."""
    shuffled = []
    for model in models:
        scores = model.scores.copy()
        for group in groups:
            places = model.labels.positions(name for name in group if name in model.labels)
            if len(places) > 1:
                order = rng.random((len(scores), len(places))).argsort(axis=1)
                scores[:, places] = np.take_along_axis(scores[:, places], order, axis=1)
        shuffled.append(model.replace(scores=scores))
    return shuffled
