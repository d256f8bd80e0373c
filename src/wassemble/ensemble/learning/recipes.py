"""Recipes: the ways to fuse that learning chooses from, and how each is carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble.fusion import Fusion
from wassemble.ensemble.learning.trial import Trial
from wassemble.ensemble.learning.weights import WeightRule, learn_weights
from wassemble.ensemble.plan import Chunk, FusionPlan
from wassemble.inputs import Aliases, Kind, Predictions
from wassemble.kernels import (
    DenseKernel,
    LabelledKernel,
    from_confusion,
    mix as mix_kernels,
)
from wassemble.labels import LabelSpace
from wassemble.metrics import Measure
from wassemble.solvers import (
    Balanced,
    Barycenter,
    GatedBarycenter,
    GatedMean,
    MassRule,
    PowerMean,
    Rule,
    Unbalanced,
)

__all__ = [
    "CONFUSION",
    "NAMES",
    "FittedRecipe",
    "Fitter",
    "Kernels",
    "Recipe",
    "shuffle_labels",
]

Kernels = Mapping[str, LabelledKernel | Mapping[str, LabelledKernel]]
"""Kernels on offer, by name: one for all models, or one per model."""

# Kernels that need not be offered: labels by name alone, and each model's own mistakes.
NAMES = "names"
CONFUSION = "confusion"

# What is not said in the name of a recipe.
_LEFTOVER = 0.05


@dataclass(frozen=True)
class Recipe:
    """One way to fuse; every knob that learning may turn.

    Attributes
    ----------
    rule : {"single", "mean", "gated mean", "top labels", "barycenter"}
        "gated mean" multiplies a mean by ``floor`` where a label is in no model's ``n_top``
        best; "top labels" is the barycenter with that gate as a diagonal kernel (the
        paper's 6.2), which moves no mass.
    order : float
        Of a mean: 1 arithmetic, 0.5 Hellinger, 0 geometric.
    exponent : float
        mass_penalty / (mass_penalty + epsilon); 1 is balanced. With ``sharpness`` it stands
        for every pair of epsilon and mass_penalty: sweeps depend on nothing else.
    sharpness : float
        Power of the kernel's entries: K = exp(-C / epsilon) becomes exp(-C sharpness /
        epsilon).
    mixed_with : str or None
        A second kernel; the two are mixed half and half.
    prior : float
        Of a confusion kernel.
    leftover : float
        Say of a model on labels that it does not declare.
    sweeps : int or None
        Of a barycenter; None runs to convergence.
    shuffled : int or None
        Seed of a shuffle of the kernel's labels: a control.
    """

    rule: Literal["single", "mean", "gated mean", "top labels", "barycenter"]
    model: str | None = None
    weights: WeightRule = "uniform"
    kernel: str = NAMES
    mixed_with: str | None = None
    order: float = 1.0
    exponent: float = 1.0
    sharpness: float = 1.0
    prior: float = 0.2
    leftover: float = _LEFTOVER
    sweeps: int | None = 5
    n_top: int = 2
    floor: float = 0.7
    debias: bool = False
    shuffled: int | None = None

    @property
    def is_simple(self) -> bool:
        """Whether it is a single model or a mean, without anything learned but weights."""
        return self.rule in ("single", "mean") and not self._uses_mistakes

    @property
    def is_plain(self) -> bool:
        """Whether nothing is learned at all: a single model, or a mean of equal weights."""
        return self.is_simple and self.weights == "uniform"

    @property
    def needs_fit(self) -> bool:
        """Whether it learns something from the truth."""
        return self.weights != "uniform" or self._uses_mistakes

    @property
    def _uses_mistakes(self) -> bool:
        return CONFUSION in (self.kernel, self.mixed_with)

    @property
    def transports(self) -> bool:
        """Whether mass moves between labels."""
        return self.rule == "barycenter" and self.kernel != NAMES

    @property
    def name(self) -> str:
        """In words, for a table."""
        if self.rule == "single":
            return f"{self.model} alone" + self._through()
        parts = [self._title() + self._through()]
        if self.weights != "uniform":
            parts.append(f"weights {self.weights}")
        if self.leftover != _LEFTOVER:
            parts.append(f"leftover {self.leftover:g}")
        if self.shuffled is not None:
            parts.append(f"labels shuffled ({self.shuffled})")
        return ", ".join(parts)

    def _title(self) -> str:
        names = {1.0: "arithmetic mean", 0.5: "Hellinger mean", 0.0: "geometric mean"}
        mean = names.get(self.order, f"power mean {self.order:g}")
        if self.rule == "mean":
            return mean
        gate = f"top {self.n_top}, floor {self.floor:g}"
        if self.rule == "gated mean":
            return f"{mean} gated ({gate})"
        if self.rule == "top labels":
            return f"diagonal kernel ({gate}), exponent {self.exponent:g}"
        if self.debias:
            return "debiased barycenter"
        sweeps = "" if self.sweeps is None else f", {self.sweeps} sweeps"
        if self.exponent == 1:
            return f"balanced barycenter{sweeps}"
        return f"barycenter, exponent {self.exponent:g}{sweeps}"

    def _through(self) -> str:
        if self.kernel == NAMES:
            return ""
        named = [name for name in (self.kernel, self.mixed_with) if name is not None]
        sharp = "" if self.sharpness == 1 else f" ^ {self.sharpness:g}"
        words = [f"mistakes (prior {self.prior:g})" if n == CONFUSION else n + sharp for n in named]
        return f" through {' and '.join(words)}"

    def to_dict(self) -> dict[str, Any]:
        """Every knob, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class FittedRecipe:
    """A recipe with what it learned, ready to fuse.

    Attributes
    ----------
    weights : array of shape (n_models,)
    kernels : dict of model name to LabelledKernel, or None
        From each model's labels to the target's; None matches by name.
    aliases, other
        What labels stand for; see `Trial`.
    """

    recipe: Recipe
    kind: Kind
    target: LabelSpace
    models: tuple[tuple[str, LabelSpace], ...]
    weights: np.ndarray
    kernels: dict[str, LabelledKernel] | None
    aliases: Aliases = field(default_factory=Aliases)
    other: Mapping[str, str] = field(default_factory=dict)

    @property
    def _members(self) -> dict[str, LabelSpace]:
        recipe = self.recipe
        return {
            name: labels
            for name, labels in self.models
            if recipe.rule != "single" or name == recipe.model
        }

    @cached_property
    def fusion(self) -> Fusion:
        """How to fuse, with what was learned."""
        there, rule = self._members, _rule(self.recipe, self.kind)
        kernel = None
        if self.kernels is not None:
            kernel = {name: self.kernels[name] for name in there}
        return Fusion(
            rule,
            kernel,
            kind=self.kind,
            target=self.target,
            weights=self.weights if len(there) > 1 else np.ones(1),
            aliases=[row for row in self.aliases.rows if row[0] is None or row[0] in there],
            other={model: name for model, name in self.other.items() if model in there},
            leftover=self.recipe.leftover,
            unobserved="spread" if self.kind == "multilabel" or rule.is_balanced else "drop",
        )

    def plan(self) -> FusionPlan:
        """How the models come together."""
        return self.fusion.plan(self._members)

    def fuse(self, models: Sequence[Predictions]) -> np.ndarray:
        """Consensus of predictions on the same samples, ``(n_samples, n_target)``; 0 for nan."""
        return np.nan_to_num(self.fuse_chunk(models).scores)

    def fuse_chunk(self, models: Sequence[Predictions]) -> Chunk:
        """The same, with how each sample ended."""
        plan = self.plan()
        by_name = {model.model: model for model in models}
        return plan.fuse([by_name[member.model] for member in plan.members])


