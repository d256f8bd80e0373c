"""Histograms of a part of the words, which have less than mass 1, as Algorithm 1 takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wassemble.kernels import Kernel
from wassemble.solvers import GEOMETRIC
from wassemble.text.word_parts import WordPart

__all__ = ["Posed", "pose_balanced"]

# Mass of the rest where there is nearly none: less would leave the range of plain sums.
_LEAST = 1e-6


@dataclass(frozen=True)
class Posed:
    """A problem for the solver; its barycenter times ``factor`` is the consensus."""

    histograms: list[np.ndarray]
    kernels: list[Kernel]
    weights: np.ndarray
    factor: np.ndarray | float = 1.0

    def widen(self, log_v: np.ndarray) -> np.ndarray:
        """Scalings with those of what is no word of its own, if there is any."""
        return np.pad(log_v, ((0, 0), (0, 0), (0, self.kernels[0].shape[1] - log_v.shape[2])))


def pose_balanced(histograms: list[np.ndarray], part: WordPart) -> Posed:
    """Histograms of mass 1, from a part of the words that has less.

    Mass never crosses from one component to another. Where models put different mass on
    one, Algorithm 1 settles on the geometric mean of it while its scalings grow without
    end. Bringing the masses there first gives the same consensus after every sweep, and
    scalings that stay where they are.

    With a weight for each word this does not hold. What is missing to mass 1 is then a
    word of its own, the rest.
    """
    if part.weights.ndim == 2:
        return _with_rest(histograms, part)
    masses = np.stack([_masses(h, part, i) for i, h in enumerate(histograms)])
    common = np.asarray(GEOMETRIC.fuse(masses, weights=part.weights, holds="scores").scores)
    total = common.sum(axis=1, keepdims=True)
    factors = np.divide(common, masses, out=np.zeros_like(masses), where=masses > 0)
    if part.n_components == 1:
        level = [h * factor for h, factor in zip(histograms, factors, strict=True)]
    else:
        level = [
            h * np.take(factor, own, axis=1)
            for h, factor, own in zip(histograms, factors, part.components, strict=True)
        ]
    # A row whose words some model rules out has no consensus here: any histograms will do.
    empty = total[:, 0] == 0
    for each in level:
        each[empty] = 1
        np.divide(each, each.sum(axis=1, keepdims=True), out=each)
    return Posed(level, part.kernels, part.weights, factor=total)


def _masses(histogram: np.ndarray, part: WordPart, model: int) -> np.ndarray:
    """Mass of each component, ``(n_rows, n_components)``."""
    if part.n_components == 1:
        return histogram.sum(axis=1, keepdims=True)
    return np.asarray(histogram @ part.members[model])


def _with_rest(histograms: list[np.ndarray], part: WordPart) -> Posed:
    """The words, and one more for what is missing to mass 1."""
    wide = []
    for histogram in histograms:
        rest = np.maximum(1 - histogram.sum(axis=1, keepdims=True), _LEAST)
        whole = np.hstack([histogram, rest])
        wide.append(whole / whole.sum(axis=1, keepdims=True))
    equal = np.full((len(histograms), 1), 1 / len(histograms))
    weights = np.hstack([part.weights, equal])
    return Posed(wide, part.kernels_with_rest, weights)
