"""The paper's best multi-label kernel: a diagonal per sample that favours top labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wassemble._arrays import detached
from wassemble._checks import (
    as_float_array,
    check_count,
    check_flag,
    check_nonnegative,
    check_nonnegative_number,
    fail,
)
from wassemble.kernels.diagonal import DiagonalKernel


def top_labels(
    scores_per_model: Any, *, n_top: int, floor: float, mean_scores: bool = False
) -> DiagonalKernel:
    """Diagonal kernel of each sample: 1 for the top labels of any model, else ``floor``.

    It moves no mass between labels; it holds back labels that no model ranks high (paper,
    section 6.2).

    Differs from the paper: there the top labels get the mean of the models' scores in place
    of 1, as with ``mean_scores``. A 1 keeps the kernel from raising the scores to a power.

    Parameters
    ----------
    scores_per_model : sequence of arrays of shape (n_samples, n_labels)
        One per model, or one array of shape (n_models, n_samples, n_labels). A label with
        nan is no top label.
    n_top : int
        How many labels of each model count. Labels that tie with the last of them count
        too, labels of score 0 never.
    floor : float
        At least 0: the entry of every other label.
    mean_scores : bool
        Give the top labels the mean of the models' scores in place of 1.

    Examples
    --------
    >>> models = [[[0.9, 0.2, 0.1]], [[0.3, 0.7, 0.1]]]  # two models, one sample
    >>> top_labels(models, n_top=1, floor=0.5).diagonal
    array([[1. , 1. , 0.5]])
    """
    n_top = check_count(n_top, "n_top")
    floor = check_nonnegative_number(floor, "floor")
    mean_scores = check_flag(mean_scores, "mean_scores")
    scores = _read_scores(scores_per_model)
    n_labels = scores.shape[-1]
    if n_top > n_labels:
        fail(f"`n_top` must be at most the number of labels, {n_labels}; got {n_top}.")
    least = np.partition(scores, n_labels - n_top, axis=-1)[..., n_labels - n_top, None]
    is_top = ((scores >= least) & (scores > 0)).any(axis=0)
    value = scores.mean(axis=0) if mean_scores else np.ones((), dtype=scores.dtype)
    return DiagonalKernel(np.where(is_top, value, np.asarray(floor, dtype=scores.dtype)))


def _read_scores(value: Any) -> np.ndarray:
    if isinstance(value, Sequence) and not isinstance(value, str):
        arrays = [detached(as_float_array(scores, "scores_per_model")) for scores in value]
        shapes = list(dict.fromkeys(array.shape for array in arrays))
        if len(shapes) > 1:
            fail(f"the scores of all models must have one shape; got {shapes[0]} and {shapes[1]}.")
        scores = np.stack(arrays) if arrays else np.zeros(0)
    else:
        scores = detached(as_float_array(value, "scores_per_model"))
    if scores.ndim != 3 or 0 in scores.shape:
        fail(
            "`scores_per_model` must have shape (n_models, n_samples, n_labels), none of them 0;"
            f" got {scores.shape}."
        )
    scores = np.where(np.isnan(scores), 0, scores)
    check_nonnegative(scores, "scores_per_model", "model {}, sample {}, label {}".format)
    return scores
