"""The safe choice: a richer rule only where it gains more than noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

import numpy as np

from wassemble.ensemble.learning.recipes import TIERS, Recipe
from wassemble.ensemble.learning.search import FOR_ALL, Search, Tried
from wassemble.ensemble.learning.stacks import why_not_stacking
from wassemble.ensemble.learning.trial import Trial
from wassemble.errors import tell_count
from wassemble.labels import enumerate_names
from wassemble.metrics import Comparison, Estimate

_N_CONTROLS = 3
# Below so many samples, the standard error of an accuracy is some hundredths, and itself a guess:
# with so many it is taken for wider by the root of 2.
FEW_SAMPLES = 100
_WORTH_SAYING = 1.1


@dataclass(frozen=True)
class Standing:
    """One rule beside the chosen one, on samples that it was not fitted on.

    Attributes
    ----------
    recipe : Recipe
    score, standard_error, low, high : float
        The user's metric, and its bootstrap standard error and 95 % interval.
    against_chosen : Comparison or None
        This rule minus the chosen one on the same samples; None for the chosen one.
    microseconds : float
        Per sample on this machine: to fit and fuse out of fold, or to fuse held-out samples in
        one call.
    figures : dict of str to float
        Other metrics, on held-out samples. Multi-class: accuracy, top_5_accuracy, log_loss,
        brier_score, calibration_error. Multi-label: mAP, and precision, recall and F1 where the
        three best labels of each sample are decided, which needs no thresholds.
    """

    name: str
    recipe: Recipe
    score: float
    standard_error: float
    low: float
    high: float
    against_chosen: Comparison | None
    microseconds: float
    figures: dict[str, float]
    is_chosen: bool = False

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        estimate: Estimate,
        chosen: Estimate,
        microseconds: float,
        figures: Mapping[str, float] | None = None,
    ) -> Self:
        """What a rule and the chosen one reached; the chosen one is beside itself."""
        is_chosen = estimate is chosen
        against = None if is_chosen else estimate.minus(chosen)
        scores = (estimate.score, estimate.standard_error, *estimate.interval)
        return cls(
            recipe.name, recipe, *scores, against, microseconds, dict(figures or {}), is_chosen
        )

    @property
    def is_simple(self) -> bool:
        """Whether it is a single model or a mean; its weights may be learned."""
        return self.recipe.is_simple

    @property
    def is_plain(self) -> bool:
        """Whether it is what one has without learning: a single model, or an even mean."""
        return self.recipe.is_plain

    @property
    def model(self) -> str | None:
        """The name of a model alone; None for any other rule."""
        return self.recipe.model

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        sort = {"is_simple": self.is_simple, "is_plain": self.is_plain}
        return asdict(self) | {"recipe": self.recipe.to_dict()} | sort

    @staticmethod
    def from_dict(entries: Mapping[str, Any]) -> Standing:
        """The line that `to_dict` wrote down."""
        values = {field.name: entries[field.name] for field in fields(Standing)}
        against = values["against_chosen"]
        values["recipe"] = Recipe.from_dict(values["recipe"])
        values["against_chosen"] = None if against is None else _read_comparison(against)
        _check_numbers({name: values[name] for name in ("score", "standard_error", "low", "high")})
        _check_numbers({"microseconds": values["microseconds"], **values["figures"]})
        return Standing(**values)


@dataclass(frozen=True)
class Control:
    """The chosen kernel against the same kernel with its labels shuffled."""

    score: float  # mean over shuffles
    comparison: Comparison  # the kernel minus the shuffled one
    n_shuffles: int

    @classmethod
    def of(cls, own: Estimate, shuffled: Sequence[Estimate]) -> Control:
        """A kernel against the mean of its shuffles."""
        mean = Estimate.mean(shuffled)
        return cls(mean.score, own.minus(mean), len(shuffled))

    @property
    def meaning_helped(self) -> bool:
        """Whether the labels' meaning, not the mere blur of a kernel, made a difference."""
        return self.comparison.is_sure


@dataclass(frozen=True)
class Choice:
    """Which recipe is used, and why."""

    recipe: Recipe
    reasons: tuple[str, ...]
    comparisons: dict[str, Comparison]
    control: Control | None
    estimate: float  # of the whole procedure, choice included
    estimate_error: float

    def to_dict(self) -> dict[str, Any]:
        """All but the recipe, ready for JSON."""
        entries = asdict(self)
        del entries["recipe"]
        return entries

    @staticmethod
    def from_dict(entries: Mapping[str, Any], recipe: Recipe) -> Choice:
        """The choice that `to_dict` wrote down."""
        control = entries["control"]
        if control is not None:
            control = Control(**control | {"comparison": _read_comparison(control["comparison"])})
            _check_numbers({"score": control.score, "n_shuffles": control.n_shuffles})
        compared = {name: _read_comparison(each) for name, each in entries["comparisons"].items()}
        _check_numbers({name: entries[name] for name in ("estimate", "estimate_error")})
        reasons = entries["reasons"]
        if not isinstance(reasons, list) or not all(isinstance(each, str) for each in reasons):
            raise TypeError(f"reasons must be a list of texts; got {reasons!r:.80}")
        values = {"reasons": tuple(reasons), "comparisons": compared, "control": control}
        return Choice(recipe, **{**entries, **values})


def _read_comparison(entries: Mapping[str, Any]) -> Comparison:
    _check_numbers(entries)
    return Comparison(**entries)


def _check_numbers(entries: Mapping[str, Any]) -> None:
    """Refuse what a file holds in place of numbers."""
    for name, value in entries.items():
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise TypeError(f"{name} must be a number; got {value!r:.80}")


WITHOUT_TRUTH = "the consensus without truth"
"""The comparison with what was learned without truth."""


