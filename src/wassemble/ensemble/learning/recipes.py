"""Recipes: the ways to fuse that learning chooses from, and which of them are tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations, product, zip_longest
from typing import Any

import numpy as np

from wassemble._arrays import is_frame
from wassemble._checks import fail
from wassemble.ensemble.learning.stacks import TRANSPORT, why_not_stacking
from wassemble.ensemble.learning.trial import Trial
from wassemble.ensemble.learning.weights import WeightRule
from wassemble.kernels import LabelledKernel
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.solvers import (
    Balanced,
    Barycenter,
    GatedBarycenter,
    GatedMean,
    LineBarycenter,
    LogisticStacking,
    PowerMean,
    Rule,
    Single,
    StackedConsensus,
    Unbalanced,
)
from wassemble.solvers.exact import ExactBarycenter
from wassemble.solvers.stacked import GROUPS, StackedRule

Kernels = Mapping[str, Mapping[str, LabelledKernel]]
"""Kernels on offer by name, each with one per model; models may share it."""

# Kernels that need not be offered: labels by name alone, and each model's own mistakes.
NAMES = "names"
CONFUSION = "confusion"

TIERS = (
    "single model or mean",
    "mean with fitted weights or through a kernel",
    "gated mean or exact barycenter",
    "rule through a kernel",
    "stacking",
    "stacked consensus",
)
"""Rules from the simplest on: a higher one must be worth it."""

# What is not said in the name of a recipe.
_LEFTOVER = 0.05

# What is tried.
_ORDERS = (1.0, 0.5, 0.0, 2.0)
_EXPONENTS = (0.5, 0.7, 0.9)
_SHARPNESS = (1.0, 2.0, 0.5, 4.0)
_PRIORS = (0.1, 0.3, 1.0)
_GATES = tuple(product((1, 2, 3, 5), (0.3, 0.5, 0.7, 0.9)))
_WEIGHTS: tuple[WeightRule, ...] = ("metric", "greedy", "uniform")
_LEARNED: tuple[WeightRule, ...] = ("uniform", "metric", "greedy", "gradient")
# With the sharpness of a kernel, the exponent stands for every pair of epsilon and mass_penalty:
# sweeps depend on nothing else.
_SWEEPS: dict[str, Any] = {"max_sweeps": 5, "tolerance": None}
_UNBALANCED = [Barycenter(Unbalanced(f, epsilon=1 - f), **_SWEEPS) for f in _EXPONENTS]
_BALANCED = Barycenter(Balanced(), **_SWEEPS)
_DEBIASED = Barycenter(max_sweeps=20, tolerance=None, debias=True)


@dataclass(frozen=True)
class Recipe:
    """One way to fuse: a rule, and what learning may add to it.

    Attributes
    ----------
    weights : {"uniform", "metric", "greedy", "gradient", "agreement", "shared"}
        How the models' weights are learned; see `learn_weights`, and `learn_without_truth` for
        the last two.
    kernel : str
        Name of a kernel on offer, "names" or "confusion".
    mixed_with : str or None
        A second kernel; the two are mixed half and half.
    sharpness : float
        Power of the kernel's entries: K = exp(-C / epsilon) becomes exp(-C sharpness /
        epsilon).
    prior : float
        Of a confusion kernel.
    leftover : float
        As in `Fusion`.
    shuffled : int or None
        Seed of a shuffle of the kernel's labels: a control.
    """

    rule: Rule
    weights: WeightRule = "uniform"
    kernel: str = NAMES
    mixed_with: str | None = None
    sharpness: float = 1.0
    prior: float = 0.2
    leftover: float = _LEFTOVER
    shuffled: int | None = None

    @property
    def model(self) -> str | None:
        """The name of a model alone; None for any other rule."""
        return str(self.rule.model) if isinstance(self.rule, Single) else None

    @property
    def is_simple(self) -> bool:
        """Whether it is a single model or a mean, without anything learned but weights."""
        return isinstance(self.rule, Single | PowerMean) and not self.uses_mistakes

    @property
    def is_plain(self) -> bool:
        """Whether nothing is learned at all: a single model, or a mean of equal weights."""
        return self.is_simple and self.weights == "uniform"

    @property
    def is_stacked(self) -> bool:
        """Whether it is fitted as a whole, by a `Stacker`."""
        return isinstance(self.rule, StackedRule)

    @property
    def tier(self) -> int:
        """Its place in `TIERS`."""
        if self.is_simple:
            is_usual = (self.kernel, self.leftover) == (NAMES, _LEFTOVER)
            return 0 if is_usual and self.weights in ("uniform", "metric") else 1
        if self.is_stacked:
            return 5 if isinstance(self.rule, StackedConsensus) else 4
        return 2 if isinstance(self.rule, GatedMean | ExactBarycenter) else 3

    @property
    def needs_fit(self) -> bool:
        """Whether it learns something from the truth."""
        return self.weights != "uniform" or self.uses_mistakes or self.is_stacked

    def without_transport(self) -> Recipe | None:
        """The same stacked consensus without barycenters among its features; None for others."""
        return self.without(*TRANSPORT)

    def without(self, *groups: str) -> Recipe | None:
        """The same stacked consensus, blind to ``groups``; None if it saw none, and for others."""
        if not isinstance(self.rule, StackedConsensus) or not set(groups) & set(self.rule.sees):
            return None
        sees = tuple(group for group in self.rule.sees if group not in groups)
        return replace(self, rule=replace(self.rule, sees=sees))

    @property
    def uses_mistakes(self) -> bool:
        """Whether a kernel comes from the models' mistakes."""
        return CONFUSION in (self.kernel, self.mixed_with)

    @property
    def transports(self) -> bool:
        """Whether mass moves between labels."""
        return isinstance(self.rule, Barycenter) and self.kernel != NAMES

    @property
    def name(self) -> str:
        """In words, for a table."""
        parts = [str(self.rule) + self._through()]
        if self.weights != "uniform":
            parts.append(f"weights {self.weights}")
        if self.leftover != _LEFTOVER:
            parts.append(f"leftover {self.leftover:g}")
        if self.shuffled is not None:
            parts.append(f"labels shuffled ({self.shuffled})")
        return ", ".join(parts)

    def _through(self) -> str:
        if self.kernel == NAMES:
            return ""
        named = [name for name in (self.kernel, self.mixed_with) if name is not None]
        sharp = "" if self.sharpness == 1 else f" ^ {self.sharpness:g}"
        words = [f"mistakes (prior {self.prior:g})" if n == CONFUSION else n + sharp for n in named]
        return f" through {' and '.join(words)}"

    def to_dict(self) -> dict[str, Any]:
        """Every knob, ready for JSON."""
        knobs = {field.name: getattr(self, field.name) for field in fields(self)}
        return knobs | {"rule": self.rule.to_dict()}

    @staticmethod
    def from_dict(entries: Mapping[str, Any]) -> Recipe:
        """The recipe that `to_dict` wrote down."""
        return Recipe(**{**entries, "rule": Rule.from_dict(entries["rule"])})


