"""Models that lack a fifth of the labels: ImageNet networks and next-word models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import compress, pairwise

import numpy as np
import scipy.sparse as sp

from paper.data.captions import load_captions
from paper.data.imagenet import load_imagenet, score_ranks
from paper.words.next_words import load_glove
from wassemble.inputs import Embeddings, Predictions
from wassemble.kernels import from_tree, from_word_vectors
from wassemble.labels import LabelSpace


@dataclass(frozen=True, eq=False)
class Expansion:
    """Models over parts of the target labels."""

    models: list[Predictions]  # each over the labels that it knows, in the target's order
    whole: list[Predictions]  # the same models with nothing hidden
    target: LabelSpace
    is_known: np.ndarray  # (n_models, n_target)
    similarity: sp.csr_array  # (n_target, n_target): exp(-cost) of near labels, symmetric
    # Of each sample: its place among the target labels, its row of the predictions, its side
    # of the split, and what it is drawn together with in a bootstrap.
    truth: np.ndarray
    row: np.ndarray
    is_test: np.ndarray
    groups: np.ndarray


def hide_labels(
    n_models: int, n_target: int, share: float, *, alike: bool, rng: np.random.Generator
) -> np.ndarray:
    """Which labels each model knows, ``(n_models, n_target)``; all the same ones if ``alike``."""
    n_hidden = round(share * n_target)
    is_known = np.ones((n_models, n_target), dtype=bool)
    for known in is_known[:1] if alike else is_known:
        known[rng.permutation(n_target)[:n_hidden]] = False
    return np.broadcast_to(is_known[:1], is_known.shape) if alike else is_known


def load_images(
    *, share: float, alike: bool, n_samples: tuple[int, int], n_neighbors: int, seed: int
) -> Expansion:
    """Eight networks' five best classes, without those that each does not know.

    ``n_samples`` are images to validate and to test on.

    Classes that a network does not know are struck from its five best, and the next move up.
    Rank r scores what share of other images has the truth there; the rest is unobserved.
    """
    classes, tree, networks, truth = load_imagenet()
    rng = np.random.default_rng(seed)
    n_fitting = len(truth) // 2
    images = rng.permutation(len(truth))
    fitting, kept = images[:n_fitting], images[n_fitting:][: sum(n_samples)]
    is_known = hide_labels(len(networks), len(classes), share, alike=alike, rng=rng)
    models: list[Predictions] = []
    whole: list[Predictions] = []
    for (name, best), known in zip(networks.items(), is_known, strict=True):
        for found, mask in ((models, known), (whole, np.ones_like(known))):
            left = strike_classes(best, mask)
            told = score_ranks(left, truth, fitting, kept, len(classes))[:, mask]
            told[np.isnan(told).all(axis=1)] = 1 / mask.sum()  # all five struck: no idea
            labels = list(compress(classes, mask))
            found.append(Predictions(name, kept, labels, told, kind="multiclass"))
    costs = from_tree(classes, edges=tree, cost="lin", epsilon=1.0)
    similarity = _nearest(np.asarray(costs.kernel.to_dense()), n_neighbors)
    rows = np.arange(len(kept))
    is_test = rows >= n_samples[0]
    return Expansion(models, whole, classes, is_known, similarity, truth[kept], rows, is_test, rows)


def strike_classes(best: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Lists of best classes without unknown ones: known ones move up, -1 fills the end."""
    order = np.argsort(~is_known[best], axis=1, kind="stable")
    moved = np.take_along_axis(best, order, axis=1)
    return np.where(is_known[moved], moved, -1)


