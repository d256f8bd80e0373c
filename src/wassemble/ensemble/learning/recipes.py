"""Recipes: the ways to fuse that learning chooses from, and how each is carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble.learning.measure import Measure
from wassemble.ensemble.learning.trial import Trial
from wassemble.ensemble.learning.weights import WeightRule, learn_weights
from wassemble.ensemble.plan import Chunk, FusionPlan, Options
from wassemble.inputs import Aliases, Kind, Predictions
from wassemble.kernels import (
    DenseKernel,
    LabelledKernel,
    from_confusion,
    mix as mix_kernels,
)
from wassemble.labels import LabelSpace
from wassemble.solvers import Balanced, Unbalanced, power_mean, solve_barycenter

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

    def plan(self) -> FusionPlan:
        """How the models come together."""
        recipe = self.recipe
        members = [m for m in self.models if recipe.rule != "single" or m[0] == recipe.model]
        weights = self.weights if len(members) > 1 else np.ones(1)
        kernel = None
        if self.kernels is not None:
            kernel = {name: self.kernels[name] for name, _ in members}
        sweeps = recipe.sweeps if recipe.rule == "barycenter" else None
        options = Options(
            mass=_mass(recipe, self.kind),
            rule=_rule(recipe),
            leftover=recipe.leftover,
            unobserved="spread" if self.kind == "multilabel" else "drop",
            max_iterations=sweeps or 1000,
            tolerance=None if sweeps else 1e-6,
            debias=recipe.debias,
        )
        if isinstance(options.mass, Balanced):
            options = replace(options, unobserved="spread")
        there = {name for name, _ in members}
        return FusionPlan(
            members,
            self.kind,
            target=self.target,
            kernel=kernel,
            weights=weights,
            aliases=[row for row in self.aliases.rows if row[0] is None or row[0] in there],
            other={model: name for model, name in self.other.items() if model in there},
            options=options,
        )

    def fuse(self, models: Sequence[Predictions]) -> np.ndarray:
        """Consensus of predictions on the same samples, ``(n_samples, n_target)``; 0 for nan."""
        return np.nan_to_num(self.fuse_chunk(models).scores)

    def fuse_chunk(self, models: Sequence[Predictions]) -> Chunk:
        """The same, with how each sample ended."""
        plan = self.plan()
        by_name = {model.model: model for model in models}
        return plan.fuse([by_name[member.model] for member in plan.members])


def _mass(recipe: Recipe, kind: Kind) -> Any:
    if recipe.rule != "barycenter":
        return None
    if recipe.exponent == 1 and kind == "multiclass":
        return Balanced()
    exponent = min(recipe.exponent, 0.99)
    return Unbalanced(exponent, epsilon=1 - exponent)


def _rule(recipe: Recipe) -> Callable[..., Any]:
    if recipe.rule == "barycenter":
        return solve_barycenter
    if recipe.rule == "gated mean":
        return partial(_gated_mean, order=recipe.order, n_top=recipe.n_top, floor=recipe.floor)
    if recipe.rule == "top labels":
        return partial(
            _top_labels, exponent=recipe.exponent, n_top=recipe.n_top, floor=recipe.floor
        )
    return partial(power_mean, order=recipe.order)


def _gated_mean(
    images: Sequence[np.ndarray], *, weights: Any, order: float, n_top: int, floor: float
) -> np.ndarray:
    mean: np.ndarray = power_mean(images, weights=weights, order=order)
    return mean * np.where(_in_top(images, n_top), 1, floor)


def _top_labels(
    images: Sequence[np.ndarray], *, weights: Any, exponent: float, n_top: int, floor: float
) -> np.ndarray:
    """Fixed point of Algorithm 2 with the gate as a diagonal kernel: no sweeps needed."""
    mean: np.ndarray = power_mean(images, weights=weights, order=exponent / (1 + exponent))
    gate = np.where(_in_top(images, n_top), 1.0, floor)
    return gate ** (1 - exponent) * mean**exponent


def _in_top(images: Sequence[np.ndarray], n_top: int) -> np.ndarray:
    """Labels among the best of some model, ``(n_samples, n_target)``."""
    found = np.zeros_like(images[0], dtype=bool)
    n_top = min(n_top, len(found[0]) if len(found) else n_top)
    for image in images:
        bound = np.partition(image, -n_top, axis=1)[:, -n_top][:, None]
        found |= (image >= bound) & (image > 0)
    return found


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
