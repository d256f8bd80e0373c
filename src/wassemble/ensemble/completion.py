"""Scores that a model did not report: what stands for them.

A top-5 list, a hard label and a model that keeps silent say less than a whole histogram.
What they leave out is unobserved, not zero; the rules here say what is made of it.
"""

from typing import Literal, get_args

import numpy as np

from wassemble._checks import fail, option
from wassemble.inputs import Predictions
from wassemble.inputs.predictions.value import is_near_one

Unobserved = Literal["spread", "renormalize", "drop"]
RULES: tuple[str, ...] = get_args(Unobserved)


def complete_scores(
    predictions: Predictions,
    unobserved: Unobserved,
    *,
    hard_confidence: float,
    answered: np.ndarray | None = None,
) -> np.ndarray:
    """Scores without nan, ``(n_samples, n_labels)``; rows without an answer are all 0.

    Histograms come back with mass 1, unless ``unobserved`` is "drop": mass that is left where
    every label was reported is on labels that nobody named, and goes to the reported ones.
    ``answered`` is that of the predictions, if it is known already.
    """
    scores, missing = predictions.scores, np.isnan(predictions.scores)
    if missing.any():
        scores = np.where(missing, 0, scores)
    answered = predictions.answered if answered is None else answered
    if predictions.kind == "multilabel":
        return _complete_multilabel(scores, missing, answered, unobserved, predictions)
    sums = scores.sum(axis=1, dtype=np.float64)
    if predictions.is_hard:
        factor = np.divide(hard_confidence, sums, out=np.zeros_like(sums), where=sums > 0)
        scores, sums = scores * factor[:, None].astype(scores.dtype), sums * factor
    n_missing = missing.sum(axis=1)
    is_whole = is_near_one(scores, sums)
    _check_sums(predictions, sums, is_whole)
    if unobserved == "spread":
        # What rounding leaves is nothing: to some rules 1e-17 is a hint, and 0 a veto.
        rounding = np.finfo(scores.dtype).eps + scores.shape[1] * np.finfo(np.float64).eps
        left = np.where(1 - sums > rounding, 1 - sums, 0) / np.maximum(n_missing, 1)
        # What a list leaves out is below what it names; the rest is on labels that nobody named.
        left = np.minimum(left, np.where(missing | (scores == 0), np.inf, scores).min(axis=1))
        scores = np.where(missing & answered[:, None], left[:, None], scores)
        sums = scores.sum(axis=1, dtype=np.float64)
    # With "drop" what was not reported stays out, and only whole rows are rounded to mass 1.
    whole = answered
    if unobserved == "drop":
        whole = answered & (n_missing == 0) & is_whole
    divisor = np.where(whole, np.where(sums > 0, sums, 1), 1)
    scores = scores / divisor[:, None]
    return scores.astype(predictions.scores.dtype, copy=False)


def _complete_multilabel(
    scores: np.ndarray,
    missing: np.ndarray,
    answered: np.ndarray,
    unobserved: Unobserved,
    predictions: Predictions,
) -> np.ndarray:
    if unobserved == "renormalize":
        fail(
            f"{option('unobserved', 'renormalize')} must go with histograms; got multi-label scores"
            f" of {predictions.model!r}.",
            hint='"spread" or "drop"',
        )
    if unobserved == "drop" or not missing.any():
        return scores
    # An unreported score lies between 0 and the smallest reported one.
    smallest = np.where(missing, np.inf, scores).min(axis=1)
    half = np.where(answered, smallest / 2, 0)
    return np.where(missing, half[:, None], scores).astype(scores.dtype, copy=False)


def _check_sums(predictions: Predictions, sums: np.ndarray, is_whole: np.ndarray) -> None:
    wrong = (sums > 1) & ~is_whole
    if wrong.any():
        row = int(np.argmax(wrong))
        fail(
            f"histograms must sum to 1 at most; got {sums[row]:.4g} at sample"
            f" {predictions.samples[row]!r} of {predictions.model!r}.",
            hint=f"{option('normalize', True)} divides each row by its sum;"
            f" {option('kind', 'multilabel')} takes scores of any mass",
        )


def describe_rule(unobserved: Unobserved, kind: str) -> str:
    """The rule in words, for a report."""
    if kind == "multilabel":
        return {
            "spread": "an unreported score counts as half of the row's smallest reported one",
            "drop": "an unreported score counts as 0",
        }[unobserved]
    return {
        "spread": "unreported mass is spread evenly over the model's unreported labels, each at"
        " most the smallest score that it reported, and rows are divided by their sums",
        "renormalize": "reported scores are divided by their sum",
        "drop": "unreported mass is left out",
    }[unobserved]
