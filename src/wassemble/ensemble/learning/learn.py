"""`learn_ensemble`: from validation data to the rule that wins there, and the truth about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wassemble.ensemble.decisions import fit_thresholds
from wassemble.ensemble.fusion import Fusion
from wassemble.ensemble.label_overlap import check_labels, find_twins, tell_strangers
from wassemble.ensemble.learning.choice import Choice, Standing, choose
from wassemble.ensemble.learning.learned import LearnedEnsemble
from wassemble.ensemble.learning.recipes import Recipe, list_recipes, read_kernels
from wassemble.ensemble.learning.search import Search, Tried
from wassemble.ensemble.learning.stacking import fit_stacking, stack_scores
from wassemble.ensemble.learning.temperature import fit_temperature
from wassemble.ensemble.learning.trial import Trial, read_trial
from wassemble.ensemble.tables import read_models, warn_of_inputs
from wassemble.errors import MissingExtraError
from wassemble.inputs import Kind
from wassemble.labels import LabelSpace
from wassemble.metrics import USUAL, measure as read_measure
from wassemble.solvers import Barycenter, GatedBarycenter, GatedMean, PowerMean

__all__ = ["learn_ensemble"]

# Lines of the leaderboard beside single models, simple means, and the best of each kind.
_N_BEST = 8


def learn_ensemble(
    models: Sequence[Any] | Mapping[str, Any],
    truth: Any = None,
    *,
    metric: Any = None,
    kernels: Mapping[str, Any] | None = None,
    target: LabelSpace | Sequence[str] | None = None,
    kind: Kind | None = None,
    aliases: Any = None,
    other: str | Mapping[str, str] | None = None,
    fold: bool = False,
    sample_weight: Any = None,
    n_folds: int | None = None,
    time_budget: float | None = None,
    seed: int = 0,
    log: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LearnedEnsemble:
    """Choose the rule that fuses models best, on samples whose truth is known.

    Every single model, every simple mean, and barycenters through the kernels on offer and
    through kernels from the models' own mistakes are tried by cross-validation. A gated mean
    or a barycenter is taken only if its gain over the simpler rules, by nested choice, is more
    than one standard error of the paired difference; a kernel is compared with itself, labels
    shuffled.

    Parameters
    ----------
    models : dict of name to data frame or Predictions, or list of either
        As in `Fusion`.
    truth : see `read_trial`
        Multi-class: the label name of each sample, by id or in order; whole numbers are names
        too. Multi-label: lists of names, or a table of 0 and 1. A dict, a pandas Series or a
        data frame goes by sample id, anything else along with the samples of the first model.
    metric : str or callable, optional
        "accuracy" or "mAP" if not given; "log_loss", "brier_score", the name of a scikit-learn
        scorer, a scorer, or a function of ``(scores, truth)`` where higher is better.
    kernels : dict of name to LabelledKernel or data frame, optional
        On offer; a value may also be a dict with one per model, or a function of
        ``(source, target)`` label spaces. Data frames are read by name.
    target : list of str, optional
        Labels of the consensus; those of the models and the truth if not given.
    aliases, other, fold
        What labels of models stand for; see `Fusion`. The ensemble remembers it.
    n_folds : int, optional
        5 if not given, or as many as a true label usually has samples, if those are fewer.
    seed : int
    time_budget : float, optional
        Seconds after which no more barycenters are tried; the first of each kernel always are.
    log : path, optional
        File of what was tried; the same call goes on from there.
    progress : callable, optional
        Called as ``progress(n_done, n_recipes)``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=60)
    >>> good = np.where(truth[:, None] == [0, 1], 0.8, 0.2)
    >>> bad = np.full((60, 2), 0.5)
    >>> a = Predictions("good", range(60), ["cat", "dog"], good)
    >>> b = Predictions("bad", range(60), ["cat", "dog"], bad)
    >>> learned = learn_ensemble([a, b], [["cat", "dog"][i] for i in truth])
    >>> learned.fitted.recipe.is_simple, learned.choice.estimate
    (True, 1.0)
    """
    started = time.perf_counter()
    given, _ = read_models(models, kind)
    goal = target if target is None or isinstance(target, LabelSpace) else LabelSpace(target)
    trial = read_trial(
        given,
        truth,
        target=goal,
        kind=kind,
        sample_weight=sample_weight,
        aliases=aliases,
        other=other,
        fold=fold,
    )
    if not kernels:
        warn_of_inputs(_doubt_labels(trial))
    measure = read_measure(USUAL[trial.task] if metric is None else metric, trial.task)
    spaces = tuple((model.model, model.labels) for model in trial.models)
    offered = read_kernels(kernels or {}, spaces, trial.target)
    n_folds = trial.usual_n_folds if n_folds is None else n_folds
    search = Search(trial, measure, offered, n_folds, seed, None if log is None else Path(log))
    tried = search.run(list_recipes(trial, offered), time_budget=time_budget, progress=progress)
    choice = choose(search, tried)
    honest = search.predict(choice.recipe)
    temperature, thresholds = 1.0, None
    if trial.task == "multilabel":
        thresholds = fit_thresholds(honest, trial.truth, sample_weight=trial.sample_weight)
    else:
        temperature = fit_temperature(honest, trial.truth, trial.sample_weight)
    leaderboard = _leaderboard(search, tried, choice)
    is_stacked = any(line.recipe is None for line in leaderboard)
    return LearnedEnsemble(
        fitted=search.fitter.fit(choice.recipe),
        models=spaces,
        choice=choice,
        leaderboard=leaderboard,
        rivals=tuple(
            search.fitter.fit(line.recipe)
            for line in leaderboard
            if line.recipe is not None and not line.is_chosen
        ),
        task=trial.task,
        metric=measure.name,
        temperature=temperature,
        thresholds=thresholds,
        n_samples=trial.n_samples,
        n_tried=len(tried),
        stacking=fit_stacking(trial) if is_stacked else None,
        seconds=round(time.perf_counter() - started, 3),
    )


def _doubt_labels(trial: Trial) -> list[str]:
    """What there is to say of labels that do not meet by name, of models and of the truth."""
    models = [(model.model, model.labels) for model in trial.models]
    fusion = Fusion(kind=trial.kind, aliases=trial.aliases, other=trial.other)
    plan = fusion.plan(dict(models))
    said = check_labels(plan, told=trial.true_labels)
    true, own = trial.strange_labels, LabelSpace.union(*(labels for _, labels in models))
    if true and not find_twins(own, true):
        said.append(" ".join(tell_strangers(true, own, "the models")))
    return said


def _leaderboard(search: Search, tried: Sequence[Tried], choice: Choice) -> tuple[Standing, ...]:
    """Single models, simple means, the best of the rest, the control and stacking."""
    ranked = sorted(tried, key=lambda each: -each.score)
    shown = [t for t in ranked if t.recipe.model is not None]
    means = [t for t in ranked if isinstance(t.recipe.rule, PowerMean)]
    shown += [t for t in means if t.recipe.weights == "uniform"] + ranked[:_N_BEST]
    for rule in (PowerMean, GatedMean, GatedBarycenter, Barycenter):
        shown += [t for t in ranked if isinstance(t.recipe.rule, rule)][:2]
    lines = {t.recipe: t for t in shown}
    lines[choice.recipe] = next(t for t in tried if t.recipe == choice.recipe)
    chosen = search.bootstrap.estimate(search.predict(choice.recipe))

    def stand(recipe: Recipe | None, scores: np.ndarray, seconds: float) -> Standing:
        own = chosen if recipe == choice.recipe else search.bootstrap.estimate(scores)
        return Standing.of(recipe, own, chosen, 1e6 * seconds / search.trial.n_samples)

    standings = [
        stand(recipe, search.predict(recipe, keep=False), each.seconds)
        for recipe, each in lines.items()
    ]
    try:
        started = time.perf_counter()
        stacked = stack_scores(search)
        standings.append(stand(None, stacked, time.perf_counter() - started))
    except MissingExtraError:
        pass
    return tuple(sorted(standings, key=lambda line: -line.score))
