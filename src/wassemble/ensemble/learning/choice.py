"""The safe choice: a barycenter only where it gains more than one standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from wassemble.ensemble.learning.recipes import Recipe
from wassemble.ensemble.learning.search import Search, Tried

__all__ = ["Choice", "Comparison", "Control", "Standing", "choose"]

# Share of bootstrap samples in which a kernel must beat its shuffled self.
_SURE = 0.95
_N_CONTROLS = 3
# What the tiers are called, from the simplest on.
_TIERS = ("single model or mean", "gated mean", "rule through a kernel")


@dataclass(frozen=True)
class Comparison:
    """How much better one rule is than another on the same samples."""

    difference: float
    standard_error: float
    low: float
    high: float
    sure: float  # share of bootstrap samples where it is better

    @classmethod
    def of(cls, first: np.ndarray, second: np.ndarray, difference: float) -> Comparison:
        """From the scores of both on the same bootstrap samples."""
        drawn = first - second
        low, high = np.quantile(drawn, [0.025, 0.975])
        better = float((drawn > 0).mean() + (drawn == 0).mean() / 2)
        return cls(float(difference), float(drawn.std()), float(low), float(high), better)

    def __str__(self) -> str:
        return f"{self.difference:+.4f} (95 % interval {self.low:+.4f} to {self.high:+.4f})"


@dataclass(frozen=True)
class Standing:
    """A line of the leaderboard, on out-of-fold predictions."""

    name: str
    recipe: Recipe | None
    score: float
    standard_error: float
    against_chosen: Comparison | None
    seconds: float
    is_chosen: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        found = asdict(self)
        found["recipe"] = None if self.recipe is None else self.recipe.to_dict()
        return found


@dataclass(frozen=True)
class Control:
    """The chosen kernel against the same kernel with its labels shuffled."""

    score: float  # mean over shuffles
    comparison: Comparison  # the kernel minus the shuffled one
    n_shuffles: int

    @property
    def meaning_helped(self) -> bool:
        """Whether the labels' meaning, not the mere blur of a kernel, made a difference."""
        return self.comparison.sure >= _SURE


@dataclass(frozen=True)
class Choice:
    """Which recipe is used, and why."""

    recipe: Recipe
    reasons: tuple[str, ...]
    comparisons: dict[str, Comparison]
    control: Control | None
    estimate: float  # of the whole procedure, choice included
    estimate_error: float


def choose(search: Search, tried: Sequence[Tried]) -> Choice:
    """The best of the simplest tier over which no higher one gains more than a standard error.

    It is that of the paired difference, by bootstrap.

    Each tier is judged by nested choice: on each fold by the recipe that is best on the
    others, so that choosing among hundreds is paid for.
    """
    counts = resample_counts(search)
    truth, measure = search.trial.truth, search.measure
    current: tuple[Recipe, np.ndarray, np.ndarray] | None = None
    reasons: list[str] = []
    comparisons: dict[str, Comparison] = {}
    for tier, title in enumerate(_TIERS):
        members = [each for each in tried if _tier(each.recipe) == tier]
        if not members:
            continue
        best = max(members, key=lambda each: each.score).recipe
        honest = _nested(search, members)
        drawn = measure.resampled(honest, truth, counts)
        if current is None:
            current = best, honest, drawn
            reasons.append(f"the best {title} is {best.name}")
            continue
        gain = measure.score(honest, truth, search.trial.sample_weight) - measure.score(
            current[1], truth, search.trial.sample_weight
        )
        found = Comparison.of(drawn, current[2], gain)
        comparisons[title] = found
        is_taken = found.difference > found.standard_error
        reasons.append(
            f"the best {title}, {best.name}, gains {found} over it by nested choice,"
            f" {'more' if is_taken else 'not more'} than one standard error of the paired"
            f" difference ({found.standard_error:.4f}): {'taken' if is_taken else 'not taken'}"
        )
        if is_taken:
            current = best, honest, drawn
    assert current is not None, "single models are always tried"
    recipe, honest, drawn = current
    control = _control(search, recipe, counts)
    if control is not None:
        verdict = (
            "the meaning of the labels helped"
            if control.meaning_helped
            else "the meaning of the labels did not clearly help"
        )
        reasons.append(
            f"its kernel gains {control.comparison} over itself with labels shuffled, scored as in"
            f" the table: {verdict}"
        )
    return Choice(
        recipe,
        tuple(reasons),
        comparisons,
        control,
        float(measure.score(honest, truth, search.trial.sample_weight)),
        float(drawn.std()),
    )


def resample_counts(search: Search) -> np.ndarray:
    """How often each sample is drawn in each bootstrap sample."""
    n_samples = search.trial.n_samples
    rng = np.random.default_rng(search.seed)
    weight = search.trial.sample_weight
    shares = np.full(n_samples, 1 / n_samples) if weight is None else weight / weight.sum()
    return rng.multinomial(n_samples, shares, size=search.measure.n_resamples)


def _tier(recipe: Recipe) -> int:
    if recipe.is_simple:
        return 0
    return 1 if recipe.rule == "gated mean" else 2


def _nested(search: Search, members: Sequence[Tried]) -> np.ndarray:
    """Out-of-fold predictions of the recipe that is best on the other folds."""
    scores = np.array([each.scores_without for each in members])
    found = None
    for k in range(search.n_folds):
        best = members[int(np.argmax(scores[:, k]))].recipe
        predicted = search.predict(best)
        if found is None:
            found = np.zeros_like(predicted)
        inside = search.folds == k
        found[inside] = predicted[inside]
    assert found is not None
    return found


def _control(search: Search, recipe: Recipe, counts: np.ndarray) -> Control | None:
    if not recipe.transports:
        return None
    truth, measure, weight = search.trial.truth, search.measure, search.trial.sample_weight
    own = search.predict(recipe)
    drawn, scores = [], []
    for seed in range(_N_CONTROLS):
        shuffled = search.predict(replace(recipe, shuffled=seed))
        drawn.append(measure.resampled(shuffled, truth, counts))
        scores.append(measure.score(shuffled, truth, weight))
    score = float(np.mean(scores))
    difference = measure.score(own, truth, weight) - score
    comparison = Comparison.of(
        measure.resampled(own, truth, counts), np.mean(drawn, axis=0), difference
    )
    return Control(score, comparison, _N_CONTROLS)
