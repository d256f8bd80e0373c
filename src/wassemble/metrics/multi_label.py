"""Metrics of predictions with any number of true labels per sample (the paper, section 6.2).

The paper's table of single models has its own figures beside published ones: mAP, and
precision, recall and F1 per class ("-C", macro) and overall ("-O", micro).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._arrays import detached
from wassemble._checks import as_float_array, check_count, fail
from wassemble.metrics.arguments import read_label_truth, read_sample_weight, read_scores


def average_precision(
    scores: Any, truth: Any, sample_weight: Any = None, *, mask: Any = None
) -> np.ndarray:
    """Average precision of each label: the area under its precision over recall.

    The sum over thresholds of precision times the recall that is gained there, without
    interpolation, as scikit-learn's ``average_precision_score`` has it; nan for a label without
    a positive.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        A row without an answer scores 0 for every label.
    truth : array of 0 and 1, shape (n_samples, n_labels)
        -1 or nan for what is not known, which is left out.
    sample_weight : array of shape (n_samples,), optional
    mask : array of bool, shape (n_samples, n_labels), optional
        True for what is known.

    Examples
    --------
    >>> average_precision([[0.9, 0.2], [0.8, 0.1], [0.7, 0.3]], [[1, 0], [0, 0], [1, 0]])
    array([0.83333333,        nan])
    """
    table = read_scores(scores)
    positive, known = read_label_truth(truth, mask, table.shape)
    weight = np.ones(len(table))
    if sample_weight is not None:
        weight = read_sample_weight(sample_weight, len(table))
    return precisions(table, np.where(known, positive, np.nan), weight[:, None])[:, 0]


def mean_average_precision(
    scores: Any, truth: Any, sample_weight: Any = None, *, mask: Any = None
) -> float:
    """Mean of `average_precision` over the labels with a positive (mAP; the paper, section 6.2).

    Arguments as there; nan if no label has a positive.

    Examples
    --------
    >>> scores, truth = [[0.9, 0.2], [0.8, 0.1], [0.7, 0.3]], [[1, 0], [0, 0], [1, 1]]
    >>> round(mean_average_precision(scores, truth), 4)
    0.9167
    """
    precision = average_precision(scores, truth, sample_weight, mask=mask)
    return _mean_over(precision, ~np.isnan(precision))


def precisions(scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Average precision of labels under several weightings, ``(n_labels, n_weightings)``.

    ``weights`` has shape (n_samples, n_weightings): a column is how often samples count.
    scikit-learn's function takes one label and one weighting at a time.
    """
    scores = np.nan_to_num(scores)
    order = np.argsort(-scores, axis=0, kind="stable")
    return np.stack(
        [
            _precision(scores[rows, j], truth[rows, j], weights, rows)
            for j, rows in enumerate(order.T)
        ]
    )


