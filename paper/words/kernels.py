"""Kernels between words, by epsilon: word vectors, and synonyms with votes."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from itertools import permutations

from paper.data.captions import load_caption_words
from paper.data.files import find_data
from wassemble.inputs.words.graphs import Edges, as_edges
from wassemble.kernels import LabelledKernel, from_synonyms, from_word_vectors
from wassemble.labels import LabelSpace

KernelAt = Callable[[float], LabelledKernel]
"""From epsilon to a kernel between words."""


def glove_kernels(source: LabelSpace, target: LabelSpace | None = None) -> KernelAt:
    """exp(-distance of unit vectors / epsilon), as in the paper; words without one stay alone."""
    _, vectors = load_caption_words()
    return lambda epsilon: from_word_vectors(
        source, target, embeddings=vectors, epsilon=epsilon, metric="euclidean", unit_norm=True
    )


def synonym_kernels(words: LabelSpace, strength: float = 0.5) -> KernelAt:
    """1 for a word itself, (share of votes * strength) ** (1 / epsilon) for a synonym."""
    votes = count_votes(words)
    return lambda epsilon: from_synonyms(
        words, synonyms=votes, strength=strength, epsilon=epsilon, symmetric=True
    )


def count_votes(words: LabelSpace) -> Edges:
    """Synonyms among the words; votes are WordNet synsets that both are in, and 1 for PPDB."""
    votes: Counter[tuple[str, str]] = Counter()
    with gzip.open(find_data("words/oewn_synsets.tsv.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            members = [word for word in line.split("\t")[2].split("|") if word in words]
            votes.update(permutations(dict.fromkeys(members), 2))
    text = find_data("words/ppdb_synonyms.txt").read_text(encoding="utf-8")
    pairs = (line.split() for line in text.splitlines())
    known = {(a, b) for a, b in pairs if a in words and b in words and a != b}
    votes.update(sorted(known | {(b, a) for a, b in known}))
    return as_edges([(a, b, n) for (a, b), n in votes.items()], origin="WordNet and PPDB")
