"""Recipes: the ways to fuse that learning chooses from, and which of them are tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import combinations, product, zip_longest
from typing import Any

from wassemble.ensemble.learning.trial import Trial
from wassemble.ensemble.learning.weights import WeightRule
from wassemble.kernels import LabelledKernel
from wassemble.solvers import (
    Balanced,
    Barycenter,
    GatedBarycenter,
    GatedMean,
    PowerMean,
    Rule,
    Single,
    Unbalanced,
)

__all__ = ["CONFUSION", "NAMES", "Kernels", "Recipe", "list_recipes"]

Kernels = Mapping[str, LabelledKernel | Mapping[str, LabelledKernel]]
"""Kernels on offer, by name: one for all models, or one per model."""

# Kernels that need not be offered: labels by name alone, and each model's own mistakes.
NAMES = "names"
CONFUSION = "confusion"

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
    weights : {"uniform", "metric", "greedy", "gradient"}
        How the models' weights are learned; see `learn_weights`.
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
    def needs_fit(self) -> bool:
        """Whether it learns something from the truth."""
        return self.weights != "uniform" or self.uses_mistakes

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


def list_recipes(trial: Trial, offered: Kernels) -> list[Recipe]:
    """Recipes to try, simple ones first; the order does not depend on chance."""
    reached = trial.is_reached_by_name
    # Where no model has the target labels, even a mean must go through a kernel.
    carriers = [NAMES] if reached.any() else sorted(offered)
    same = all(model.labels == trial.target for model in trial.models)
    leftovers = (_LEFTOVER,) if same or not reached.any() else (0.0, _LEFTOVER, 0.2)
    means = [PowerMean(order) for order in _ORDERS]
    recipes: list[Recipe] = []
    for kernel in carriers:
        recipes += [Recipe(Single(name), kernel=kernel) for name in trial.names]
        recipes += [Recipe(rule, weights, kernel) for rule, weights in product(means, _LEARNED)]
    if trial.task == "multilabel":
        for gate, weights in product(_GATES, _WEIGHTS):
            if gate[0] < len(trial.target):
                gated: list[Rule] = [GatedMean(1.0, *gate)]
                gated += [GatedBarycenter(f, *gate) for f in _EXPONENTS]
                recipes += [Recipe(rule, weights) for rule in gated]
    learned = [CONFUSION] if trial.task == "multiclass" else []
    for prior, weights, leftover, kernel in product(_PRIORS, _WEIGHTS, leftovers[-2:], learned):
        recipes += [
            Recipe(rule, weights, kernel, prior=prior, leftover=leftover)
            for rule in (means[0], *_UNBALANCED)
        ]
    for kernel, sharpness, weights in product(sorted(offered), _SHARPNESS, _WEIGHTS):
        rules: list[tuple[Rule, float]]
        rules = [(rule, leftover) for leftover in leftovers[-2:] for rule in _UNBALANCED]
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
    return _in_turn(dict.fromkeys(recipes))


def _balanced(trial: Trial, kernel: LabelledKernel | Mapping[str, LabelledKernel]) -> list[Rule]:
    """Barycenters that keep the mass of histograms; debiased where the kernel allows it."""
    if trial.kind != "multiclass":
        return []
    if isinstance(kernel, LabelledKernel) and kernel.kernel.is_symmetric:
        spaces = {kernel.source, kernel.target, trial.target, *(m.labels for m in trial.models)}
        if len(spaces) == 1:
            return [_BALANCED, _DEBIASED]
    return [_BALANCED]


def _can_mix(trial: Trial, offered: Kernels, *names: str) -> bool:
    """Whether kernels are between the same labels, for every model."""
    for model, name in product(trial.models, names):
        if name != CONFUSION:
            given = offered[name]
            kernel = given if isinstance(given, LabelledKernel) else given[model.model]
            own = set(kernel.source), set(kernel.target)
            if own != (set(model.labels), set(trial.target)):
                return False
    return True


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