def _precision(
    scores: np.ndarray, truth: np.ndarray, weights: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Of one label whose samples ``rows`` are sorted, best first."""
    known = ~np.isnan(truth)
    if not known.all():
        scores, truth, rows = scores[known], truth[known], rows[known]
    positive = np.flatnonzero(truth == 1)
    if not len(positive):
        return np.full(weights.shape[1], np.nan)
    weights = weights[rows]
    hits = np.cumsum(weights[positive], axis=0)
    # Scores that tie are one step: its precision is that at the last of them.
    last = np.flatnonzero(np.concatenate([scores[1:] != scores[:-1], [True]]))
    ends = last[np.searchsorted(last, positive)]
    is_new = np.concatenate([[True], ends[1:] != ends[:-1]])
    steps, step_of = ends[is_new], np.cumsum(is_new) - 1
    starts = np.concatenate([[0], steps[:-1] + 1])
    total = np.cumsum(np.add.reduceat(weights[: steps[-1] + 1], starts), axis=0)
    found_at = hits[np.searchsorted(positive, steps, side="right") - 1]
    precision = np.divide(found_at, total, out=np.zeros_like(found_at), where=total > 0)
    sums = (precision[step_of] * weights[positive]).sum(axis=0)
    out = np.full(len(sums), np.nan, dtype=sums.dtype)
    return np.divide(sums, hits[-1], out=out, where=hits[-1] > 0)


def mean_precision(values: np.ndarray) -> np.ndarray:
    """Mean of `precisions` over the labels with a positive, ``(n_weightings,)``; 0 without."""
    seen = ~np.isnan(values)
    return np.where(seen, values, 0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)


@dataclass(frozen=True)
class PrecisionRecallF1:
    """The paper's six figures of multi-label decisions, and the other reading of F1-C.

    Attributes
    ----------
    precision_per_class, recall_per_class, f1_per_class : float
        P-C, R-C and F1-C: means over the labels of each label's own (macro).
    precision_overall, recall_overall, f1_overall : float
        P-O, R-O and F1-O: of all decisions on all labels together (micro).
    f1_of_means : float
        Harmonic mean of P-C and R-C. The paper defines F1-C as the mean of each label's F1
        (its appendix, after Wu and Zhou 2016), and the published rows of its table follow
        Zhu et al. 2017, who compute that; the rows of its own models have this one.
    n_labels : int
        Labels with a positive, which the first three and ``f1_of_means`` are means over.
    """

    precision_per_class: float
    recall_per_class: float
    f1_per_class: float
    precision_overall: float
    recall_overall: float
    f1_overall: float
    f1_of_means: float
    n_labels: int


def precision_recall_f1(
    scores: Any, truth: Any, *, threshold: Any = None, top_k: int | None = None, mask: Any = None
) -> PrecisionRecallF1:
    """Precision, recall and F1 of multi-label decisions (the paper, appendix on metrics).

    A label that is never decided has precision 0. A label without a positive has no recall
    and is left out of the figures per class; overall, its false positives count. All are nan
    where there is no positive at all.

    Parameters
    ----------
    scores, truth, mask
        As in `average_precision`.
    threshold : float or array of shape (n_labels,), optional
        Labels are decided that score at least this; 0.5 if ``top_k`` is not given either,
        as in the paper.
    top_k : int, optional
        Labels are decided that are among the so many largest scores of a sample, above 0;
        of equal scores the first. With ``threshold``, both must hold.

    Examples
    --------
    >>> figures = precision_recall_f1([[0.9, 0.6], [0.4, 0.7]], [[1, 0], [1, 1]])
    >>> figures.precision_per_class, figures.recall_per_class
    (0.75, 0.75)
    >>> figures.f1_per_class == figures.f1_overall == 2 / 3, figures.f1_of_means
    (True, 0.75)
    """
    table = read_scores(scores)
    positive, known = read_label_truth(truth, mask, table.shape)
    if threshold is None and top_k is None:
        threshold = 0.5
    decided = decide_labels(table, threshold, top_k, name="threshold") & known
    n_hits = (decided & positive).sum(axis=0)
    n_decided, n_positive = decided.sum(axis=0), positive.sum(axis=0)
    counted = n_positive > 0
    per_label = _figures(n_hits, n_decided, n_positive)
    together = _figures(*(n.sum(keepdims=True) for n in (n_hits, n_decided, n_positive)))
    precision, recall, f1 = (_mean_over(values, counted) for values in per_label)
    return PrecisionRecallF1(
        precision_per_class=precision,
        recall_per_class=recall,
        f1_per_class=f1,
        precision_overall=float(together[0][0]),
        recall_overall=float(together[1][0]),
        f1_overall=float(together[2][0]),
        f1_of_means=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        n_labels=int(counted.sum()),
    )


def decide_labels(scores: np.ndarray, thresholds: Any, top_k: int | None, name: str) -> np.ndarray:
    """Mask of the labels that reach their threshold and are among the ``top_k`` largest.

    None is no condition; a row without an answer decides nothing.
    """
    n_labels = scores.shape[1]
    decided = np.repeat(scores.any(axis=1, keepdims=True), n_labels, axis=1)
    if thresholds is not None:
        limits = detached(as_float_array(thresholds, name))
        if limits.shape not in ((), (n_labels,)):
            fail(
                f"`{name}` must be one number, or one for each of the {n_labels} labels;"
                f" got shape {limits.shape}."
            )
        if np.isnan(limits).any():
            where = f" at label {int(np.isnan(limits).argmax())}" if limits.ndim else ""
            fail(f"`{name}` must not be nan; got nan{where}.")
        decided &= scores >= limits
    if top_k is not None:
        check_count(top_k, "top_k")
        largest = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
        among = np.zeros_like(decided)
        np.put_along_axis(among, largest, values=True, axis=1)
        decided &= among & (scores > 0)
    return decided


def _figures(
    n_hits: np.ndarray, n_decided: np.ndarray, n_positive: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall and F1; nan without a positive."""
    precision = n_hits / np.maximum(n_decided, 1)
    recall = n_hits / np.maximum(n_positive, 1)
    f1 = 2 * n_hits / np.maximum(n_decided + n_positive, 1)
    undefined = n_positive == 0
    for values in (precision, recall, f1):
        values[undefined] = np.nan
    return precision, recall, f1


def _mean_over(values: np.ndarray, counted: np.ndarray) -> float:
    return float(values[counted].mean()) if counted.any() else float("nan")
