"""An ensemble learned where nobody knows the truth, or only that of a few samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wassemble._checks import check_nonnegative_number, fail, option
from wassemble.ensemble.fusion import Fusion
from wassemble.ensemble.learning.choice import (
    FEW_SAMPLES,
    WITHOUT_TRUTH,
    Choice,
    Standing,
    is_clear,
)
from wassemble.ensemble.learning.clock import Clock
from wassemble.ensemble.learning.fitting import FittedRecipe
from wassemble.ensemble.learning.learn import LearnedEnsemble, learn_from
from wassemble.ensemble.learning.recipes import NAMES, Recipe, read_kernels
from wassemble.ensemble.learning.trial import Trial, read_trial
from wassemble.ensemble.learning.weights import WeightRule
from wassemble.ensemble.tables import align_samples, common_kind, warn_of_inputs
from wassemble.ensemble.without_truth.choice import Rated, RungChoice, choose_rung
from wassemble.ensemble.without_truth.relatives import Relatives, find_relatives
from wassemble.ensemble.without_truth.rungs import (
    RUNGS,
    Agreement,
    Fitted,
    Known,
    Rung,
)
from wassemble.ensemble.without_truth.votes import Votes
from wassemble.errors import tell_count
from wassemble.inputs import Kind, Predictions
from wassemble.inputs.predictions.overlap import check_samples
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.solvers import ARITHMETIC, VoteProduct

_RELATIVES_SHOWN = 3


def learn_without_truth(
    heard: Heard,
    *,
    caution: float,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> LearnedEnsemble:
    """The ensemble of `learn_ensemble` without truth; see there."""
    start = time.perf_counter()
    relatives = find_relatives(heard.votes, heard.known)
    known = replace(heard.known, shares=relatives.shares)
    choice = choose_rung(heard.votes, known, relatives, caution=caution)
    fits = {rung: rung.fit(heard.votes, known) for rung in RUNGS if rung.suits(heard.votes)}
    recipes = {rung: to_recipe(fitted, heard.fusion, heard.kernel) for rung, fitted in fits.items()}
    chosen = recipes[choice.rung]
    believed = fits[choice.rung].consensus.max(axis=1)
    learned = LearnedEnsemble(
        fitted=chosen,
        models=tuple((model.model, model.labels) for model in heard.models),
        choice=Choice(
            chosen.recipe,
            (*choice.reasons, *say_relatives(relatives, heard.votes.models)),
            choice.comparisons,
            None,
            float(believed.mean()),
            float(believed.std() / np.sqrt(len(believed))),
        ),
        leaderboard=_rank(choice, recipes, time.perf_counter() - start),
        rivals=tuple(recipe for rung, recipe in recipes.items() if rung != choice.rung),
        task="multiclass",
        metric="accuracy",
        temperature=1.0,
        thresholds=None,
        n_samples=heard.votes.n_samples,
        n_tried=len(fits),
        seconds=round(time.perf_counter() - start, 3),
        caution=caution,
        n_gold=heard.n_gold,
    )
    if not heard.can_teach:
        return learned
    blind = choice.rung.fit(heard.votes, replace(known, gold=None)).consensus
    return _hand_over(learned, heard, blind, seed, progress)


def _hand_over(
    learned: LearnedEnsemble,
    heard: Heard,
    blind: np.ndarray,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> LearnedEnsemble:
    """What is learned from gold alone, if it is as good there as a blind consensus, or better."""
    trial, caution = heard.trial, learned.caution
    assert trial is not None
    taught = learn_from(
        trial,
        kernels=heard.kernels,
        caution=caution,
        clock=Clock(None),
        seed=seed,
        progress=progress,
        without_truth=blind[heard.gold_rows],
    )
    gain = taught.choice.comparisons[WITHOUT_TRUTH]
    if is_clear(gain, trial.n_samples, caution * _burden(trial.n_samples)):
        return taught
    told = (
        f"{taught.fitted.recipe.name}, learned from {tell_count(trial.n_samples, 'gold sample')}"
        f" alone, gains {gain} there over {WITHOUT_TRUTH}: not taken"
    )
    choice = replace(learned.choice, reasons=(*learned.choice.reasons, told))
    return replace(learned, choice=choice, seconds=round(learned.seconds + taught.seconds, 3))


def _burden(n_gold: int) -> float:
    """Who has to be clearly better: 1 for what gold teaches, -1 for the consensus without truth.

    Each fold lacks a part of the gold, and so does what it teaches; what a blind consensus does is
    no better with all of it. The more gold there is, the more a tie speaks for gold.
    """
    return max(1 - 2 * (n_gold - FEW_SAMPLES) / FEW_SAMPLES, -1.0)


@dataclass(frozen=True, eq=False)
class Heard:
    """Models as votes, and what is known beside them.

    Attributes
    ----------
    kernels : dict of name to kernel
        That on offer, if there is one.
    trial : Trial or None
        Models and truth of the gold samples alone.
    """

    models: Sequence[Predictions]
    votes: Votes
    known: Known
    fusion: Fusion
    kernels: Mapping[str, Any]
    trial: Trial | None

    @property
    def kernel(self) -> str:
        """Name of the kernel that joins labels."""
        return next(iter(self.kernels), NAMES)

    @property
    def n_gold(self) -> int:
        """Samples whose truth is known."""
        return 0 if self.trial is None else self.trial.n_samples

    @property
    def gold_rows(self) -> np.ndarray:
        """Places of the gold samples, in the order of the trial."""
        assert self.trial is not None
        return _find_rows(self.trial, self.votes)

    @property
    def can_teach(self) -> bool:
        """Whether there is gold enough to learn from it alone, and to be judged by it."""
        return (
            self.trial is not None
            and self.n_gold >= FEW_SAMPLES
            and len(self.trial.true_labels) > 1
        )


def hear(
    models: Sequence[Predictions],
    *,
    gold: Any = None,
    balance: Mapping[str, float] | None = None,
    kernels: Mapping[str, Any] | None = None,
    target: LabelSpace | None = None,
    kind: Kind | None = None,
    aliases: Any = None,
    other: str | Mapping[str, str] | None = None,
    fold: bool = False,
    normalize: bool = False,
) -> Heard:
    """The votes of models, whose labels are matched by name, or through a kernel."""
    _check_models(models, kind)
    fusion = Fusion(
        ARITHMETIC,
        kind="multiclass",
        target=target,
        aliases=aliases,
        other=other,
        fold=fold,
        normalize=normalize,
        unobserved="drop",
    )
    plan = fusion.plan(models)
    spaces = [(model.model, model.labels) for model in models]
    offered = read_kernels({} if kernels is None else kernels, spaces, plan.target)
    if len(offered) > 1:
        fail(
            "without truth there must be at most one kernel; got"
            f" {enumerate_names(offered)}: nothing could tell which is better."
        )
    if offered:
        fusion = fusion.replace(kernel=next(iter(offered.values())), target=plan.target)
    aligned = align_samples(models)
    asked = np.array([np.isin(aligned[0].samples, model.samples) for model in models])
    votes = Votes.of_models(fusion.plan(models), aligned, asked)
    trial = None
    if gold is not None:
        trial = read_trial(
            models,
            gold,
            target=votes.target,
            kind="multiclass",
            aliases=aliases,
            other=other,
            fold=fold,
            normalize=normalize,
        )
    known = Known(
        np.ones(votes.n_models),
        None if balance is None else read_balance(balance, votes.target),
        None if trial is None else _place_gold(trial, votes),
    )
    return Heard(models, votes, known, fusion, {} if kernels is None else kernels, trial)


def _check_models(models: Sequence[Predictions], kind: Kind | None) -> None:
    if common_kind(models, kind)[0] != "multiclass":
        fail(
            "without truth, samples must have one label each; got multi-label scores.",
            hint=f"{option('normalize', True)} divides each row by its sum, if labels exclude"
            " each other; or give the truth of some samples",
        )
    if len(models) < 3:
        fail(
            "without truth there must be at least three models, for two cannot outvote each other;"
            f" got {tell_count(len(models), 'model')}.",
            hint="`fuse` takes any number; or give the truth of some samples",
        )
    doubts = [f"{each.model}: {doubt}" for each in models for doubt in each.origin.doubts]
    warn_of_inputs(doubts + check_samples(models, allow_disjoint=None), stacklevel=5)


def read_balance(balance: Mapping[str, float], target: LabelSpace) -> np.ndarray:
    """How often each target label is true, ``(n_target,)``, on the simplex."""
    strange = [name for name in balance if str(name) not in target]
    missing = [name for name in target if name not in {str(each) for each in balance}]
    if strange or missing:
        fail(
            f"`balance` must name each of {enumerate_names(target)}; got"
            f" {enumerate_names(strange or balance)}."
        )
    shares = {str(name): check_nonnegative_number(x, str(name)) for name, x in balance.items()}
    total = sum(shares.values())
    if not abs(total - 1) <= 0.01:
        fail(f"`balance` must sum to 1; got {total:g}.", hint="divide by the sum")
    return np.array([shares[name] for name in target]) / total


def _place_gold(trial: Trial, votes: Votes) -> np.ndarray:
    """The place of the true label of each sample, -1 where it is not known."""
    true = np.full(votes.n_samples, -1, dtype=np.int64)
    true[_find_rows(trial, votes)] = trial.truth
    return true


def _find_rows(trial: Trial, votes: Votes) -> np.ndarray:
    place = {str(sample): row for row, sample in enumerate(votes.samples.tolist())}
    samples = trial.models[0].samples.tolist()
    return np.array([place[str(sample)] for sample in samples], dtype=np.int64)


def to_recipe(fitted: Fitted, fusion: Fusion, kernel: str) -> FittedRecipe:
    """A fitted rung as a fusion."""
    votes, rung = fitted.votes, fitted.rung
    if fitted.meaning is None or fitted.silence is None:
        is_even = np.ptp(fitted.weights) < 1e-9
        by: WeightRule = "agreement" if isinstance(rung, Agreement) else "shared"
        recipe = Recipe(ARITHMETIC, "uniform" if is_even else by, kernel)
        weights = dict(zip(votes.models, fitted.weights.tolist(), strict=True))
        return FittedRecipe.of(recipe, fusion, weights)
    shares = fitted.weights
    parts = np.split(
        fitted.meaning * shares[votes.owner][:, None],
        np.flatnonzero(np.diff(votes.owner)) + 1,
    )
    rule = VoteProduct(str(rung))
    arrays = {f"meaning {model}": part for model, part in enumerate(parts)}
    arrays |= {"silence": _say_silence(fitted), "balance": np.log(fitted.balance)}
    return FittedRecipe.of(Recipe(rule, kernel=kernel), fusion, None, rule.with_parameters(arrays))


def _say_silence(fitted: Fitted) -> np.ndarray:
    """What silence means of models that keep silent; 0 for the others, who were not asked."""
    assert fitted.silence is not None
    return np.asarray(fitted.silence * fitted.weights[:, None])


def _rank(
    choice: RungChoice, recipes: Mapping[Rung, FittedRecipe], seconds: float
) -> tuple[Standing, ...]:
    """Rungs by how well they foretell answers of left-out models, best first."""
    chosen = next(each for each in choice.rated if each.rung == choice.rung)

    def stand(each: Rated) -> Standing:
        recipe, error = recipes[each.rung].recipe, each.standard_error
        against = None if each is chosen else each.minus(chosen)
        interval = (each.score - 1.96 * error, each.score + 1.96 * error)
        microseconds = 1e6 * seconds / len(choice.rated) / max(len(each.foretold), 1)
        return Standing(
            recipe.name, recipe, each.score, error, *interval, against, microseconds, {},
            is_chosen=each is chosen,
        )  # fmt: skip

    return tuple(sorted(map(stand, choice.rated), key=lambda line: -line.score))


def say_relatives(relatives: Relatives, models: Sequence[str]) -> list[str]:
    """Which models repeat each other, in words."""
    if relatives.kinship is None:
        return [f"{len(models):,} models are too many to look for relatives among them"]
    pairs = np.argwhere(np.triu(relatives.kinship, 1) > 0)
    if not len(pairs):
        return []
    strength = relatives.kinship[pairs[:, 0], pairs[:, 1]]
    nearest = pairs[np.argsort(-strength, kind="stable")][:_RELATIVES_SHOWN].tolist()
    named = "; ".join(f"{models[one]} and {models[two]}" for one, two in nearest)
    more = f" and {len(pairs) - len(nearest):,} more pairs" if len(pairs) > len(nearest) else ""
    return [
        f"models that agree beyond what their reliability explains share their vote: {named}{more};"
        f" {len(models):,} models count as {relatives.n_effective:.1f}"
    ]