def read_kernels(
    kernels: Mapping[str, Any],
    models: Iterable[tuple[str, LabelSpace]],
    target: LabelSpace,
    *,
    word: str = "kernel",
    reserved: Sequence[str] = (NAMES, CONFUSION),
) -> dict[str, dict[str, LabelledKernel]]:
    """What a user offers: kernels, data frames, one of either per model, or functions of labels."""
    offered: dict[str, dict[str, LabelledKernel]] = {}
    made: dict[Any, LabelledKernel] = {}  # what several models share stays one object
    if not isinstance(kernels, Mapping):
        fail(
            f"{word}s must be a dict of names to {word}s; got a {type(kernels).__name__}.",
            hint=f'{{"my {word}": {word}}} names it',
        )
    for name, given in kernels.items():
        if name in reserved:
            fail(f"a {word} must have another name than {enumerate_names(reserved)}.")
        offered[name] = {}
        for model, labels in models:
            own = given
            if isinstance(given, Mapping):
                if model not in given:
                    fail(f"the {word} {name!r} must have one for each model; {model!r} is missing.")
                own = given[model]
            elif callable(given):
                if (name, labels) not in made:
                    made[name, labels] = given(labels, target)
                own = made[name, labels]
            if is_frame(own):
                if id(own) not in made:
                    made[id(own)] = LabelledKernel(own)
                own = made[id(own)]
            if not isinstance(own, LabelledKernel):
                fail(
                    f"the {word} {name!r} must be a LabelledKernel or a data frame, a dict with"
                    f" one per model, or a function of label spaces; got {type(own).__name__}.",
                    hint="`LabelledKernel(array, source, target)` gives an array its names",
                )
            offered[name][model] = own
    return offered


