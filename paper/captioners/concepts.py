"""Concepts: what a picture is about, in numbers that captions and features both give.

Images with captions and no features teach a captioner to speak, if something stands in for
their pictures. Concepts do: captions place an image among 118,287 others (latent semantic
analysis of the words that they use), and a detector tells from features where that is.
`paper.captioners.texts` draws what it would tell of pictures of which there are only captions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

N_CONCEPTS = 256
_N_WORDS = 2000  # the most frequent; rarer ones say little of where an image lies
_N_FOLDS = 10


class Bags:
    """Which of some words the captions of images use."""

    def __init__(self, words: Sequence[str], captions: Sequence[Sequence[str]]) -> None:
        self.sizes = np.array([len(each) for each in captions])
        self.counts = _count(words, (text for each in captions for text in each))
        """(n_captions, n_words), 0 or 1."""

    def sums(self) -> sparse.csr_array:
        """How many captions of each image use a word, (n_images, n_words)."""
        ends = np.cumsum([0, *self.sizes])
        ones, columns = np.ones(ends[-1], dtype=np.float32), np.arange(ends[-1])
        return sparse.csr_array((ones, columns, ends)) @ self.counts


def _count(words: Sequence[str], captions: Iterable[str]) -> sparse.csr_array:
    numbers = {word: number for number, word in enumerate(words)}
    found = [sorted({numbers[word] for word in c.split() if word in numbers}) for c in captions]
    ends = np.cumsum([0, *map(len, found)])
    columns = np.fromiter((number for each in found for number in each), np.int32, ends[-1])
    ones = np.ones(len(columns), dtype=np.float32)
    return sparse.csr_array((ones, columns, ends), shape=(len(found), len(words)))


@dataclass(frozen=True, eq=False)
class ConceptSpace:
    """Concepts of images: a linear map of how large a share of their captions uses each word."""

    words: tuple[str, ...]
    mean: np.ndarray  # (n_words,): the share over all images
    axes: np.ndarray  # (n_words, n_concepts); concepts have variance 1 over images

    def place(self, sums: sparse.csr_array, sizes: np.ndarray) -> np.ndarray:
        """Concepts, (n_images, n_concepts), from counts of captions that use a word."""
        shares = _divide(sums, sizes)
        return np.asarray(shares @ self.axes - self.mean @ self.axes, dtype=np.float32)

    def place_captions(self, captions: Sequence[Sequence[str]]) -> np.ndarray:
        """Concepts, (n_images, n_concepts), of images with these captions."""
        bags = Bags(self.words, captions)
        return self.place(bags.sums(), bags.sizes)


def _divide(sums: sparse.csr_array, sizes: np.ndarray) -> sparse.csr_array:
    return sparse.diags_array(1 / sizes.astype(np.float32)) @ sums


def fit_concepts(
    words: Sequence[str], captions: Sequence[Sequence[str]], n_concepts: int = N_CONCEPTS
) -> ConceptSpace:
    """The concept space of images with these captions; ``words`` by falling frequency."""
    words = tuple(words[:_N_WORDS])
    bags = Bags(words, captions)
    shares = _divide(bags.sums(), bags.sizes)
    mean = np.asarray(shares.mean(axis=0)).ravel()
    covariance = (shares.T @ shares).toarray() / len(captions) - np.outer(mean, mean)
    # Without weights the commonest words would be all there is; with full ones, the rarest.
    weights = np.maximum(mean, 1e-6) ** -0.25
    values, vectors = np.linalg.eigh(covariance * weights[:, None] * weights)
    values, vectors = values[::-1][:n_concepts], vectors[:, ::-1][:, :n_concepts]
    axes = weights[:, None] * vectors / np.sqrt(values)
    return ConceptSpace(words, mean, axes.astype(np.float32))


def detect(known: np.ndarray, concepts: np.ndarray, pictures: np.ndarray) -> np.ndarray:
    """Concepts of ``pictures`` by kernel ridge regression from those of ``known`` ones.

    Both are rows of features. Not by a line: what a picture is like tells more than any sum of
    its features does.
    """
    width, ridge = 0.35 * np.median(cdist(known[:1000], known[:1000], "sqeuclidean")), 0.3
    kernel = np.exp(-cdist(known, known, "sqeuclidean") / width)
    coefficients = np.linalg.solve(kernel + ridge * np.eye(len(known)), concepts)
    nearness = np.exp(-cdist(pictures, known, "sqeuclidean") / width)
    return np.asarray(nearness @ coefficients, dtype=np.float32)


def detect_out_of_fold(pictures: np.ndarray, concepts: np.ndarray) -> np.ndarray:
    """Concepts of each picture by a detector that has not seen it, as new pictures will get."""
    fold = np.arange(len(pictures)) % _N_FOLDS
    found = np.empty(concepts.shape, dtype=np.float32)
    for number in range(_N_FOLDS):
        is_in = fold == number
        found[is_in] = detect(pictures[~is_in], concepts[~is_in], pictures[is_in])
    return found
