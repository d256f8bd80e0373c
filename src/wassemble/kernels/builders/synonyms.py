"""Kernels from synonyms and the votes for them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._checks import Number, check_flag, fail, option
from wassemble.inputs.words.graphs import Edges, as_edges
from wassemble.kernels.builders.spaces import note_labels, note_unjoined
from wassemble.kernels.named.labelled import LabelledKernel, Names, read_spaces
from wassemble.kernels.sparse import SparseKernel
from wassemble.labels import LabelSpace, fold_name


def from_synonyms(
    source: Names,
    target: Names | None = None,
    *,
    synonyms: Edges | Iterable[tuple[Any, ...]],
    strength: float = 1.0,
    epsilon: float = 1.0,
    symmetric: bool = False,
    fold: bool = False,
) -> LabelledKernel:
    """K = 1 for the same word, (strength * share of votes) ** (1 / epsilon) for a synonym.

    The share is the votes for a synonym over the most that any synonym of the same word
    has, among all pairs given; without votes it is 1. So K = exp(-C / epsilon) with the
    cost C = -log(strength * share), and with a strength below 1 the kernel tends to the
    identity as epsilon tends to 0. Without votes the defaults give the paper's binary
    matrix of synonyms.

    Differs from the paper: it says that user votes were used (section 6.3), not how. Here
    the best synonym of each word counts the same, however many people voted on the word.

    Parameters
    ----------
    source, target : LabelSpace or iterable of str
        The target labels are the source labels if not given.
    synonyms : Edges or iterable of (word, synonym) or (word, synonym, votes)
        See `read_synonyms`. A pair with 0 votes joins nothing.
    strength : float
        Above 0 and at most 1: the similarity of a word to its best synonym.
    epsilon : float
        Above 0.
    symmetric : bool
        A pair joins both ways, by the larger of both similarities; source and target
        labels must be the same.
    fold : bool
        Find labels among the words without regard to case, underscores and hyphens.

    Examples
    --------
    >>> votes = [("car", "auto", 12), ("car", "machine", 3), ("auto", "car", 7)]
    >>> from_synonyms(["car", "auto", "machine"], synonyms=votes).to_dense()
    array([[1.  , 1.  , 0.25],
           [1.  , 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    strength = Number(above=0, at_most=1)(strength, "strength")
    epsilon = Number(above=0)(epsilon, "epsilon")
    fold = check_flag(fold, "fold")
    source, target = read_spaces(source, target)
    if check_flag(symmetric, "symmetric") and source is not target:
        fail("a symmetric kernel must have the same source and target labels; got two sets.")
    pairs = as_edges(synonyms, origin="synonyms")
    own = source.match(target, fold=fold).places
    named = np.flatnonzero(own >= 0)
    words, shares = _share_votes(pairs, fold=fold)
    matrix = _pick(shares, _places(source, words, fold=fold), _places(target, words, fold=fold))
    matrix.data = (strength * matrix.data) ** (1 / epsilon)
    if not matrix.data.all():
        fail(
            "every synonym must have a similarity above 0 in float64; got one that vanishes at"
            f" epsilon {epsilon:g}.",
            hint=f"take a larger {option('epsilon')}",
        )
    if symmetric:
        matrix = matrix.maximum(matrix.T)
    joined = np.diff(matrix.indptr) > 0
    itself = sp.csr_array((np.ones(len(named)), (named, own[named])), shape=matrix.shape)
    kernel = SparseKernel(matrix.maximum(itself), symmetric=bool(symmetric))
    notes = note_labels(source, ~joined, "without a synonym among the target labels")
    notes += note_unjoined(kernel, source, target)
    votes = "votes" if pairs.weights is not None else "no votes"
    origin = f"synonyms of {pairs.origin}, {votes}, strength {strength:g}, epsilon {epsilon:g}"
    return LabelledKernel(kernel, source, target, origin, notes)


def _share_votes(pairs: Edges, *, fold: bool) -> tuple[dict[str, int], sp.csr_array]:
    """Places of the words, and votes over the most votes of the same word, word by synonym."""
    votes = np.ones(len(pairs)) if pairs.weights is None else pairs.weights
    if (votes < 0).any():
        wrong = int((votes < 0).argmax())
        fail(
            f"votes must not be negative; got {votes[wrong]:g} for"
            f" {pairs.nodes[pairs.ends[wrong]]!r} as a synonym of"
            f" {pairs.nodes[pairs.starts[wrong]]!r}."
        )
    words: dict[str, int] = {}
    number = np.array([words.setdefault(_key(node, fold=fold), len(words)) for node in pairs.nodes])
    starts, ends = number[pairs.starts], number[pairs.ends]
    used = (votes > 0) & (starts != ends)
    places = starts[used], ends[used]
    matrix = sp.csr_array((votes[used], places), shape=(len(words), len(words)))
    matrix.sum_duplicates()
    if pairs.weights is None:
        matrix.data[:] = 1  # the same pair twice is no second vote
    most = matrix.max(axis=1).toarray().ravel()
    matrix.data /= np.repeat(most, np.diff(matrix.indptr))
    return words, matrix


def _key(name: str, *, fold: bool) -> str:
    return (fold_name(name) if fold else name) or name  # nothing is left of "-" when folded


def _places(space: LabelSpace, words: dict[str, int], *, fold: bool) -> np.ndarray:
    """Place of each label among the words, -1 where it is none."""
    return np.array([words.get(_key(label, fold=fold), -1) for label in space])


def _pick(shares: sp.csr_array, rows: np.ndarray, columns: np.ndarray) -> sp.csr_array:
    """The matrix of labels from that of words; labels that are no word have no entries."""
    blank = len(shares.indptr) - 1
    padded = sp.csr_array(shares, copy=True)
    padded.resize((blank + 1, blank + 1))
    rows, columns = (np.where(places < 0, blank, places) for places in (rows, columns))
    return sp.csr_array(padded[rows][:, columns])
