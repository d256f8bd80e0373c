"""Captioners whose predictions are shuffled among words of like meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wassemble.ensemble.shuffling import group_labels, label_similarity
from wassemble.kernels import LabelledKernel
from wassemble.text.models import NextWordModel
from wassemble.text.vocabulary import Vocabulary
from wassemble.text.kernels import has_letters

__all__ = ["ShuffledNextWord", "word_groups"]


def word_groups(kernel: LabelledKernel, vocabulary: Vocabulary, size: int) -> list[list[int]]:
    """Groups of two to ``size`` words of a vocabulary that are neighbours, as numbers.

    Special words, digits and words without a neighbour are in none.

    Parameters
    ----------
    kernel : LabelledKernel
        Between the words of the vocabulary.
    """
    similar = label_similarity(kernel)
    stays = [
        place
        for place, word in enumerate(kernel.target)
        if word in vocabulary.special or not has_letters(word)
    ]
    similar[stays] = 0
    similar[:, stays] = 0
    return [group for group in group_labels(similar, size) if len(group) > 1]


class ShuffledNextWord:
    """A next-word model whose words change places inside groups, anew for each row of a step.

    Parameters
    ----------
    model : NextWordModel
    groups : sequence of lists of int
        Words by number, each in one group at most.
    seed : int or sequence of int
    """

    def __init__(self, model: NextWordModel, groups: Sequence[Sequence[int]], seed: Any) -> None:
        self.vocabulary = model.vocabulary
        self._model = model
        self._seed = seed
        self._words = np.array([word for group in groups for word in group], dtype=np.int64)
        self._groups = np.repeat(np.arange(len(groups)), [len(group) for group in groups])

    def start(self, context: Any) -> tuple[Any, int]:
        """The model's state, and the number of the step."""
        return self._model.start(context), 0

    def step(self, state: tuple[Any, int], words: np.ndarray) -> tuple[np.ndarray, Any]:
        """The model's log probabilities, shuffled."""
        inner, number = state
        logs, inner = self._model.step(inner, words)
        # Drawn from the step's number alone: threads and earlier searches change nothing.
        rng = np.random.default_rng([*np.atleast_1d(self._seed).tolist(), number])
        order = (self._groups + rng.random((len(logs), len(self._words)))).argsort(axis=1)
        shuffled = logs.copy()
        shuffled[:, self._words] = np.take_along_axis(logs[:, self._words], order, axis=1)
        return shuffled, (inner, number + 1)

    def reorder(self, state: tuple[Any, int], rows: np.ndarray) -> tuple[Any, int]:
        """The model's state with the given rows."""
        return self._model.reorder(state[0], rows), state[1]
