"""Next-word models from tables: what tests know everything about."""

from __future__ import annotations

import itertools

import numpy as np

from wassemble.text import Vocabulary


class TableModel:
    """Histograms drawn from a seed for each sequence of words, and for each item of the context."""

    def __init__(self, words, *, seed=0, sharpness=1.5):
        self.vocabulary = Vocabulary(words)
        self._seed = seed
        self._sharpness = sharpness

    def start(self, context):
        return [(int(item),) for item in context]

    def step(self, state, words):
        state = [(*read, int(word)) for read, word in zip(state, words, strict=True)]
        logs = [self.log_histogram(read) for read in state]
        return np.array(logs, dtype=np.float32).reshape(len(state), len(self.vocabulary)), state

    def reorder(self, state, rows):
        return [state[row] for row in rows]

    def log_histogram(self, read):
        rng = np.random.default_rng([self._seed, *read])
        scores = self._sharpness * rng.normal(size=len(self.vocabulary))
        scores[self.vocabulary.start_index] = -np.inf
        return scores - np.logaddexp.reduce(scores)


def every_sentence(model, item, max_words):
    """Log probability of every sentence of at most ``max_words`` words, the end included."""
    vocabulary = model.vocabulary
    plain = [i for i in range(len(vocabulary)) if vocabulary.words[i] not in vocabulary.special]
    found = {}
    for length in range(max_words + 1):
        for words in itertools.product(plain, repeat=length):
            total, read = 0.0, (item, vocabulary.start_index)
            for word in words:
                total += float(np.float32(model.log_histogram(read)[word]))
                read = (*read, word)
            if length < max_words:
                total += float(np.float32(model.log_histogram(read)[vocabulary.end_index]))
            found[tuple(vocabulary.decode(words))] = total, min(length + 1, max_words)
    return found