def _rule(recipe: Recipe, kind: Kind) -> Rule:
    if recipe.rule == "gated mean":
        return GatedMean(recipe.order, recipe.n_top, recipe.floor)
    if recipe.rule == "top labels":
        return GatedBarycenter(recipe.exponent, recipe.n_top, recipe.floor)
    if recipe.rule != "barycenter":
        return PowerMean(recipe.order)
    mass: MassRule = Balanced()
    if recipe.exponent < 1 or kind == "multilabel":
        exponent = min(recipe.exponent, 0.99)
        mass = Unbalanced(exponent, epsilon=1 - exponent)
    sweeps = recipe.sweeps
    return Barycenter(
        mass,
        max_sweeps=sweeps or 1000,
        tolerance=None if sweeps else 1e-6,
        debias=recipe.debias,
    )


class Fitter:
    """Fits recipes on one trial; what several of them need is computed once."""

    def __init__(self, trial: Trial, offered: Kernels, measure: Measure) -> None:
        self.trial = trial
        self._offered = offered
        self._measure = measure
        self._models = tuple((model.model, model.labels) for model in trial.models)
        self._kernels: dict[Any, dict[str, LabelledKernel] | None] = {}
        self._weights: dict[Any, np.ndarray] = {}
        self._is_reached = trial.is_reached_by_name.any()

    def fit(self, recipe: Recipe) -> FittedRecipe:
        """Learn what a recipe needs: weights, and kernels from mistakes."""
        trial = self.trial
        key = (recipe.kernel, recipe.mixed_with, recipe.sharpness, recipe.prior, recipe.shuffled)
        if key not in self._kernels:
            self._kernels[key] = _kernels(recipe, trial, self._offered)
        kernels = self._kernels[key]
        uniform = np.full(len(self._models), 1 / len(self._models))
        fitted = FittedRecipe(
            recipe,
            trial.kind,
            trial.target,
            self._models,
            uniform,
            kernels,
            trial.aliases,
            trial.other,
        )
        if recipe.weights == "uniform" or recipe.rule == "single":
            return fitted
        # Weights are for the mean of the models as they are, where they have the target labels:
        # through kernels from the same truth every model would look right.
        carrier = NAMES if self._is_reached else recipe.kernel
        order = recipe.order if recipe.rule == "mean" else 1.0
        prior = recipe.prior if carrier == CONFUSION else None
        own = (recipe.weights, carrier, prior, order if recipe.weights == "greedy" else 1.0)
        if own not in self._weights:
            plain = fitted if carrier == recipe.kernel else replace(fitted, kernels=None)
            self._weights[own] = learn_weights(
                recipe.weights, trial, self._measure, plain.plan, order=order
            )
        return replace(fitted, weights=self._weights[own])


