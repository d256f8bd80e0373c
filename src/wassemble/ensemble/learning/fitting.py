"""Fitting recipes: each becomes a `Fusion` with weights and kernels that were learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble.fusion import Fusion
from wassemble.ensemble.learning.recipes import CONFUSION, NAMES, Kernels, Recipe
from wassemble.ensemble.learning.stacks import Stacker
from wassemble.ensemble.learning.trial import Trial
from wassemble.ensemble.learning.weights import learn_weights
from wassemble.inputs import Predictions
from wassemble.kernels import DenseKernel, LabelledKernel, from_confusion, mix as mix_kernels
from wassemble.metrics import Measure
from wassemble.solvers import ARITHMETIC, PowerMean, Rule, Single
from wassemble.solvers.stacked import StackedRule


@dataclass(frozen=True, eq=False)
class FittedRecipe:
    """A recipe, and the fusion that it became with what was learned."""

    recipe: Recipe
    fusion: Fusion

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        fusion: Fusion,
        weights: Mapping[str, float] | None,
        rule: Rule | None = None,
    ) -> Self:
        """A recipe with its weights, through the kernels of ``fusion``, with its rule as fitted."""
        keeps_mass = fusion.kind == "multilabel" or recipe.rule.is_balanced
        changed = fusion.replace(
            rule=recipe.rule if rule is None else rule,
            weights=weights,
            leftover=recipe.leftover,
            unobserved="spread" if keeps_mass else "drop",
        )
        return cls(recipe, changed)

    def fuse(self, models: Sequence[Predictions]) -> np.ndarray:
        """Consensus of predictions on the same samples, ``(n_samples, n_target)``; 0 for nan."""
        return np.nan_to_num(self.fusion.plan(models).fuse(models).scores)


class Fitter:
    """Fits recipes on one trial; what several of them need is computed once.

    ``stacker`` fits those that are stacked.
    """

    def __init__(
        self, trial: Trial, offered: Kernels, measure: Measure, stacker: Stacker | None = None
    ) -> None:
        self.trial, self._stacker = trial, stacker
        self._offered = offered
        self._measure = measure
        self._fusions: dict[Any, Fusion] = {}
        self._fusions_without_truth: dict[Any, Fusion] = {}
        self._weights: dict[Any, dict[str, float]] = {}
        self._is_reached = trial.is_reached_by_name.any()

    def on(self, rows: np.ndarray) -> Fitter:
        """Fits on some of the samples; what needs no truth is shared."""
        part = Fitter(self.trial.take(rows), self._offered, self._measure)
        part._fusions_without_truth = self._fusions_without_truth
        return part

    def fit(self, recipe: Recipe) -> FittedRecipe:
        """Learn what a recipe needs: weights, and kernels from mistakes."""
        if isinstance(recipe.rule, StackedRule):
            assert self._stacker is not None, "folds are fitted by the stacker itself"
            return FittedRecipe(recipe, self._stacker.fit(recipe.rule))
        weights = None
        if not isinstance(recipe.rule, Single):
            names = self.trial.names
            weights = dict.fromkeys(names, 1 / len(names))
            if recipe.weights != "uniform":
                weights = self._learn_weights(recipe)
        return FittedRecipe.of(recipe, self._matched(recipe), weights)

    def _matched(self, recipe: Recipe) -> Fusion:
        """A fusion through the kernels of a recipe, its labels matched once for all rules."""
        trial = self.trial
        key = (recipe.kernel, recipe.mixed_with, recipe.sharpness, recipe.prior, recipe.shuffled)
        fusions = self._fusions if recipe.uses_mistakes else self._fusions_without_truth
        if key not in fusions:
            fusions[key] = trial.fusion(_kernels(recipe, trial, self._offered))
            fusions[key].plan(trial.models)
        return fusions[key]

    def _learn_weights(self, recipe: Recipe) -> dict[str, float]:
        # Weights are for the mean of the models as they are, where they have the target labels:
        # through kernels from the same truth every model would look right.
        kernel = NAMES if self._is_reached else recipe.kernel
        order = 1.0
        if isinstance(recipe.rule, PowerMean) and recipe.weights == "greedy":
            order = recipe.rule.order
        carrier = Recipe(ARITHMETIC, kernel=kernel)
        if kernel == CONFUSION:
            carrier = Recipe(ARITHMETIC, kernel=kernel, prior=recipe.prior)
        key = (recipe.weights, carrier, order)
        if key not in self._weights:
            plan = self.fit(carrier).fusion.plan(self.trial.models)
            weights = learn_weights(recipe.weights, self.trial, self._measure, plan, order=order)
            self._weights[key] = dict(zip(self.trial.names, weights.tolist(), strict=True))
        return self._weights[key]


def _kernels(recipe: Recipe, trial: Trial, offered: Kernels) -> dict[str, LabelledKernel] | None:
    if recipe.kernel == NAMES:
        return None
    kernels = _kernel_of_each(recipe.kernel, recipe, trial, offered)
    if recipe.mixed_with is not None:
        second = _kernel_of_each(recipe.mixed_with, recipe, trial, offered)
        kernels = change_each(
            {name: (kernels[name], second[name]) for name in kernels},
            lambda pair: mix_kernels([(pair[0], 0.5), (pair[1], 0.5)]),
        )
    if recipe.shuffled is None:
        return kernels
    return change_each(kernels, partial(shuffle_labels, seed=recipe.shuffled))


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
    return change_each(offered[name], partial(sharpen, power=recipe.sharpness))


def sharpen(kernel: LabelledKernel, power: float) -> LabelledKernel:
    """The kernel with its entries raised to a power."""
    if power == 1:
        return kernel
    origin = f"{kernel.origin}, to the power {power:g}"
    return kernel.with_entries(kernel.kernel.power(power), origin)


def change_each(
    kernels: Mapping[str, Any], change: Callable[[Any], LabelledKernel]
) -> dict[str, LabelledKernel]:
    """Each kernel, or pair of them, changed; what several models share stays one object."""

    def key(given: Any) -> Any:
        return tuple(map(id, given)) if isinstance(given, tuple) else id(given)

    distinct = {key(given): given for given in kernels.values()}
    changed = {own: change(given) for own, given in distinct.items()}
    return {name: changed[key(given)] for name, given in kernels.items()}


def shuffle_labels(kernel: LabelledKernel, seed: int) -> LabelledKernel:
    """The kernel with its target labels shuffled, each label's similarity to its own name kept.

    It joins as many labels as strongly as before, but not those that belong together.
    """
    rng = np.random.default_rng(seed)
    dense = np.asarray(kernel.kernel.to_dense())
    order = rng.permutation(len(kernel.target))
    shuffled = dense[:, order]
    own = kernel.source.match(kernel.target).places
    rows = np.flatnonzero(own >= 0)
    home = own[rows]
    landed = np.argsort(order)[home]  # where the entry of the own name went
    stranger = shuffled[rows, home]
    shuffled[rows, home] = dense[rows, home]
    # Where both are one place, there is nothing to give back.
    shuffled[rows, landed] = np.where(landed == home, dense[rows, home], stranger)
    origin = f"{kernel.origin}, labels shuffled"
    return kernel.with_entries(DenseKernel(shuffled), origin)
