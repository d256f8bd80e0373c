"""Arguments of the metrics: read and checked once, in the form that the formulas want.

A row without an answer, 0 or nan everywhere, is a row of zeros from here on.
"""

from typing import Any

import numpy as np

from wassemble._arrays import detached
from wassemble._checks import (
    as_float_array,
    check_nonnegative,
    fail,
    read_array,
    refuse_names,
)


def read_scores(scores: Any, name: str = "scores") -> np.ndarray:
    """``scores`` as float64 of shape (n_samples, n_labels); rows of nan become rows of 0."""
    array = detached(as_float_array(scores, name))
    if array.ndim != 2 or 0 in array.shape:
        fail(
            f"`{name}` must have shape (n_samples, n_labels), with at least one of each;"
            f" got shape {array.shape}."
        )
    return _without_nan(array, name)


def read_rows(histograms: Any, name: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """Histograms of shape (..., n_labels) as rows that sum to 1 or 0, and the leading shape."""
    rows, shape = read_masses(histograms, name)
    return divide_rows(rows), shape


def read_masses(scores: Any, name: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """Scores of shape (..., n_labels), of any mass, as rows, and the leading shape."""
    array = detached(as_float_array(scores, name))
    if array.ndim == 0 or array.shape[-1] == 0:
        fail(
            f"`{name}` must have shape (..., n_labels), with at least one label;"
            f" got shape {array.shape}."
        )
    return _without_nan(array.reshape(-1, array.shape[-1]), name), array.shape[:-1]


def _without_nan(array: np.ndarray, name: str) -> np.ndarray:
    array = array.astype(np.float64)
    missing = np.isnan(array)
    if missing.any():
        in_part = missing.any(axis=1) & ~missing.all(axis=1)
        if in_part.any():
            sample = int(in_part.argmax())
            fail(
                f"a row of `{name}` must be nan everywhere or nowhere; got nan at sample {sample},"
                f" label {int(missing[sample].argmax())} only.",
                hint="nan everywhere says that there is no answer for a sample",
            )
        array[missing] = 0
    hint = "a softmax or a sigmoid makes scores of logits"
    check_nonnegative(array, name, "sample {}, label {}".format, hint=hint)
    return array


def divide_rows(scores: np.ndarray) -> np.ndarray:
    """Rows divided by their sums; rows of 0 stay."""
    largest = scores.max(axis=1, keepdims=True)
    # By the largest entry first: a sum may overflow, or be too small to divide by.
    scores = np.divide(scores, largest, out=np.zeros_like(scores), where=largest > 0)
    totals = scores.sum(axis=1, keepdims=True)
    return np.divide(scores, totals, out=scores, where=totals > 0)


def histograms_of(scores: np.ndarray) -> np.ndarray:
    """Rows divided by their sums; a row without an answer is uniform."""
    histograms = divide_rows(np.nan_to_num(scores.astype(np.float64)))
    histograms[~histograms.any(axis=1)] = 1 / histograms.shape[1]
    return histograms


def best_labels(scores: np.ndarray) -> np.ndarray:
    """Place of the largest entry of each row, the first of equal ones; -1 for rows of 0."""
    best = scores.argmax(axis=1)
    return np.where(scores[np.arange(len(best)), best] > 0, best, -1)


def read_answers(scores: Any, n_answers: int | None = None) -> tuple[np.ndarray, int | None]:
    """The place of each sample's answer, given or by its scores, and the number of labels.

    ``n_answers`` is that number, if it is known; it stays unknown for answers given.
    """
    refuse_names(scores, "scores")
    places = read_array(scores, "scores")
    if places.ndim != 1 or places.dtype.kind not in "iu":
        table = read_scores(scores)
        if n_answers is not None and table.shape[1] != n_answers:
            fail(
                f"`scores` must have a label for each of the {n_answers} columns of `cost`;"
                f" got {table.shape[1]} labels."
            )
        return best_labels(table), table.shape[1]
    if not len(places):
        fail("`scores` must hold at least one sample; got none.")
    wrong = places < -1 if n_answers is None else (places < -1) | (places >= n_answers)
    if wrong.any():
        sample = int(wrong.argmax())
        most = "" if n_answers is None else f" to {n_answers - 1}"
        fail(
            f"an answer must be the place of a label, from 0{most}, or -1 for none;"
            f" got {places[sample]} at sample {sample}."
        )
    return places.astype(np.int64), n_answers


def read_truth(truth: Any, n_samples: int, n_labels: int | None) -> np.ndarray:
    """``truth`` as the place of the true label of each sample, checked against the labels."""
    refuse_names(truth, "truth")
    places = read_array(truth, "truth")
    if places.dtype.kind not in "iu":
        fail(
            "`truth` must be whole numbers, the places of the true labels counted from 0;"
            f" got an array of dtype {places.dtype}.",
            hint="`LabelSpace.places` turns names into places",
        )
    if places.shape != (n_samples,):
        fail(
            f"`truth` must hold one label for each of the {n_samples} samples;"
            f" got shape {places.shape}."
        )
    wrong = places < 0 if n_labels is None else (places < 0) | (places >= n_labels)
    if wrong.any():
        sample = int(wrong.argmax())
        must = "at least 0" if n_labels is None else f"from 0 to {n_labels - 1}"
        fail(f"`truth` must be {must}; got {places[sample]} at sample {sample}.")
    return places.astype(np.int64)


def read_table_and_truth(scores: Any, truth: Any) -> tuple[np.ndarray, np.ndarray]:
    """`read_scores` and `read_truth` of the same samples and labels."""
    table = read_scores(scores)
    return table, read_truth(truth, *table.shape)


def read_label_truth(
    truth: Any, mask: Any, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Which labels are true and which are known, both as masks of ``shape``."""
    array = detached(as_float_array(truth, "truth"))
    if array.shape != shape:
        fail(f"`truth` must have the shape of `scores`, {shape}; got {array.shape}.")
    wrong = ~(np.isin(array, (-1, 0, 1)) | np.isnan(array))
    if wrong.any():
        sample, label = np.argwhere(wrong)[0]
        fail(
            "`truth` must be 0, 1, or -1 or nan for what is not known;"
            f" got {array[sample, label]:g} at sample {sample}, label {label}."
        )
    known = array >= 0
    if mask is not None:
        refuse_names(mask, "mask")
        mask = np.asarray(detached(mask))
        if mask.dtype != bool or mask.shape != shape:
            fail(
                f"`mask` must be True or False for each entry of `truth`, shape {shape};"
                f" got {mask.dtype} of shape {mask.shape}."
            )
        known &= mask
    return (array == 1) & known, known


def read_cost(cost: Any, name: str = "cost", *, n_labels: int | None = None) -> np.ndarray:
    """``cost`` as a finite float64 matrix; square, over ``n_labels`` labels if that is given."""
    matrix = detached(as_float_array(cost, name))
    if matrix.ndim != 2 or 0 in matrix.shape:
        fail(f"`{name}` must be a matrix, (n_labels, n_labels); got shape {matrix.shape}.")
    if n_labels is not None and matrix.shape != (n_labels, n_labels):
        fail(
            f"`{name}` must have a row and a column for each of the {n_labels} labels;"
            f" got shape {matrix.shape}."
        )
    check_nonnegative(matrix, name, "row {}, column {}".format)
    return matrix.astype(np.float64)


def read_positions(positions: Any, n_labels: int) -> np.ndarray:
    """Where labels lie on a line, as float64, checked."""
    line = detached(as_float_array(positions, "positions")).astype(np.float64)
    if line.shape != (n_labels,) or not np.isfinite(line).all():
        fail(
            f"`positions` must be a finite number for each of the {n_labels} labels; got"
            f" {line.tolist()}."
        )
    return np.asarray(line)


def read_sample_weight(sample_weight: Any, n_samples: int) -> np.ndarray:
    """How much each sample counts, for some of them more than 0."""
    weights = detached(as_float_array(sample_weight, "sample_weight"))
    if weights.shape != (n_samples,):
        fail(
            f"`sample_weight` must hold one number for each of the {n_samples} samples;"
            f" got shape {weights.shape}."
        )
    check_nonnegative(weights, "sample_weight", "sample {}".format)
    if not weights.any():
        fail("`sample_weight` must be above 0 for some sample; got 0 for all.")
    return weights


def weighted_mean(values: np.ndarray, sample_weight: Any) -> float:
    """Mean of ``values`` over the samples."""
    if sample_weight is None:
        return float(values.mean())
    weights = read_sample_weight(sample_weight, len(values))
    kept = weights > 0  # 0 times an infinite loss is nan
    return float(np.average(values[kept], weights=weights[kept]))
