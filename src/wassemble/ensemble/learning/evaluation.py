"""`evaluate_ensemble`: the chosen rule and its rivals on samples that nothing was learned from."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble.learning.learn import LearnedEnsemble, matched_models
from wassemble.ensemble.learning.outcomes import Evaluation, Outcome
from wassemble.ensemble.learning.recipes import FittedRecipe
from wassemble.ensemble.learning.stacking import STACKING, Stacking
from wassemble.ensemble.learning.trial import Trial, read_trial
from wassemble.ensemble.tables import read_models
from wassemble.errors import InvalidInputError
from wassemble.metrics import (
    MEAN_AVERAGE_PRECISION,
    MULTICLASS,
    TOP_5_ACCURACY,
    Measure,
    measure as read_measure,
    precision_recall_f1,
)

__all__ = ["evaluate_ensemble", "measure_of", "read_held_out"]

# A rule that is fast is timed again, up to so many times or seconds.
_N_TIMINGS = 3
_SECONDS = 0.2
_N_WARM = 8


def evaluate_ensemble(
    learned: LearnedEnsemble,
    models: Sequence[Any] | Mapping[str, Any],
    truth: Any,
    *,
    metric: Any = None,
    sample_weight: Any = None,
    fold: bool = False,
    seed: int = 0,
) -> Evaluation:
    """The chosen rule beside every rival, on samples that nothing was learned from.

    Parameters
    ----------
    learned : LearnedEnsemble
    models : dict of name to data frame or Predictions, or list of either
        The models that were learned from, on other samples; matched as in
        `LearnedEnsemble.predict`.
    truth : see `read_trial`
    metric : str or callable, optional
        The one learned by if not given. A function of one's own must be given again.
    sample_weight : array of shape (n_samples,), optional
        Metrics that know no weights are then left out of the other figures.
    fold : bool
        Match labels of the models and of the truth with those that were learned without regard
        to case, underscores, hyphens and repeated spaces.
    seed : int
        Of the bootstrap.

    Examples
    --------
    >>> from wassemble import Predictions, learn_ensemble
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=90)
    >>> good = np.where(truth[:, None] == [0, 1], 0.8, 0.2)
    >>> a = Predictions("good", range(90), ["cat", "dog"], good)
    >>> b = Predictions("bad", range(90), ["cat", "dog"], np.full((90, 2), 0.5))
    >>> names = [["cat", "dog"][i] for i in truth]
    >>> seen, unseen = slice(60), slice(60, 90)
    >>> learned = learn_ensemble([a.take(seen), b.take(seen)], names[seen])
    >>> found = evaluate_ensemble(learned, [a.take(unseen), b.take(unseen)], names[unseen])
    >>> found.chosen.score, found.is_worse_than_simple
    (1.0, False)
    """
    trial = read_held_out(learned, models, truth, sample_weight=sample_weight, fold=fold)
    measure = measure_of(learned, metric)
    bootstrap = trial.bootstrap(measure, seed)
    chosen, seconds = _timed(learned.fitted, trial)
    chosen_estimate = bootstrap.estimate(chosen)

    def judge(fitted: FittedRecipe | Stacking, scores: np.ndarray, seconds: float) -> Outcome:
        is_chosen = fitted is learned.fitted
        own = chosen_estimate if is_chosen else bootstrap.estimate(scores)
        low, high = own.interval
        recipe = None if isinstance(fitted, Stacking) else fitted.recipe
        return Outcome(
            name=STACKING if recipe is None else recipe.name,
            recipe=recipe,
            score=own.score,
            standard_error=own.standard_error,
            low=low,
            high=high,
            against_chosen=None if is_chosen else own.minus(chosen_estimate),
            microseconds=1e6 * seconds / trial.n_samples,
            figures=_figures(scores, trial),
            is_chosen=is_chosen,
        )

    outcomes = [judge(learned.fitted, chosen, seconds)]
    rivals: list[FittedRecipe | Stacking] = [*learned.rivals]
    if learned.stacking is not None:
        rivals.append(learned.stacking)
    outcomes += [judge(rival, *_timed(rival, trial)) for rival in rivals]
    is_sharpened = learned.task == "multiclass" and learned.temperature != 1
    return Evaluation(
        task=learned.task,
        metric=measure.name,
        n_samples=trial.n_samples,
        # The chosen rule comes first of equal ones.
        outcomes=tuple(sorted(outcomes, key=lambda each: (-each.score, not each.is_chosen))),
        sharpened=_figures(learned.sharpen(chosen), trial) if is_sharpened else None,
        decided=_decided(chosen, trial, learned.thresholds),
        seed=seed,
    )


def read_held_out(
    learned: LearnedEnsemble,
    models: Sequence[Any] | Mapping[str, Any],
    truth: Any,
    *,
    sample_weight: Any = None,
    fold: bool = False,
) -> Trial:
    """The models that were learned from, on other samples, with the truth of each."""
    given, _ = read_models(models, learned.fitted.kind)
    trial = read_trial(
        matched_models(learned, given, fold=fold),
        truth,
        target=learned.target,
        kind=learned.fitted.kind,
        sample_weight=sample_weight,
        aliases=learned.fitted.aliases,
        other=learned.fitted.other,
        fold=fold,
        first=given[0],
    )
    if trial.task != learned.task:
        fail(f"the truth must be {learned.task}, as it was when learning; got {trial.task}.")
    return trial


def measure_of(learned: LearnedEnsemble, metric: Any = None) -> Measure:
    """The metric that was learned by, or the one given."""
    if metric is not None:
        return read_measure(metric, learned.task)
    try:
        return read_measure(learned.metric, learned.task)
    except InvalidInputError:
        fail(
            f"`metric` must be given again if it is a function; {learned.metric!r} was learned by.",
            hint="metric=...",
        )


def _timed(fitted: FittedRecipe | Stacking, trial: Trial) -> tuple[np.ndarray, float]:
    """Scores of a rule, and the seconds that it took: the least of a few times."""
    fitted.fuse([model.take(slice(_N_WARM)) for model in trial.models])
    seconds: list[float] = []
    while len(seconds) < _N_TIMINGS and sum(seconds) < _SECONDS:
        started = time.perf_counter()
        scores = fitted.fuse(trial.models)
        seconds.append(time.perf_counter() - started)
    return scores, min(seconds)


def _figures(scores: np.ndarray, trial: Trial) -> dict[str, float]:
    """Other metrics than the user's."""
    if trial.task == "multiclass":
        return {
            each.name: each.value(scores, trial.truth, trial.sample_weight)
            for each in MULTICLASS
            if each != TOP_5_ACCURACY or scores.shape[1] > 5
        }
    found = {"mAP": MEAN_AVERAGE_PRECISION.value(scores, trial.truth, trial.sample_weight)}
    if trial.sample_weight is None and scores.shape[1] > 3:
        figures = asdict(precision_recall_f1(scores, trial.truth, top_k=3))
        found |= {f"top_3_{name}": figures[name] for name in _DECISIONS}
    return found


_DECISIONS = tuple(
    f"{figure}_{over}"
    for over in ("per_class", "overall")
    for figure in ("precision", "recall", "f1")
)


def _decided(
    scores: np.ndarray, trial: Trial, thresholds: np.ndarray | None
) -> dict[str, float] | None:
    if thresholds is None or trial.sample_weight is not None:
        return None
    figures = asdict(precision_recall_f1(scores, trial.truth, threshold=thresholds))
    return {name: figures[name] for name in _DECISIONS}