def read_rules(rules: Iterable[Any], target: LabelSpace) -> list[Rule]:
    """What a user offers: rules, or functions from the target labels to one."""
    made = [rule(target) if callable(rule) else rule for rule in rules]
    for rule in made:
        if not isinstance(rule, Rule) or isinstance(rule, Single | StackedRule):
            fail(
                "`rules` must be rules that need no fit, or functions from the target labels to"
                f" one; got {rule!r}."
            )
    return made


def list_recipes(trial: Trial, offered: Kernels, further: Iterable[Rule] = ()) -> list[Recipe]:
    """Recipes to try, simple ones first; the order does not depend on chance.

    ``further`` rules are tried beside the usual ones.
    """
    reached = trial.is_reached_by_name
    same = all(model.labels == trial.target for model in trial.models)
    # Where label sets differ, a model that does not know a label may be as good as one that says
    # no: 1 counts it so.
    leftovers = (_LEFTOVER,) if same or not reached.any() else (_LEFTOVER, 0.2, 1.0)
    recipes = _simple(trial, sorted(offered), by_name=bool(reached.any()), leftovers=leftovers)
    if trial.task == "multilabel":
        recipes += _gated(trial)
    lines = [LineBarycenter(1), LineBarycenter(2)] if trial.is_ordered else []
    kernels = [*([NAMES] if reached.any() else []), *sorted(offered)]
    recipes += [Recipe(*each) for each in product([*lines, *further], _WEIGHTS, kernels)]
    means = [PowerMean(order) for order in _ORDERS]
    learned = [CONFUSION] if _has_meanings(trial) else []
    for prior, weights, leftover, kernel in product(_PRIORS, _WEIGHTS, leftovers[:2], learned):
        recipes += [
            Recipe(rule, weights, kernel, prior=prior, leftover=leftover)
            for rule in (means[0], *_UNBALANCED)
        ]
    for kernel in sorted(offered):
        powers = (1.0,) if _is_unchanged_by_powers(offered[kernel]) else _SHARPNESS
        for sharpness, weights in product(powers, _WEIGHTS):
            rules: list[tuple[Rule, float]]
            rules = [(rule, leftover) for leftover in leftovers[:2] for rule in _UNBALANCED]
            rules += [(rule, _LEFTOVER) for rule in _balanced(trial, offered[kernel])]
            recipes += [
                Recipe(rule, weights, kernel, sharpness=sharpness, leftover=leftover)
                for rule, leftover in rules
            ]
    for (kernel, other), weights, rule in product(
        combinations(sorted(offered) + learned, 2), _WEIGHTS[:2], _UNBALANCED
    ):
        if _can_mix(trial, offered, kernel, other):
            recipes.append(Recipe(rule, weights, kernel, mixed_with=other, prior=_PRIORS[0]))
    return [*_in_turn(dict.fromkeys(recipes)), *_stacked(trial, offered)]


