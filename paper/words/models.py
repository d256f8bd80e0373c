"""Four next-word models over 10,000 words, and kernels between words by epsilon."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np

from paper.data.captions import load_caption_words, load_captions
from paper.data.files import find_data
from wassemble.inputs.words.graphs import Edges, as_edges
from wassemble.kernels import LabelledKernel, from_synonyms, from_word_vectors
from wassemble.labels import LabelSpace
from wassemble.text import NGramModel, Vocabulary

_N_MODELS = 4
_ORDER = 4
_SPECIAL = ("<end>", "<unk>")


def load_glove(n_words: int = 10_000) -> tuple[LabelSpace, np.ndarray]:
    """The most frequent words of GloVe, and their unit vectors in float32."""
    with np.load(find_data("words/glove_100d_10k.npz")) as arrays:
        words = LabelSpace(arrays["words"][:n_words].tolist())
        vectors = arrays["vectors"][:n_words].astype(np.float32)
    return words, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def vocabulary_of(words: LabelSpace) -> Vocabulary:
    """The words, after the end of a sentence and the unknown word."""
    return Vocabulary(LabelSpace([*_SPECIAL, *words]))


def train_models(words: LabelSpace) -> list[NGramModel]:
    """Smoothed 4-gram models, each of a quarter of the images with training captions."""
    vocabulary = vocabulary_of(words)
    captions = load_captions("train").captions
    return [
        NGramModel.fit(
            [text.split() for image in captions[number::_N_MODELS] for text in image],
            order=_ORDER,
            vocabulary=vocabulary,
        )
        for number in range(_N_MODELS)
    ]


def next_words(models: Sequence[NGramModel], contexts: Sequence[str]) -> np.ndarray:
    """What each model expects after each context, given that it is one of the words.

    In float64, of shape (n_models, n_contexts, n_words).
    """
    histograms: np.ndarray = np.array(
        [[_next_word(model, context.split()) for context in contexts] for model in models]
    )
    return histograms / histograms.sum(axis=2, keepdims=True)


def _next_word(model: NGramModel, context: Sequence[str]) -> np.ndarray:
    state = model.start([None])
    for word in [model.vocabulary.start_index, *model.vocabulary.encode(context)]:
        logs, state = model.step(state, np.array([word]))
    return np.exp(logs[0, len(_SPECIAL) :].astype(np.float64))


def draw_contexts(n_contexts: int, seed: int) -> list[str]:
    """Beginnings of test captions, of three words or more, cut at a place drawn by ``seed``."""
    rng = np.random.default_rng(seed)
    captions = [image[0].split() for image in load_captions("test").captions]
    long = [words for words in captions if len(words) > 3]
    chosen = rng.choice(len(long), size=n_contexts, replace=False)
    return [" ".join(long[i][: rng.integers(3, len(long[i]))]) for i in chosen]


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
