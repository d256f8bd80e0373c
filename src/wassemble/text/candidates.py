"""Which words may continue each unfinished sentence: the likeliest, or sampled ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Candidates", "likeliest_words", "sampled_words"]


@dataclass(frozen=True)
class Candidates:
    """Some words for each row, with their scores.

    Attributes
    ----------
    words : int array of shape (n_rows, n_candidates)
    scores : array of shape (n_rows, n_candidates)
        -inf for words that are impossible.
    """

    words: np.ndarray
    scores: np.ndarray

    def take(self, rows: Sequence[int]) -> Candidates:
        """The candidates of some rows."""
        return Candidates(self.words[rows], self.scores[rows])

    def best(self, totals: Sequence[float], n_best: int) -> list[tuple[int, int]]:
        """Row and word of the best continuations, best first; fewer where words run out.

        ``totals`` are the scores of the rows so far. Equal scores go by row, then by word.
        """
        total = (np.asarray(totals)[:, None] + self.scores).ravel()
        rows, words = np.arange(total.size) // self.words.shape[1], self.words.ravel()
        order = np.lexsort((words, rows, -total))[:n_best]
        return [(int(rows[i]), int(words[i])) for i in order if total[i] > -np.inf]


def likeliest_words(scores: np.ndarray, n_words: int) -> Candidates:
    """The ``n_words`` words of the highest scores in each row, in no order.

    Examples
    --------
    >>> likeliest_words(np.array([[-3.0, -1.0, -2.0]]), 1).words
    array([[1]])
    """
    return _highest(scores, scores, n_words)


def sampled_words(scores: np.ndarray, n_words: int, rng: np.random.Generator) -> Candidates:
    """Different words of each row, drawn in proportion to exp(score) (the Gumbel top-k trick)."""
    return _highest(scores + rng.gumbel(size=scores.shape), scores, n_words)


def _highest(keys: np.ndarray, scores: np.ndarray, n_words: int) -> Candidates:
    n_words = min(n_words, scores.shape[1])
    words = np.argpartition(-keys, n_words - 1, axis=1)[:, :n_words]
    return Candidates(words, np.take_along_axis(scores, words, axis=1))