def _simple(
    trial: Trial, offered: Sequence[str], *, by_name: bool, leftovers: Sequence[float]
) -> list[Recipe]:
    """Single models and means: by name, and through the kernels on offer."""
    recipes: list[Recipe] = []
    means = [PowerMean(order) for order in _ORDERS]
    for kernel in ([NAMES] if by_name else []) + list(offered):
        recipes += [Recipe(Single(name), kernel=kernel) for name in trial.names]
        rules = _LEARNED if kernel == NAMES or not by_name else _LEARNED[:2]
        recipes += [Recipe(rule, weights, kernel) for rule, weights in product(means, rules)]
    if by_name and 1.0 in leftovers:
        recipes += [
            Recipe(rule, weights, leftover=1.0)
            for rule, weights in product(means[:2], _LEARNED[:3])
        ]
    return recipes


def _gated(trial: Trial) -> list[Recipe]:
    recipes: list[Recipe] = []
    for gate, weights in product(_GATES, _WEIGHTS):
        if gate[0] < len(trial.target):
            gated: list[Rule] = [GatedMean(1.0, *gate)]
            gated += [GatedBarycenter(f, *gate) for f in _EXPONENTS]
            recipes += [Recipe(rule, weights) for rule in gated]
    return recipes


def _stacked(trial: Trial, offered: Kernels) -> list[Recipe]:
    """Stacking, and the stacked consensus with and without transport among what it sees."""
    there = [group for group in GROUPS if group != "offered" or offered]
    if not trial.is_ordered:
        there.remove("order")
    if why_not_stacking(trial) is not None:
        there.remove("stacking")
    if not _has_meanings(trial):
        there = [group for group in there if group not in ("votes", "mistakes", "transport")]
    whole = Recipe(StackedConsensus(trial.task, tuple(there)))
    less = whole.without_transport()
    stacking = [Recipe(LogisticStacking(trial.task))] if why_not_stacking(trial) is None else []
    return [*stacking, whole, *([] if less is None else [less])]


def _has_meanings(trial: Trial) -> bool:
    """Whether what a model's labels mean can be learned from its mistakes."""
    return trial.task == "multiclass" and trial.repeats_labels


def _is_unchanged_by_powers(kernels: Mapping[str, LabelledKernel]) -> bool:
    """Whether all entries are 0 or 1."""
    return all(
        np.isin(np.asarray(kernel.kernel.to_dense()), (0.0, 1.0)).all()
        for kernel in {id(kernel): kernel for kernel in kernels.values()}.values()
    )


def _balanced(trial: Trial, kernels: Mapping[str, LabelledKernel]) -> list[Rule]:
    """Barycenters that keep the mass of histograms; debiased where the kernel allows it."""
    if trial.kind != "multiclass":
        return []
    first, *others = kernels.values()
    if first.kernel.is_symmetric and all(other is first for other in others):
        spaces = {first.source, first.target, trial.target, *(m.labels for m in trial.models)}
        if len(spaces) == 1:
            return [_BALANCED, _DEBIASED]
    return [_BALANCED]


def _can_mix(trial: Trial, offered: Kernels, *names: str) -> bool:
    """Whether kernels are between the same labels, for every model."""
    return all(
        (set(kernel.source), set(kernel.target)) == (set(model.labels), set(trial.target))
        for model in trial.models
        for kernel in (offered[name][model.model] for name in names if name != CONFUSION)
    )


def _in_turn(recipes: Iterable[Recipe]) -> list[Recipe]:
    """Simple recipes first, then one of each kernel and gate in turn, as they are.

    So whatever time there is goes to all of them.
    """
    simple: list[Recipe] = []
    groups: dict[Any, list[Recipe]] = {}
    for recipe in recipes:
        if recipe.is_simple:
            simple.append(recipe)
        else:
            own = (recipe.kernel, recipe.mixed_with) if recipe.transports else type(recipe.rule)
            groups.setdefault(own, []).append(recipe)
    turns = zip_longest(*groups.values())
    return simple + [recipe for turn in turns for recipe in turn if recipe is not None]
