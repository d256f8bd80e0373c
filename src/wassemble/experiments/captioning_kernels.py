"""Kernels between the words of captions: GloVe vectors, and synonyms with votes."""

from __future__ import annotations

from collections.abc import Callable

from wassemble.experiments.next_words import count_votes
from wassemble.inputs.captions_data import load_caption_words
from wassemble.kernels import LabelledKernel, from_synonyms, from_word_vectors
from wassemble.labels import LabelSpace

__all__ = ["KernelAt", "glove_kernels", "synonym_kernels"]

KernelAt = Callable[[float], LabelledKernel]
"""From epsilon to a kernel between words."""

_STRENGTH = 0.5  # of a word's best synonym, at epsilon 1


def glove_kernels(source: LabelSpace, target: LabelSpace | None = None) -> KernelAt:
    """exp(-distance of unit vectors / epsilon), as in the paper; words without one stay alone."""
    _, vectors = load_caption_words()
    return lambda epsilon: from_word_vectors(
        source, target, embeddings=vectors, epsilon=epsilon, metric="euclidean", unit_norm=True
    )


def synonym_kernels(words: LabelSpace) -> KernelAt:
    """1 for a word itself, (share of votes / 2) ** (1 / epsilon) for a synonym."""
    votes = count_votes(words)
    return lambda epsilon: from_synonyms(
        words, synonyms=votes, strength=_STRENGTH, epsilon=epsilon, symmetric=True
    )
