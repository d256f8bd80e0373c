"""Kernels from the word vectors of label names."""

from dataclasses import dataclass

import numpy as np

from wassemble._checks import Count, Optional, fail
from wassemble.inputs.words.embeddings import Embeddings, split_words, word_forms
from wassemble.kernels.builders.auto_epsilon import Epsilon, choose_epsilon
from wassemble.kernels.builders.embeddings import EmbeddingCosts, Metric
from wassemble.kernels.builders.spaces import count_names, expand_kernel
from wassemble.kernels.named.labelled import LabelledKernel, Names, read_spaces
from wassemble.kernels.places import named_labels
from wassemble.labels import LabelSpace, enumerate_names


def from_word_vectors(
    source: Names,
    target: Names | None = None,
    *,
    embeddings: Embeddings,
    epsilon: Epsilon = "auto",
    metric: Metric = "cosine",
    unit_norm: bool = False,
    local_bandwidth: int | None = None,
    n_neighbors: int | None = None,
) -> LabelledKernel:
    """K = exp(-cost / epsilon) between the word vectors of label names.

    The cost is that of ``metric``: by default 1 - cosine, which is half the squared distance of
    unit vectors.

    A label is looked up as it is written, then with other separators between its words,
    then both without regard to case. A label that is no word itself is the mean of the
    words in it that are found ("polar_bear": polar, bear). Labels without a vector are joined to
    the target label of their own name alone. The notes say how many labels were found how.

    Parameters
    ----------
    source : LabelSpace or iterable of str
    target : LabelSpace or iterable of str, optional
        ``source`` if not given; the kernel is then symmetric.
    embeddings : Embeddings
        See `read_embeddings`.
    epsilon : float, "auto" or AutoEpsilon
        Entropic regularisation. "auto" gives the median label 3 effective neighbours.
    metric, unit_norm, local_bandwidth, n_neighbors
        As in `kernels.from_embeddings`.

    Examples
    --------
    >>> vectors = Embeddings(["cat", "dog", "car"], [[1, 0], [0.8, 0.6], [0, 1]])
    >>> kernel = from_word_vectors(["cat", "Dog", "okapi"], embeddings=vectors, epsilon=1.0)
    >>> kernel.to_dense().round(2)
    array([[1.  , 0.82, 0.  ],
           [0.82, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]], dtype=float32)
    >>> kernel.notes
    ("1 label found in other letter case: 'Dog'", "1 label without a word vector: 'okapi'")
    """
    if not isinstance(embeddings, Embeddings):
        fail(
            f"`embeddings` must be Embeddings; got {type(embeddings).__name__}.",
            hint="`read_embeddings(path)` reads them, `Embeddings(words, vectors)` wraps arrays",
        )
    source, target = read_spaces(source, target)
    x = _look_up(source, embeddings)
    y = x if target is source else _look_up(target, embeddings)
    for side, looked_up, space in (("source", x, source), ("target", y, target)):
        if not len(looked_up.places):
            fail(
                f"{embeddings.origin} must know the words of some {side} label; it knows none of"
                f" {enumerate_names(space)}."
            )
    n_neighbors = Optional(Count())(n_neighbors, "n_neighbors")
    costs = EmbeddingCosts.read(
        x.vectors,
        None if y is x else y.vectors,
        metric=metric,
        unit_norm=unit_norm,
        local_bandwidth=local_bandwidth,
    )

    def cost_of(rows: np.ndarray) -> np.ndarray:
        found = costs.of(rows)
        if n_neighbors is None or n_neighbors >= found.shape[1]:
            return found
        return np.partition(found, n_neighbors - 1, axis=1)[:, :n_neighbors]

    value, words = choose_epsilon(epsilon, cost_of, len(x.places))
    names = (
        [space[i] for i in looked_up.places] for space, looked_up in ((source, x), (target, y))
    )
    with named_labels(*names):
        kernel = costs.to_kernel(value, n_neighbors)
    kernel = expand_kernel(kernel, source, target, x.places, y.places)
    near = "" if n_neighbors is None else f", {n_neighbors} nearest"
    local = "" if local_bandwidth is None else f", bandwidth of neighbour {local_bandwidth}"
    origin = f"word vectors of {embeddings.origin}, {metric}{local}{near}, {words}"
    notes = x.notes if y is x else tuple(dict.fromkeys(x.notes + y.notes))
    return LabelledKernel(kernel, source, target, origin, notes)


@dataclass(frozen=True, eq=False)
class _Found:
    """Vectors of the labels that have one, and what to tell of the search."""

    places: np.ndarray
    vectors: np.ndarray
    notes: tuple[str, ...]


def _look_up(space: LabelSpace, embeddings: Embeddings) -> _Found:
    rows, ways = zip(*(_find_rows(label, embeddings) for label in space), strict=True)
    first = np.array([each[0] if each else 0 for each in rows])
    vectors = embeddings.vectors[first].astype(np.float32)
    for place, each in enumerate(rows):
        if len(each) > 1:
            vectors[place] = embeddings.vectors[each].mean(axis=0)
    # A vector of zeros has no direction: it says as little as none.
    known = np.array([bool(each) for each in rows]) & vectors.any(axis=1)
    by_way: dict[str, list[str]] = {way: [] for way in _WAYS}
    for label, way, is_known in zip(space, ways, known.tolist(), strict=True):
        if not is_known:
            by_way[_WAYS[-1]].append(label)
        elif way:
            by_way[way].append(label)
    notes = tuple(count_names(labels, way) for way, labels in by_way.items() if labels)
    return _Found(np.flatnonzero(known), vectors[known], notes)


_WAYS = (
    "found in other letter case",
    "averaged over words",
    "averaged over words, some of them unknown",
    "without a word vector",
)


def _find_rows(label: str, embeddings: Embeddings) -> tuple[list[int], str]:
    """Places of the words that stand for ``label``, and how they were found ("" as it is)."""
    if (row := embeddings.find(label)) is not None:  # nearly always, and much the fastest
        return [row], ""
    for find, way in ((embeddings.find, ""), (embeddings.find_folded, _WAYS[0])):
        for form in word_forms(label):
            row = find(form)
            if row is not None:
                return [row], way
    rows = []
    words = split_words(label)
    for word in words:
        row = embeddings.find(word)
        if row is None:
            row = embeddings.find_folded(word)
        if row is not None:
            rows.append(row)
    return rows, _WAYS[1] if len(rows) == len(words) else _WAYS[2]