def is_clear(gain: Comparison, n_samples: int, caution: float) -> bool:
    """Whether a gain is more than ``caution`` standard errors, taken wider for few samples."""
    return gain.difference > caution * _widen(n_samples) * gain.standard_error


def _widen(n_samples: int) -> float:
    return float(np.sqrt(1 + FEW_SAMPLES / n_samples))


def choose(
    search: Search,
    tried: Sequence[Tried],
    *,
    caution: float = 0.5,
    without_truth: np.ndarray | None = None,
) -> Choice:
    """The best of the simplest tier over which no higher one gains more than ``caution`` allows.

    That is so many standard errors of the paired difference, by bootstrap, which are taken wider
    where there are few samples: a standard error from thirty of them is itself a guess. Each tier
    is judged by nested choice: on each fold by the recipe that is best on the others, so that
    choosing among hundreds is paid for.

    ``without_truth`` are scores of the same samples that nothing was chosen by: the choice is
    compared with them.
    """
    wider = _widen(search.trial.n_samples)
    for_few = (
        f", counted {wider:.1f} times as there are few samples" if wider > _WORTH_SAYING else ""
    )
    current: tuple[Recipe, Estimate] | None = None
    reasons: list[str] = []
    comparisons: dict[str, Comparison] = {}
    for tier, title in enumerate(TIERS):
        members = [each for each in tried if each.recipe.tier == tier]
        if not members:
            continue
        best = max(members, key=lambda each: each.score).recipe
        honest = search.bootstrap.estimate(_nested(search, members))
        if current is None:
            current = best, honest
            reasons.append(f"the best {title} is {best.name}, {honest.score:.4f}")
            continue
        gain = comparisons[title] = honest.minus(current[1])
        is_taken = is_clear(gain, search.trial.n_samples, caution)
        which = best.name if title in best.name else f"the best {title}, {best.name},"
        reasons.append(
            f"{which} gains {gain} over it by nested choice,"
            f" {'more' if is_taken else 'not more'} than {caution:g} standard"
            f" error{'' if caution == 1 else 's'} of the paired difference"
            f" ({gain.standard_error:.4f}){for_few}: {'taken' if is_taken else 'not taken'}"
        )
        if is_taken:
            current = best, honest
    assert current is not None, "single models are always tried"
    recipe, honest = current
    if without_truth is not None:
        gain = comparisons[WITHOUT_TRUTH] = honest.minus(search.bootstrap.estimate(without_truth))
        reasons.append(f"it gains {gain} over {WITHOUT_TRUTH}")
    reasons += _say_transport(search, recipe)
    has_time = search.clock.has(search.judging_seconds(1 + _N_CONTROLS), share=FOR_ALL)
    control = _control(search, recipe) if has_time else None
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
    if recipe.needs_fit:
        reasons.append(
            f"each fold was fitted on {1 - 1 / search.n_folds:.0%} of the samples: fitted on all of"
            " them the rule is likely a little better than these figures"
        )
    if why := why_not_stacking(search.trial):
        reasons.append(f"stacking by logistic regression was not tried: {why}")
    if not search.trial.repeats_labels:
        reasons.append(
            "what labels mean was not learned from mistakes: most samples are the only one of their"
            " label"
        )
    reasons += _doubt(search.trial, honest)
    if search.stopped is not None:
        reasons.append(f"{search.stopped} before every rule was tried: the best so far is taken")
    return Choice(recipe, tuple(reasons), comparisons, control, honest.score, honest.standard_error)


def _doubt(trial: Trial, honest: Estimate) -> list[str]:
    """What makes the samples or the models a doubtful ground to choose on."""
    said = []
    if trial.n_samples < FEW_SAMPLES:
        low, high = honest.interval
        # Where all samples score the same, nothing tells how far others may be from that.
        spread = f"from {low:.2f} to {high:.2f}" if high > low else "else"
        said.append(
            f"{tell_count(trial.n_samples, 'sample')}"
            f" {'is' if trial.n_samples == 1 else 'are'} few: on others the score may well be"
            f" anything {spread}"
        )
    said += [
        f"{enumerate_names(copies)} give the same scores everywhere: a mean counts them as"
        f" {len(copies)} models"
        for copies in trial.find_copies()
    ]
    if once := trial.labels_seen_once:
        said.append(
            f"true labels that occur once, {len(once):,} of {len(trial.true_labels):,}, of which"
            f" nothing could be learned that was tested: {enumerate_names(once)}"
        )
    return said


def _nested(search: Search, members: Sequence[Tried]) -> np.ndarray:
    """Out-of-fold predictions of the recipe that is best on the other folds."""
    best = np.argmax([each.scores_without for each in members], axis=0)  # without each fold
    scores = {place: search.predict(members[place].recipe) for place in set(best.tolist())}
    nested = np.zeros_like(scores[int(best[0])])
    for fold, place in enumerate(best.tolist()):
        rows = search.folds == fold
        nested[rows] = scores[place][rows]
    return nested


def _say_transport(search: Search, recipe: Recipe) -> list[str]:
    """What barycenters among the features of a stacked consensus add."""
    without = recipe.without_transport()
    if without is None or not search.clock.has(search.judging_seconds(2), share=FOR_ALL):
        return []
    pair = (search.bootstrap.estimate(search.predict(each)) for each in (recipe, without))
    gain = next(pair).minus(next(pair))
    return [f"transport, the barycenters among what it sees, adds {gain}"]


def _control(search: Search, recipe: Recipe) -> Control | None:
    if not recipe.transports:
        return None
    recipes = [recipe, *(replace(recipe, shuffled=seed) for seed in range(_N_CONTROLS))]
    own, *shuffled = (search.bootstrap.estimate(search.predict(each)) for each in recipes)
    return Control.of(own, shuffled)
