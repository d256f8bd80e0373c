"""Next-word models without pictures, and kernels between words.

Kernels go by epsilon, or by how far K is from the identity, which is how the paper tells them.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import permutations

import numpy as np
from scipy.optimize import brentq

from paper.data.captions import load_captions
from paper.data.coco import load_coco_captions
from paper.data.files import find_data
from wassemble.errors import fail
from wassemble.inputs.words.embeddings import Embeddings
from wassemble.inputs.words.graphs import Edges, as_edges
from wassemble.kernels import LabelledKernel, from_synonyms, from_word_vectors
from wassemble.labels import LabelSpace
from wassemble.text import NGramModel, Vocabulary

CAPTION_VECTORS = "words/glove_100d_captions_int8.npz"
_N_MODELS = 4
_ORDER = 4
_SPECIAL = ("<end>", "<unk>")
_PAPER_WORDS = 10_096
_EPSILONS = 1e-3, 1e3  # that a distance to the identity is looked for between

# Words that say how a sentence is built, not what is in a picture.
_FUNCTION_WORDS = """
    a an the this that these those some any each every another other all both no its his her their
    my your our it he she they them him we you i who which what there where when how and or but as
    while if so than then to of in on at by with from for into onto over under up down out off
    through between behind near next around along across above below beside inside outside against
    among during before after about toward towards without within upon is are was were be been
    being am has have having had do does did doing will would can could may might must should not
    very too just also s
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())


def load_glove(n_words: int = 10_000) -> tuple[LabelSpace, np.ndarray]:
    """The most frequent words of GloVe, and their unit vectors in float32."""
    with np.load(find_data("words/glove_100d_10k.npz")) as arrays:
        words = LabelSpace(arrays["words"][:n_words].tolist())
        vectors = arrays["vectors"][:n_words].astype(np.float32)
    return words, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def load_caption_vectors(*, unit_norm: bool = False) -> Embeddings:
    """GloVe vectors of 9,921 words of captions, with lengths of their own or of length 1.

    There are 9,912 of the 10,192 words of all COCO captions; "a", digits and misspellings have
    none. Not those of `load_glove`: the two were learned apart, and a word of one has no place
    among those of the other.
    """
    with np.load(find_data(CAPTION_VECTORS)) as arrays:
        words, vectors = arrays["words"].tolist(), arrays["codes"] * arrays["scale"][:, None]
    if unit_norm:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Embeddings(words, vectors, origin="GloVe vectors of caption words")


def vocabulary_of(words: LabelSpace) -> Vocabulary:
    """The words, after the end of a sentence and the unknown word."""
    return Vocabulary(LabelSpace([*_SPECIAL, *words]))


def train_models(words: LabelSpace) -> list[NGramModel]:
    """Smoothed 4-gram models, each of a quarter of the COCO images that we have no features of."""
    vocabulary = vocabulary_of(words)
    captions = list(load_coco_captions().values())
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


def glove_kernels(
    source: LabelSpace, target: LabelSpace | None = None, *, local_bandwidth: int | None = None
) -> KernelAt:
    """exp(-squared distance of unit vectors / epsilon); words without a vector stay alone.

    The paper says "euclidean distance", but only the squared one has the distances to the identity
    of its table 8: 94 times it gives 3.3, 14.9, 25.6, 34.8, 43.4 and 47.6 for 4.2 to 48.5 with
    10,000 words, where no multiple of the distance itself comes near.
    """
    vectors = load_caption_vectors()
    return lambda epsilon: from_word_vectors(
        source,
        target,
        embeddings=vectors,
        epsilon=epsilon,
        metric="sqeuclidean",
        unit_norm=True,
        local_bandwidth=local_bandwidth,
    )


def epsilon_at(kernel_at: KernelAt, distance: float) -> float:
    """The epsilon at which a square kernel is this far from the identity, in the paper's measure.

    That is ||K - I||_F times what it would grow by with the paper's 10,096 words: the norm grows
    with the root of the number of words that have like neighbours.
    """
    n_words, log_entries = _log_entries(kernel_at)

    def gap(log_epsilon: float) -> float:
        squares = 2 * np.exp(log_entries * np.float32(2 / np.exp(log_epsilon))).sum(dtype=float)
        return float((squares * _PAPER_WORDS / n_words) ** 0.5) - distance

    low, high = np.log(_EPSILONS)
    if not gap(low) < 0 < gap(high):
        fail(
            f"a distance to the identity must be between {gap(low) + distance:.3g} and"
            f" {gap(high) + distance:.4g} with this kernel; got {distance:g}."
        )
    return float(np.exp(brentq(gap, low, high, xtol=1e-4)))


@lru_cache(maxsize=1)
def _log_entries(kernel_at: KernelAt) -> tuple[int, np.ndarray]:
    """Number of words, and logs of the entries above the diagonal, at epsilon 1; K is symmetric."""
    entries = np.asarray(kernel_at(1.0).kernel.to_dense(), dtype=np.float32)
    above = (row[place + 1 :] for place, row in enumerate(entries))
    return len(entries), np.log(np.concatenate([each[each > 0] for each in above]))


def synonym_kernels(words: LabelSpace, strength: float = 0.5) -> KernelAt:
    """1 for a word itself, (share of votes * strength) ** (1 / epsilon) for a synonym."""
    votes = count_votes(words)
    return lambda epsilon: from_synonyms(
        words, synonyms=votes, strength=strength, epsilon=epsilon, symmetric=True
    )


def count_votes(words: LabelSpace) -> Edges:
    """Synonyms among the words; votes are WordNet synsets that both are in, and 1 for PPDB."""
    votes = find_synonyms(words)
    return as_edges([(a, b, n) for (a, b), n in votes.items()], origin="WordNet and PPDB")


def find_synonyms(words: LabelSpace) -> Counter[tuple[str, str]]:
    """Votes for each pair of synonyms among the words, both ways; there may be none."""
    votes: Counter[tuple[str, str]] = Counter()
    with gzip.open(find_data("words/oewn_synsets.tsv.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            members = [word for word in line.split("\t")[2].split("|") if word in words]
            votes.update(permutations(dict.fromkeys(members), 2))
    text = find_data("words/ppdb_synonyms.txt").read_text(encoding="utf-8")
    pairs = (line.split() for line in text.splitlines())
    known = {(a, b) for a, b in pairs if a in words and b in words and a != b}
    votes.update(sorted(known | {(b, a) for a, b in known}))
    return votes