def load_words(
    *,
    share: float,
    alike: bool,
    n_models: int,
    n_contexts: int,
    n_frequent: int,
    n_samples: tuple[int, int],
    n_neighbors: int,
    backoff: float,
    seed: int,
) -> Expansion:
    """Next words after a word, counted in parts of the training captions.

    A model counts pairs of words in its part of the captions; after a word of n pairs, each
    word scores (count + backoff * share of the word in the part) / (n + backoff), where every
    word counts as seen once more; words that the model does not know are struck. The samples
    are pairs in other captions, after the ``n_contexts`` words that most often come first
    there; the ``n_frequent`` most frequent words are never hidden, since no vocabulary lacks
    them.
    """
    words, similarity = _glove(n_neighbors)
    rng = np.random.default_rng(seed)
    places = {word: place for place, word in enumerate(words)}
    pairs = {split: _pairs(load_captions(split).captions, places) for split in _SPLITS}
    is_known = hide_labels(n_models, len(words), share, alike=alike, rng=rng)
    is_known = is_known | (np.arange(len(words)) < n_frequent)  # the file has the frequent first
    validation = pairs["val"]
    contexts = np.argsort(-np.bincount(validation[:, 1], minlength=len(words)), kind="stable")
    contexts = contexts[:n_contexts]
    models: list[Predictions] = []
    whole: list[Predictions] = []
    for part in range(n_models):
        train = pairs["train"][pairs["train"][:, 0] % n_models == part]
        table = _next_words(train, contexts, len(words), backoff)
        for found, mask in ((models, is_known[part]), (whole, np.ones(len(words), dtype=bool))):
            known = table[:, mask]
            labels = list(compress(words, mask))
            scores = known / known.sum(axis=1, keepdims=True)
            name = f"captions, part {part + 1}"
            found.append(Predictions(name, contexts, labels, scores, kind="multiclass"))
    drawn = []
    for split, n_drawn in zip(("val", "test"), n_samples, strict=True):
        inside = pairs[split][np.isin(pairs[split][:, 1], contexts)]
        drawn.append(inside[np.sort(rng.permutation(len(inside))[:n_drawn])])
    image, before, truth = np.concatenate(drawn).T
    row_of = np.zeros(len(words), dtype=np.int64)
    row_of[contexts] = np.arange(len(contexts))
    is_test = np.arange(len(truth)) >= len(drawn[0])
    return Expansion(
        models, whole, words, is_known, similarity, truth, row_of[before], is_test, image
    )


_SPLITS = ("train", "val", "test")


@cache  # 10,000 words against each other, for two tasks
def _glove(n_neighbors: int) -> tuple[LabelSpace, sp.csr_array]:
    """The words of the vectors, the most frequent first, and how similar near ones are."""
    words, units = load_glove()
    vectors = Embeddings(words, units)
    near = from_word_vectors(words, embeddings=vectors, epsilon=1.0, n_neighbors=n_neighbors)
    found = near.kernel.to_sparse()
    return words, sp.csr_array(found.maximum(found.T))


def _pairs(captions: Sequence[Sequence[str]], places: dict[str, int]) -> np.ndarray:
    """Image, word and next word of each pair of known neighbours, ``(n_pairs, 3)``."""
    found = []
    for image, several in enumerate(captions):
        for caption in several:
            known = [places.get(word, -1) for word in caption.split()]
            found += [
                (image, first, second)
                for first, second in pairwise(known)
                if first >= 0 and second >= 0
            ]
    return np.array(found)


def _next_words(
    pairs: np.ndarray, contexts: np.ndarray, n_words: int, backoff: float
) -> np.ndarray:
    """Shares of words after each context, ``(n_contexts, n_words)``."""
    _, first, second = pairs.T
    counts = sp.csr_array((np.ones(len(pairs)), (first, second)), shape=(n_words, n_words))
    after = counts[contexts].toarray()
    overall = (np.bincount(second, minlength=n_words) + 1) / (len(second) + n_words)
    sums = after.sum(axis=1, keepdims=True)
    return ((after + backoff * overall) / (sums + backoff)).astype(np.float32)


def _nearest(similarity: np.ndarray, n_neighbors: int) -> sp.csr_array:
    """The largest ``n_neighbors`` entries of each row of a symmetric table, and of each column."""
    least = np.partition(similarity, -n_neighbors, axis=1)[:, -n_neighbors]
    kept = similarity >= np.minimum(least[:, None], least)
    return sp.csr_array(np.where(kept, similarity, 0))
