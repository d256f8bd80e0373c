"""Decisions from a consensus: one label, a kind of label, or a set of labels per sample.

A row that is 0 or nan everywhere has no answer: place -1, no name, no label of a set.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from wassemble._checks import Number, OneOf, check_count, fail
from wassemble.inputs.words.graphs import Edges, as_edges
from wassemble.kernels.builders.spaces import find_nodes
from wassemble.kernels.builders.tree import check_ancestry
from wassemble.labels import LabelSpace
from wassemble.metrics.arguments import (
    best_labels,
    divide_rows,
    read_cost,
    read_label_truth,
    read_sample_weight,
    read_scores,
)
from wassemble.metrics.multi_label import decide_labels

ThresholdMetric = Literal["f1", "accuracy"]

_N_ENTRIES = 4_000_000
"""Entries of the mass per sample and node at a time: bounds the memory of `back_off`."""
_ROUNDING = 1e-7
"""By how much a share must be above the confidence: two halves in float32 are not more."""


@dataclass(frozen=True, eq=False)
class BackOff:
    """The node that answers for each sample."""

    names: np.ndarray  # (n_samples,), objects: a label's node or one above it; None for no answer
    mass: np.ndarray  # (n_samples,): share at and below the node; nan for no answer


def choose_best(scores: Any) -> np.ndarray:
    """Place of the largest score of each sample, the first of equal ones; -1 for no answer.

    Examples
    --------
    >>> choose_best([[0.2, 0.8], [0.5, 0.5], [np.nan, np.nan]])
    array([ 1,  0, -1])
    """
    return best_labels(read_scores(scores))


def choose_least_cost(histograms: Any, cost: Any) -> np.ndarray:
    """Place of the answer of least expected cost; -1 for no answer (Elkan 2001, equation 1).

    Parameters
    ----------
    histograms : array of shape (n_samples, n_labels)
        How likely each label is to be the true one; only proportions matter.
    cost : array of shape (n_labels, n_answers)
        Cost of each answer (column) if a label (row) is the true one, as in `mean_cost`.
        Of answers with equal costs the first is chosen.

    Examples
    --------
    >>> steps = [[0, 2, 4], [2, 0, 4], [4, 4, 0]]  # husky, beagle, car
    >>> choose_least_cost([[0.25, 0.35, 0.4]], steps)  # most likely a dog, and then a beagle
    array([1])
    """
    table, matrix = read_scores(histograms, "histograms"), read_cost(cost)
    if matrix.shape[0] != table.shape[1]:
        fail(
            f"`cost` must have a row for each of the {table.shape[1]} labels;"
            f" got {matrix.shape[0]} rows."
        )
    return np.where(table.any(axis=1), (table @ matrix).argmin(axis=1), -1)


def back_off(
    histograms: Any,
    labels: Iterable[str],
    edges: Edges | Iterable[tuple[str, str]],
    *,
    confidence: float = 0.5,
    nodes: Mapping[str, str] | None = None,
) -> BackOff:
    """The lowest node of a tree that holds enough mass: "some kind of dog" if breeds tie.

    After Deng et al. 2012, who trade depth for accuracy in the same way.

    Parameters
    ----------
    histograms : array of shape (n_samples, n_labels)
        Rows are divided by their sums.
    labels : iterable of str
        Names of the columns.
    edges : Edges or iterable of (parent, child)
        As in `kernels.from_tree`. A label that is no node stands alone.
    confidence : float
        A node can answer if more than this share of the mass is at and below it; from 0 to
        below 1. From 0.5 on, such nodes lie below each other and the lowest answers. Below
        0.5 there may be several lowest ones, and the one with most mass answers, the first
        label of equal ones; 0 gives the largest label that has no label below it.
    nodes : mapping of str to str, optional
        Node of each label whose node has another name.

    Examples
    --------
    >>> tree = [("animal", "dog"), ("animal", "cat"), ("dog", "husky"), ("dog", "beagle")]
    >>> found = back_off([[0.5, 0.4, 0.1], [0.1, 0.2, 0.7]], ["husky", "beagle", "cat"], tree)
    >>> found.names.tolist(), found.mass.tolist()
    (['dog', 'cat'], [0.9, 0.7])
    """
    table = read_scores(histograms, "histograms")
    space = LabelSpace(labels)
    if len(space) != table.shape[1]:
        fail(f"`labels` must name all {table.shape[1]} columns; got {len(space)} names.")
    confidence = Number(at_least=0, below=1)(confidence, "confidence")
    names, above, parents = _climb(space, as_edges(edges), nodes)
    shares = divide_rows(table)
    answers = BackOff(np.full(len(table), None), np.full(len(table), np.nan))
    n_rows = max(1, _N_ENTRIES // len(names))
    for start in range(0, len(table), n_rows):
        mass = shares[start : start + n_rows] @ above
        enough = mass > confidence + _ROUNDING
        # Mass never shrinks on the way up: a node is lowest if no child has enough.
        lowest = enough & ~((enough.astype(np.float64) @ parents) > 0)
        place = np.where(lowest, mass, -1).argmax(axis=1)
        answered = np.flatnonzero(lowest.any(axis=1))
        answers.names[start + answered] = names[place[answered]]
        answers.mass[start + answered] = np.minimum(mass[answered, place[answered]], 1)
    return answers


def apply_thresholds(scores: Any, thresholds: Any) -> np.ndarray:
    """0 or 1 for each sample and label: 1 where the score is at least the threshold.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        A row without an answer gets 0 everywhere, whatever the thresholds.
    thresholds : float or array of shape (n_labels,)

    Examples
    --------
    >>> apply_thresholds([[0.4, 0.4], [0.5, 0.1]], [0.5, 0.3])
    array([[0, 1],
           [1, 0]], dtype=int8)
    """
    return decide_labels(read_scores(scores), thresholds, None, name="thresholds").astype(np.int8)


def fit_thresholds(
    scores: Any,
    truth: Any,
    *,
    metric: ThresholdMetric = "f1",
    min_positives: int = 10,
    mask: Any = None,
    sample_weight: Any = None,
) -> np.ndarray:
    """Threshold of each label under which its decisions on validation data are best.

    Every threshold that matters is tried (Lipton, Elkan and Narayanaswamy 2014). Of equally
    good ones the highest is kept, halfway to the next lower score.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Rows without an answer are left out.
    truth : array of 0 and 1, shape (n_samples, n_labels)
        -1 or nan for what is not known, which is left out.
    metric : {"f1", "accuracy"}
        F1 of the label, or its share of right decisions.
    min_positives : int
        Labels with fewer positives get the threshold that is best for all labels together.
    mask : array of bool, shape (n_samples, n_labels), optional
        True for what is known.
    sample_weight : array of shape (n_samples,), optional
        How much each row counts; rows of weight 0 are left out.

    Returns
    -------
    thresholds : array of shape (n_labels,)
        For `apply_thresholds`; infinite where the most accurate decision is always 0.

    Examples
    --------
    >>> scores = [[0.2, 0.9], [0.4, 0.8], [0.6, 0.2]]
    >>> fit_thresholds(scores, [[0, 1], [1, 0], [1, 0]], min_positives=1)
    array([0.3 , 0.85])
    """
    OneOf(get_args(ThresholdMetric))(metric, "metric")
    check_count(min_positives, "min_positives")
    table = read_scores(scores)
    positive, known = read_label_truth(truth, mask, table.shape)
    weight = np.ones(len(table))
    if sample_weight is not None:
        weight = read_sample_weight(sample_weight, len(table))
    known &= table.any(axis=1, keepdims=True) & (weight > 0)[:, np.newaxis]
    positive &= known
    n_positives = positive.sum(axis=0)
    if not n_positives.any():
        fail("`truth` must have a positive in a row with an answer; got none.")
    thresholds = np.empty(table.shape[1])
    rare = n_positives < min_positives
    if rare.any():
        weights = np.broadcast_to(weight[:, np.newaxis], table.shape)
        thresholds[rare] = _best_threshold(table[known], positive[known], weights[known], metric)
    for label in np.flatnonzero(~rare).tolist():
        rows = known[:, label]
        thresholds[label] = _best_threshold(
            table[rows, label], positive[rows, label], weight[rows], metric
        )
    return thresholds


def _best_threshold(
    scores: np.ndarray, positive: np.ndarray, weight: np.ndarray, metric: ThresholdMetric
) -> float:
    order = np.argsort(-scores, kind="stable")
    scores, n_hits = scores[order], np.cumsum((positive * weight)[order])
    n_decided, n_positive = np.cumsum(weight[order]), n_hits[-1]
    # Equal scores are decided together: only the last of them is a place to stop.
    stops = np.flatnonzero(np.append(scores[1:] < scores[:-1], True))
    if metric == "f1":
        value = 2 * n_hits[stops] / (n_decided[stops] + n_positive)
    else:
        value = 2 * n_hits[stops] - n_decided[stops]  # right decisions, less those of "always 0"
        if value.max() <= 0:
            return np.inf
    stop = stops[value.argmax()]
    upper, lower = scores[stop], scores[stop + 1] if stop + 1 < len(scores) else 0.0
    middle = lower + (upper - lower) / 2
    return float(middle if lower < middle else upper)


def _climb(
    space: LabelSpace, tree: Edges, nodes: Mapping[str, str] | None
) -> tuple[np.ndarray, sp.csr_array, sp.csr_array]:
    """Names of the labels and all nodes above, and who is above whom.

    Both matrices have a column per name: ``above`` a row per label, 1 for itself and each
    ancestor; ``parents`` a row per name.
    """
    check_ancestry(tree)
    own = list(space)
    for label, node in zip(*find_nodes(space, tree.nodes, nodes, what=tree.origin), strict=True):
        own[label] = tree.nodes[node]
    names = LabelSpace.union(own, tree.nodes)  # labels first: the first of equal ones answers
    places = names.places(tree.nodes)
    ends = places[tree.ends], places[tree.starts]
    parents = sp.csr_array((np.ones(len(tree)), ends), shape=(len(names), len(names)))
    step = sp.csr_array(
        (np.ones(len(own)), (np.arange(len(own)), names.places(own))),
        shape=(len(own), len(names)),
    )
    above = step
    while step.nnz:
        step = (step @ parents).sign()
        above = (above + step).sign()
    kept = np.flatnonzero(above.sum(axis=0))
    return np.array(names.names, dtype=object)[kept], above[:, kept], parents[kept][:, kept]
