"""`learn_ensemble`: from validation data to the rule that wins there, and the truth about it.

`LearnedEnsemble` is what it gives: a fusion, and the reasons why it was chosen.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import Constraint, Count, Number, OneOf, Optional, check_text, fail, option
from wassemble._pictures import Bars, draw, show
from wassemble._threads import single_threaded_libraries
from wassemble.ensemble.decisions import fit_thresholds
from wassemble.ensemble.fusion import Fusion
from wassemble.ensemble.fusion_files import Kept, load_folder, load_rule, save_folder
from wassemble.ensemble.label_overlap import check_labels, check_scales, tell_strangers
from wassemble.ensemble.learning.choice import Choice, Standing, choose
from wassemble.ensemble.learning.clock import Clock
from wassemble.ensemble.learning.fitting import FittedRecipe
from wassemble.ensemble.learning.matching import Matched, Remedy, match_models
from wassemble.ensemble.learning.recipes import (
    NAMES,
    TIERS,
    Recipe,
    list_recipes,
    read_kernels,
    read_rules,
)
from wassemble.ensemble.learning.search import FOR_ALL, Search, Tried
from wassemble.ensemble.learning.temperature import fit_temperature, temper
from wassemble.ensemble.learning.trial import Trial, read_trial
from wassemble.ensemble.plan import NO_ANSWER, FusionPlan
from wassemble.ensemble.tables import align_samples, read_models, warn_of_ends, warn_of_inputs
from wassemble.errors import ConvergenceWarning, tell_count
from wassemble.inputs import Aliases, Kind, Predictions
from wassemble.inputs.predictions.overlap import check_samples
from wassemble.inputs.predictions.value import Origin
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.metrics import USUAL, Measure, measure as read_measure
from wassemble.solvers import Rule, Status

# Lines of the leaderboard: the best of all, and of each kind.
_N_BEST = 8
_N_OF_A_KIND = 2
_FEWEST_SHOWN = 4
_ENSEMBLE = Kept(
    "ensemble", "a learned ensemble", "`wassemble fit`", hint="`wassemble fit` writes it anew"
)
# What JSON holds as it is, and what it must be.
_PLAIN: dict[str, Constraint] = {
    "task": OneOf(("multiclass", "multilabel")),
    "metric": check_text,
    "n_samples": Count(),
    "n_tried": Count(),
    "seconds": Number(at_least=0),
    "caution": Number(at_least=0),
    "n_gold": Optional(Count(at_least=0)),
}


@dataclass(frozen=True, eq=False)
class LearnedEnsemble:
    """A rule that was chosen on validation data, and why.

    Attributes
    ----------
    fitted : FittedRecipe
        The recipe, and the `Fusion` with its weights and kernels, fitted on all of the
        validation data.
    models : tuple of (str, LabelSpace)
        The models that were learned from.
    choice : Choice
        Why this one.
    leaderboard : tuple of Standing
        Scores on samples that a rule was not fitted on; best first. The best was picked on the
        same folds, which flatters it: ``choice.estimate``, by nested choice, is honest.
    rivals : tuple of FittedRecipe
        Those of the leaderboard, fitted on all of the validation data.
    temperature : float
        Multi-class: histograms are raised to 1 / temperature, which lets log-loss be as
        good as it can without changing the order of labels; see `fit_temperature`.
    thresholds : array of shape (n_target,), or None
        Multi-label: above which score a label is decided to be there.
    caution : float
        Standard errors by which a richer rule had to be better than a simpler one.
    n_gold : int or None
        Learned without truth: number of samples whose truth was known nevertheless. None: learned
        with truth.
    """

    fitted: FittedRecipe
    models: tuple[tuple[str, LabelSpace], ...]
    choice: Choice
    leaderboard: tuple[Standing, ...]
    rivals: tuple[FittedRecipe, ...]
    task: Kind
    metric: str
    temperature: float
    thresholds: np.ndarray | None
    n_samples: int
    n_tried: int
    seconds: float
    caution: float
    n_gold: int | None = None

    def __repr__(self) -> str:
        known = "" if self.n_gold is None else f", truth of {self.n_gold:,}"
        return (
            f"LearnedEnsemble({self.fitted.recipe.name!r}, {len(self.models)} models,"
            f" {self.n_samples:,} samples{known}, {self.n_tried} rules tried)"
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the leaderboard, with 95 % intervals; the axes, of matplotlib."""
        return draw(self._picture(), ax)

    def _picture(self) -> Bars:
        board = self.leaderboard
        names = [f"{line.name} (chosen)" if line.is_chosen else line.name for line in board]
        ends = {"low": [line.low for line in board], "high": [line.high for line in board]}
        title = f"{self.metric}, out of fold"
        return Bars(title, names, [line.score for line in board], **ends)

    def _repr_html_(self) -> str:
        return show([self._picture()], repr(self))

    @property
    def fusion(self) -> Fusion:
        """How to fuse, with what was learned; all but the temperature."""
        return self.fitted.fusion

    @property
    def target(self) -> LabelSpace:
        """Labels of the consensus."""
        return self.plan.target

    @property
    def plan(self) -> FusionPlan:
        """How the models come together."""
        return self.fusion.plan(dict(self.models))

    def read_models(self, models: Sequence[Any] | Mapping[str, Any]) -> list[Predictions]:
        """Models read as those that were learned from."""
        fusion = self.fusion
        return read_models(models, fusion.kind, normalize=fusion.normalize)[0]

    def match(
        self,
        models: Sequence[Any] | Mapping[str, Any],
        *,
        remedy: Remedy | None = None,
        aliases: Any = None,
        fold: bool = False,
    ) -> Matched:
        """The models as they were learned from: by name, or by label sets; see `match_models`."""
        given = self.read_models(models)
        return match_models(
            self.models, given, remedy=remedy, aliases=Aliases.of(aliases), fold=fold
        )

    def matched_models(
        self, models: Sequence[Any] | Mapping[str, Any], *, fold: bool = False
    ) -> list[Predictions]:
        """The same; a warning if labels had to tell."""
        matched = self.match(models, fold=fold)
        if matched.by_labels:
            warnings.warn(str(matched), stacklevel=3)
        return matched.models

    def predict(
        self, models: Sequence[Any] | Mapping[str, Any], *, allow_disjoint: bool = False
    ) -> Predictions:
        """Consensus of the same models on other samples.

        Models are matched by name (the keys of a dict, if it is one). Where names are new, by
        label sets, if these tell the models apart; a warning says so. A sample that no model
        of the rule answered has a row of nan, and is warned of. Models without a sample in
        common are an error, and a warning with few, unless ``allow_disjoint``.
        """
        members = self.matched_models(models)
        doubts = [f"{each.model}: {doubt}" for each in members for doubt in each.origin.doubts]
        warn_of_inputs(doubts + check_samples(members, allow_disjoint=allow_disjoint))
        id_column = next((m.origin.id_column for m in members if m.origin.id_column), None)
        members = align_samples(members)
        chunk = self.plan.fuse(members)
        # A learned number of sweeps is meant to end where it ends.
        fine = (Status.CONVERGED, Status.MAX_SWEEPS, NO_ANSWER)
        warn_of_ends(Counter(chunk.statuses.tolist()), fine)
        scores = self.sharpen(np.nan_to_num(chunk.scores))
        scores = np.where((chunk.statuses == NO_ANSWER)[:, None], np.nan, scores)
        consensus = Predictions(
            "consensus", members[0].samples, self.target, scores, kind=self.task
        )
        consensus.origin = Origin(id_column=id_column)
        gaps = self.describe_gaps(consensus, members)
        if gaps is not None:
            warnings.warn(f"{gaps}.", ConvergenceWarning, stacklevel=2)
        return consensus

    def describe_gaps(self, consensus: Predictions, members: Sequence[Predictions]) -> str | None:
        """Why rows of a consensus of these members are empty, in words; None if none is."""
        empty = np.isnan(consensus.scores).all(axis=1)
        if not empty.any():
            return None
        which = f"{empty.sum():,} of {len(empty):,} samples: left empty"
        answered = np.any([model.answered for model in align_samples(members)], axis=0)
        n_others = int((answered & empty).sum())
        if not n_others:
            return f"no model answered {which}"
        weights = zip(self.models, self.plan.weights, strict=True)
        names = [name for (name, _), weight in weights if weight > 0]  # 0 takes no part
        if len(names) > 1:
            return f"no model that the chosen rule uses answered {which}"
        return (
            f"{names[0]!r}, the only model that the chosen rule uses, did not answer {which};"
            f" other models answered {n_others:,} of them"
        )

    def sharpen(self, scores: np.ndarray) -> np.ndarray:
        """Scores with the temperature that was learned."""
        if self.temperature == 1:
            return scores
        return temper(scores, self.temperature)

    @property
    def report(self) -> str:
        """What was chosen and why, in words."""
        lines = [f"chosen: {self.fitted.recipe.name}", *self.choice.reasons]
        if self.temperature != 1:
            surer = "surer" if self.temperature < 1 else "less sure"
            lines.append(
                f"temperature: {self.temperature:.3g}; the consensus is made {surer}, the order of"
                " its labels stays"
            )
        if self.n_gold is not None:
            return "\n".join([*lines, *self._say_without_truth()])
        lines += [
            "the table of rules scores each on samples that it was not fitted on, but the best is"
            " picked on the same folds, which flatters it; nested choice takes on each fold the"
            " rule that is best on the others",
            f"{self.metric} by nested choice, the honest estimate: {self.choice.estimate:.4f}"
            f" (standard error {self.choice.estimate_error:.4f})",
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """What was chosen and why, without what was fitted, ready for JSON."""
        return {name: getattr(self, name) for name in _PLAIN} | {
            "chosen": self.fitted.recipe.name,
            "models": {name: labels.to_json() for name, labels in self.models},
            "choice": self.choice.to_dict(),
            "leaderboard": [line.to_dict() for line in self.leaderboard],
            "temperature": self.temperature,
            "thresholds": None if self.thresholds is None else self.thresholds.tolist(),
        }

    def _say_without_truth(self) -> list[str]:
        told = f"that of {self.n_gold:,} samples" if self.n_gold else "none"
        said = [
            f"known truth: {told}; rules are compared by how well the consensus of some models"
            " foretells what the others answer"
        ]
        if self.fitted.recipe.is_stacked:  # the shares of a mean are no probabilities
            said.append(
                f"the consensus takes itself to be right on {self.choice.estimate:.1%} of the"
                " samples; nothing here can check that"
            )
        return said

    def save(self, folder: str | Path) -> None:
        """Write it into ``folder``: ``ensemble.json``, and its kernels as ``.npz``.

        ``ensemble.json`` is written last: a folder without it is not an ensemble.
        """
        folder = Path(folder)
        rules = (self.fitted, *self.rivals)
        entries = self.to_dict() | {
            "fusion": self.fusion.to_dict(),
            "rules": [
                {
                    "name": rule.recipe.name,
                    "recipe": rule.recipe.to_dict(),
                    "rule": rule.fusion.rule.to_dict(),
                    "weights": rule.fusion.weights,
                }
                for rule in rules
            ],
        }
        fusions = [rule.fusion for rule in rules]
        kernels, fitted = [each.kernel for each in fusions], [each.rule for each in fusions]
        save_folder(entries, kernels, fitted, folder, _ENSEMBLE)

    @staticmethod
    def load(folder: str | Path) -> LearnedEnsemble:
        """The ensemble that `save` wrote."""

        def make(entries: dict[str, Any], kernels: Any) -> LearnedEnsemble:
            return _make(entries, kernels, Path(folder))

        return load_folder(folder, make, _ENSEMBLE)


def _make(entries: dict[str, Any], kernels: Any, folder: Path) -> LearnedEnsemble:
    """The ensemble of what `LearnedEnsemble.save` wrote; entries of wrong types show."""
    said = entries["fusion"]
    models = tuple((name, LabelSpace.from_json(each)) for name, each in entries["models"].items())
    rules = [load_rule(each["rule"], folder, place) for place, each in enumerate(entries["rules"])]
    fusion = Fusion.from_dict({**said, "rule": rules[0]})
    fitted, *rivals = [
        FittedRecipe.of(
            Recipe.from_dict(each["recipe"]), fusion.replace(kernel=kernel), each["weights"], rule
        )
        for each, kernel, rule in zip(entries["rules"], kernels, rules, strict=True)
    ]
    thresholds = entries["thresholds"]
    plain = {name: check(entries[name], name) for name, check in _PLAIN.items()}
    learned = LearnedEnsemble(
        fitted=fitted,
        models=models,
        choice=Choice.from_dict(entries["choice"], fitted.recipe),
        leaderboard=tuple(Standing.from_dict(line) for line in entries["leaderboard"]),
        rivals=tuple(rivals),
        temperature=float(entries["temperature"]),
        thresholds=None if thresholds is None else np.array(thresholds, dtype=np.float64),
        **plain,
    )
    for rule in (fitted, *rivals):
        rule.fusion.plan(dict(models))
        str(rule.recipe.name)
    return learned


def learn_ensemble(
    models: Sequence[Any] | Mapping[str, Any],
    truth: Any = None,
    *,
    gold: Any = None,
    balance: Mapping[str, float] | None = None,
    metric: Any = None,
    kernels: Mapping[str, Any] | None = None,
    rules: Sequence[Rule | Callable[[LabelSpace], Rule]] = (),
    target: LabelSpace | Sequence[str] | None = None,
    kind: Kind | None = None,
    aliases: Any = None,
    other: str | Mapping[str, str] | None = None,
    fold: bool = False,
    normalize: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
    caution: float = 0.5,
    n_folds: int | None = None,
    time_budget: float | None = None,
    seed: int = 0,
    log: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LearnedEnsemble:
    """Choose the rule that fuses models best, on samples whose truth is known.

    Every single model, every simple mean, barycenters through the kernels on offer and through
    kernels from the models' own mistakes, stacking by logistic regression and the stacked
    consensus of all of these (`StackedConsensus`) are tried by cross-validation. A richer rule is
    taken only if its gain over the simpler ones, by nested choice, is more than ``caution``
    standard errors of the paired difference; a kernel is compared with itself, labels shuffled.

    Without ``truth``, models are judged by each other: equal weights, weights by agreement,
    reliability per model, per model and label, and whole confusions. A richer one is taken only if
    the consensus of some models then foretells better what the others answer. Models that repeat
    each other share their vote. A sample that a model lists without an answer counts as its
    silence, one that it does not list as never asked.

    Parameters
    ----------
    models : dict of name to data frame or Predictions, or list of either
        As in `Fusion`.
    truth : see `read_trial`
        Multi-class: the label name of each sample, by id or in order; whole numbers are names
        too. Multi-label: lists of names, or a table of 0 and 1. A dict, a pandas Series or a
        data frame goes by sample id, anything else along with the samples of the first model.
        None: learn without.
    gold : as ``truth``, optional
        Without ``truth``: that of a few samples, by id. What is learned from 100 of them alone is
        taken if it is clearly better there, out of fold, than a consensus without truth; from 200
        on, unless it is clearly worse.
    balance : dict of label to share, optional
        Without ``truth``: how often each target label is true; learned if not given.
    metric : str or callable, optional
        "accuracy" or "mAP" if not given; "log_loss", "brier_score", the name of a scikit-learn
        scorer, a scorer, or a function of ``(scores, truth)`` where higher is better. "rps" and
        "quadratic_kappa" say that labels lie on a line: where their `LabelSpace` says, else in the
        order of ``target``, where numbers lie, or in the order of the first model.
    kernels : dict of name to LabelledKernel or data frame, optional
        On offer; a value may also be a dict with one per model, or a function of
        ``(source, target)`` label spaces. Data frames are read by name.
    rules : sequence of rules, or of functions from the target labels to one
        Tried beside the usual ones, such as ``lambda labels: tree_barycenter(labels, edges)``.
    target : list of str, or LabelSpace, optional
        Labels of the consensus; those of the models and the truth if not given. Where they lie on
        a line, by a `LabelSpace` with positions or by the metric, exact barycenters there are
        tried too, and a stacked consensus sees them.
    aliases, other, fold, normalize
        What labels of models stand for, and whether rows are divided by their sums; see `Fusion`.
        The ensemble remembers it.
    sample_weight : array along the samples of the first model, or Series by id, optional
    groups : dict of sample id to group, Series by id, or sequence, optional
        Samples of one group, such as frames of a video, stand and fall together: errors are
        those of drawing groups, and a group lies in one fold where labels have enough groups.
    caution : float
        Standard errors by which a richer rule must be better than a simpler one to be taken; 0
        takes the best estimate.
    n_folds : int, optional
        5 if not given, or as many as a true label usually has samples, if those are fewer. Folds
        are drawn once: choosing by several rounds of them was no better, even on few samples.
    seed : int
    time_budget : float, optional
        Seconds for all of it; what was tried by then is used. Single models and means of equal
        weights are tried in any case. An interrupt, too, ends the search with what was found.
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
    if truth is None:
        folds = {"n_folds": n_folds, "time_budget": time_budget, "log": log}
        judged = {"metric": metric, "sample_weight": sample_weight, "groups": groups}
        needless = [name for name, value in (folds | judged).items() if value is not None]
        if needless:
            fail(
                f"without truth nothing is tried in folds or judged by a metric; got"
                f" {' and '.join(map(option, needless))}.",
                hint=f"leave {'it' if len(needless) == 1 else 'them'} out, or give"
                f" {option('truth')}",
            )
        if rules:
            fail("`rules` must go with `truth`, which tells what they are worth; got none.")
        from wassemble.ensemble.without_truth.learn import hear, learn_without_truth

        heard = hear(
            read_models(models, kind, normalize=normalize)[0],
            gold=gold,
            balance=balance,
            kernels=kernels,
            target=None if target is None else LabelSpace(target),
            kind=kind,
            aliases=aliases,
            other=other,
            fold=fold,
            normalize=normalize,
        )
        caution = Number(at_least=0)(caution, "caution")
        return learn_without_truth(heard, caution=caution, seed=seed, progress=progress)
    if gold is not None or balance is not None:
        fail("`gold` and `balance` must go without `truth`; got both.")
    Optional(Number(at_least=0))(time_budget, "time_budget")
    caution = Number(at_least=0)(caution, "caution")
    clock = Clock(time_budget)
    given, _ = read_models(models, kind, normalize=normalize)
    goal = target if target is None or isinstance(target, LabelSpace) else LabelSpace(target)
    trial = read_trial(
        given,
        truth,
        target=goal,
        kind=kind,
        sample_weight=sample_weight,
        groups=groups,
        aliases=aliases,
        other=other,
        fold=fold,
        normalize=normalize,
    )
    _refuse_one_label(trial)
    if _measure(trial, metric).is_ordered:
        trial = trial.in_order() if goal is None else replace(trial, target=goal.on_line())
    if kernels is None or (isinstance(kernels, Mapping) and not kernels):
        warn_of_inputs(_doubt_labels(trial))
    elif isinstance(kernels, Mapping):
        warn_of_inputs([said for each in kernels.values() for said in check_scales(each, given)])
    return learn_from(
        trial,
        metric=metric,
        kernels=kernels,
        rules=rules,
        caution=caution,
        n_folds=n_folds,
        clock=clock,
        seed=seed,
        log=None if log is None else Path(log),
        progress=progress,
    )


def learn_from(
    trial: Trial,
    *,
    metric: Any = None,
    kernels: Mapping[str, Any] | None = None,
    rules: Sequence[Rule | Callable[[LabelSpace], Rule]] = (),
    caution: float,
    n_folds: int | None = None,
    clock: Clock,
    seed: int = 0,
    log: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    without_truth: np.ndarray | None = None,
) -> LearnedEnsemble:
    """The ensemble of `learn_ensemble`, from models and truth that are read."""
    measure = _measure(trial, metric)
    spaces = tuple((model.model, model.labels) for model in trial.models)
    offered = read_kernels({} if kernels is None else kernels, spaces, trial.target)
    n_folds = trial.usual_n_folds if n_folds is None else n_folds
    with single_threaded_libraries():
        search = Search(trial, measure, offered, n_folds, seed, log, clock)
        recipes = list_recipes(trial, offered, read_rules(rules, trial.target))
        tried = search.run(recipes, progress=progress)
        choice = choose(search, tried, caution=caution, without_truth=without_truth)
        honest = search.predict(choice.recipe)
        temperature, thresholds = 1.0, None
        if trial.task == "multilabel":
            thresholds = fit_thresholds(honest, trial.truth, sample_weight=trial.sample_weight)
        else:
            temperature = fit_temperature(honest, trial.truth, trial.sample_weight)
        fitted = search.fitter.fit(choice.recipe)
        leaderboard, rivals = _rank(search, tried, choice)
    return LearnedEnsemble(
        fitted=fitted,
        models=spaces,
        choice=choice,
        leaderboard=leaderboard,
        rivals=rivals,
        task=trial.task,
        metric=measure.name,
        temperature=temperature,
        thresholds=thresholds,
        n_samples=trial.n_samples,
        n_tried=max(len(tried), search.n_screened),
        seconds=round(clock.seconds, 3),
        caution=caution,
    )


def _measure(trial: Trial, metric: Any) -> Measure:
    measure = read_measure(USUAL[trial.task] if metric is None else metric, trial.task)
    return measure.on_line(trial.target.positions)


def _refuse_one_label(trial: Trial) -> None:
    """Refuse a truth from which any rule that always gives one answer would look perfect."""
    true = trial.true_labels
    if trial.task == "multiclass" and len(true) == 1 and trial.n_samples > 1:
        fail(
            f"the truth must hold at least two labels to learn from; got {true[0]!r} for all"
            f" {trial.n_samples:,} samples."
        )


def _doubt_labels(trial: Trial) -> list[str]:
    """What there is to say of labels that do not meet by name, of models and of the truth."""
    models = [(model.model, model.labels) for model in trial.models]
    fusion = Fusion(kind=trial.kind, aliases=trial.aliases, other=trial.other)
    plan = fusion.plan(dict(models))
    said = check_labels(plan, trial.models, told=trial.true_labels)
    if true := trial.strange_labels:
        own = LabelSpace.union(*(labels for _, labels in models))
        words, remedy = tell_strangers(true, own, "the models")
        fail(words, hint=f"{remedy}, and a kernel which are similar")
    if unknown := trial.unknown_labels:
        named = enumerate_names(f"{name} ({tell_count(n, 'sample')})" for name, n in unknown)
        said.append(f"true labels that no model knows: {named}")
    return said


def _rank(
    search: Search, tried: Sequence[Tried], choice: Choice
) -> tuple[tuple[Standing, ...], tuple[FittedRecipe, ...]]:
    """The leaderboard, best first, and its rules but the chosen one, fitted on all samples.

    Of the rules to show, the most telling come first: after the chosen one, the best of each kind,
    then even means and single models, then the best of the rest, as long as there is time.
    """
    by_recipe = {each.recipe: each for each in tried}
    chosen = search.bootstrap.estimate(search.predict(choice.recipe))
    standings: list[Standing] = []
    rivals: list[FittedRecipe] = []
    for recipe in _shown(tried, choice.recipe):
        is_chosen = recipe == choice.recipe
        has_time = search.clock.has(search.judging_seconds(), share=FOR_ALL)
        if not (is_chosen or has_time or len(standings) < _FEWEST_SHOWN):
            break
        own = chosen if is_chosen else search.bootstrap.estimate(search.predict(recipe))
        microseconds = 1e6 * by_recipe[recipe].seconds / search.trial.n_samples
        standings.append(Standing.of(recipe, own, chosen, microseconds))
        if not is_chosen:
            rivals.append(search.fitter.fit(recipe))
    ranked = sorted(standings, key=lambda line: -line.score)
    return tuple(ranked), tuple(rivals)


def _shown(tried: Sequence[Tried], chosen: Recipe) -> list[Recipe]:
    """Rules for the leaderboard, each once."""
    ranked = [each.recipe for each in sorted(tried, key=lambda each: -each.score)]
    shown = [chosen, next(recipe for recipe in ranked if recipe.model is not None)]
    for tier in range(len(TIERS)):
        shown += [recipe for recipe in ranked if recipe.tier == tier][:1]
    shown += [recipe for recipe in ranked if recipe.is_plain and recipe.kernel == NAMES]
    for tier in range(len(TIERS)):
        shown += [recipe for recipe in ranked if recipe.tier == tier][:_N_OF_A_KIND]
    shown += [recipe for recipe in ranked if recipe.is_plain]
    return list(dict.fromkeys(shown + ranked[:_N_BEST]))
