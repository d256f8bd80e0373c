"""`score_predictions`: how right one table of predictions is, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble.label_overlap import tell_strangers
from wassemble.ensemble.learning.trial import Trial, read_trial
from wassemble.inputs import Kind, Predictions
from wassemble.metrics import measure as read_measure

__all__ = ["Score", "score_predictions"]

_USUAL: dict[Kind, tuple[str, ...]] = {
    "multiclass": ("accuracy", "log_loss", "brier_score"),
    "multilabel": ("mAP",),
}


@dataclass(frozen=True)
class Score:
    """One metric on the samples whose truth is known.

    Attributes
    ----------
    value : float
        log_loss and brier_score are losses: the lower the better.
    low, high : float
        Bootstrap interval of 95 % over samples.
    n_scored : int
        Samples of the file whose truth is known.
    n_without_truth : int
        Samples of the file whose truth is not known; they do not count.
    n_missing : int
        Samples of the truth that the file lacks; they do not count.
    n_without_answer : int
        Scored samples without any score above 0; they count as wrong.
    """

    model: str
    metric: str
    value: float
    low: float
    high: float
    n_scored: int
    n_without_truth: int
    n_missing: int
    n_without_answer: int


def score_predictions(
    predictions: Predictions,
    truth: Any,
    *,
    metrics: Sequence[Any] = (),
    kind: Kind | None = None,
    aliases: Any = None,
    fold: bool = False,
    seed: int = 0,
) -> list[Score]:
    """Scores of one model, or of a consensus, against the truth; matched by id and by name.

    Parameters
    ----------
    predictions : Predictions
    truth : see `read_trial`
    metrics : sequence of str or callable
        See `learn_ensemble`; accuracy, log_loss and brier_score if none is given, or mAP where
        samples may have several labels.
    aliases : dict of str to str, or Aliases, optional
        True labels that labels of the model stand for; see `Fusion`.
    fold : bool
        Match names without regard to case, underscores, hyphens and repeated spaces.
    seed : int
        Of the bootstrap.

    Examples
    --------
    >>> fused = Predictions("fused", range(4), ["cat", "dog"], [[0.9, 0.1]] * 4)
    >>> score_predictions(fused, ["cat", "cat", "cat", "dog"], metrics=["accuracy"])[0].value
    0.75
    """
    trial = read_trial([predictions], truth, kind=kind, aliases=aliases, fold=fold)
    if true := trial.strange_labels:
        said, remedy = tell_strangers(true, predictions.labels, repr(predictions.model))
        fail(said, hint=remedy)
    scores = _as_target(trial)
    n_true = truth.n_samples if isinstance(truth, Predictions) else len(truth)
    results = []
    for metric in metrics or _USUAL[trial.task]:
        measure = read_measure(metric, trial.task)
        low, high = trial.bootstrap(measure, seed).estimate(scores).interval
        if measure.is_loss:
            low, high = 0 - high, 0 - low
        results.append(
            Score(
                model=predictions.model,
                metric=measure.name,
                value=measure.value(scores, trial.truth),
                low=low,
                high=high,
                n_scored=trial.n_samples,
                n_without_truth=predictions.n_samples - trial.n_samples,
                n_missing=n_true - trial.n_samples,
                n_without_answer=int((scores.max(axis=1, initial=0) <= 0).sum()),
            )
        )
    return results


def _as_target(trial: Trial) -> np.ndarray:
    """Scores of the only model of a trial, of the target labels that its labels stand for."""
    [model] = trial.models
    known = np.nan_to_num(model.scores)
    shares = model.labels.match(
        trial.target, aliases=trial.aliases.of_model(model.model)
    ).to_sparse()
    if trial.kind == "multiclass":
        return np.asarray(known @ shares)
    scores = np.zeros((trial.n_samples, len(trial.target)))
    for place, goal in zip(*shares.nonzero(), strict=True):
        np.maximum(scores[:, goal], known[:, place], out=scores[:, goal])
    return scores