def _kernels(recipe: Recipe, trial: Trial, offered: Kernels) -> dict[str, LabelledKernel] | None:
    if recipe.kernel == NAMES:
        return None
    found = _kernel_of_each(recipe.kernel, recipe, trial, offered)
    if recipe.mixed_with is not None:
        second = _kernel_of_each(recipe.mixed_with, recipe, trial, offered)
        found = _once_each(
            {name: (found[name], second[name]) for name in found},
            lambda pair: mix_kernels([(pair[0], 0.5), (pair[1], 0.5)]),
        )
    if recipe.shuffled is None:
        return found
    return _once_each(found, partial(shuffle_labels, seed=recipe.shuffled))


def _kernel_of_each(
    name: str, recipe: Recipe, trial: Trial, offered: Kernels
) -> dict[str, LabelledKernel]:
    """The kernel of this name, for each model."""
    if name == CONFUSION:
        if trial.task != "multiclass":
            fail("kernels from mistakes need one true label for each sample; got multi-label.")
        truth = [trial.target[i] for i in trial.truth.tolist()]
        return {
            m.model: from_confusion(
                m,
                truth,
                target=trial.target,
                prior=recipe.prior,
                aliases=trial.aliases.of_model(m.model),
                other=trial.other.get(m.model),
            )
            for m in trial.models
        }
    given = offered[name]
    found = {
        m.model: given if isinstance(given, LabelledKernel) else given[m.model]
        for m in trial.models
    }
    return _once_each(found, partial(_sharpened, sharpness=recipe.sharpness))


def _once_each(
    found: Mapping[str, Any], change: Callable[[Any], LabelledKernel]
) -> dict[str, LabelledKernel]:
    """Each kernel changed; what several models share stays one object."""

    def key(given: Any) -> Any:
        return tuple(map(id, given)) if isinstance(given, tuple) else id(given)

    changed: dict[Any, LabelledKernel] = {}
    for given in found.values():
        if key(given) not in changed:
            changed[key(given)] = change(given)
    return {name: changed[key(given)] for name, given in found.items()}


def _sharpened(kernel: LabelledKernel, sharpness: float) -> LabelledKernel:
    if sharpness == 1:
        return kernel
    origin = f"{kernel.origin}, to the power {sharpness:g}"
    return kernel.with_entries(kernel.kernel.power(sharpness), origin)


def shuffle_labels(kernel: LabelledKernel, seed: int) -> LabelledKernel:
    """The kernel with its target labels shuffled, each label's similarity to its own name kept.

    It joins as many labels as strongly as before, but not those that belong together.
    """
    rng = np.random.default_rng(seed)
    dense = np.asarray(kernel.kernel.to_dense())
    order = rng.permutation(len(kernel.target))
    shuffled = dense[:, order]
    own = kernel.source.match(kernel.target).positions
    rows = np.flatnonzero(own >= 0)
    home = own[rows]
    landed = np.argsort(order)[home]  # where the entry of the own name went
    stranger = shuffled[rows, home]
    shuffled[rows, home] = dense[rows, home]
    # Where both are one place, there is nothing to give back.
    shuffled[rows, landed] = np.where(landed == home, dense[rows, home], stranger)
    origin = f"{kernel.origin}, labels shuffled"
    return kernel.with_entries(DenseKernel(shuffled), origin)
