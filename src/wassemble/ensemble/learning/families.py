"""Which recipes are tried: every single model, every simple mean, and barycenters."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product, zip_longest
from typing import Any

from wassemble.ensemble.learning.recipes import CONFUSION, NAMES, Kernels, Recipe
from wassemble.ensemble.learning.trial import Trial
from wassemble.ensemble.learning.weights import WeightRule
from wassemble.kernels import LabelledKernel

__all__ = ["list_recipes"]

_ORDERS = (1.0, 0.5, 0.0, 2.0)
_EXPONENTS = (0.5, 0.7, 0.9)
_SHARPNESS = (1.0, 2.0, 0.5, 4.0)
_PRIORS = (0.1, 0.3, 1.0)
_GATES = tuple(product((1, 2, 3, 5), (0.3, 0.5, 0.7, 0.9)))
_WEIGHTS: tuple[WeightRule, ...] = ("metric", "greedy", "uniform")
_LEARNED: tuple[WeightRule, ...] = ("uniform", "metric", "greedy", "gradient")


def list_recipes(trial: Trial, offered: Kernels) -> list[Recipe]:
    """Recipes to try, simple ones first; the order does not depend on chance."""
    reached = trial.is_reached_by_name
    # Where no model has the target labels, even a mean must go through a kernel.
    carriers = [NAMES] if reached.any() else sorted(offered)
    same = all(model.labels == trial.target for model in trial.models)
    leftovers = (0.05,) if same or not reached.any() else (0.0, 0.05, 0.2)
    found: list[Recipe] = []
    for kernel in carriers:
        found += [Recipe("single", model=name, kernel=kernel) for name in trial.names]
        found += [
            Recipe("mean", order=order, weights=weights, kernel=kernel)
            for order, weights in product(_ORDERS, _LEARNED)
        ]
    if trial.task == "multilabel":
        for (n_top, floor), weights in product(_GATES, _WEIGHTS):
            if n_top < len(trial.target):
                gate: dict[str, Any] = {"n_top": n_top, "floor": floor, "weights": weights}
                found.append(Recipe("gated mean", **gate))
                found += [Recipe("top labels", exponent=f, **gate) for f in _EXPONENTS]
    learned = [CONFUSION] if trial.task == "multiclass" else []
    for prior, weights, leftover in product(_PRIORS, _WEIGHTS, leftovers[-2:]):
        for kernel in learned:
            knobs: dict[str, Any] = {
                "kernel": kernel,
                "prior": prior,
                "weights": weights,
                "leftover": leftover,
            }
            found.append(Recipe("mean", **knobs))
            found += [Recipe("barycenter", exponent=f, **knobs) for f in _EXPONENTS]
    for kernel, sharpness, weights in product(sorted(offered), _SHARPNESS, _WEIGHTS):
        found += _barycenters(trial, offered, kernel, sharpness, weights, leftovers)
    for (kernel, other), weights, exponent in product(
        combinations(sorted(offered) + learned, 2), _WEIGHTS[:2], _EXPONENTS
    ):
        if _can_mix(trial, offered, kernel, other):
            knobs = {"kernel": kernel, "mixed_with": other, "weights": weights}
            found.append(Recipe("barycenter", exponent=exponent, prior=_PRIORS[0], **knobs))
    return _in_turn(list(dict.fromkeys(found)))


def _can_mix(trial: Trial, offered: Kernels, *names: str) -> bool:
    """Whether kernels are between the same labels, for every model."""
    for model in trial.models:
        for name in names:
            if name != CONFUSION:
                given = offered[name]
                kernel = given if isinstance(given, LabelledKernel) else given[model.model]
                if set(kernel.source) != set(model.labels):
                    return False
                if set(kernel.target) != set(trial.target):
                    return False
    return True


def _in_turn(recipes: list[Recipe]) -> list[Recipe]:
    """Simple recipes first, then one of each kernel and gate in turn, as they are.

    So whatever time there is goes to all of them.
    """
    simple = [recipe for recipe in recipes if recipe.is_simple]
    groups: dict[Any, list[Recipe]] = {}
    for recipe in recipes:
        if not recipe.is_simple:
            own = (recipe.kernel, recipe.mixed_with) if recipe.transports else recipe.rule
            groups.setdefault(own, []).append(recipe)
    turns = zip_longest(*groups.values())
    return simple + [recipe for turn in turns for recipe in turn if recipe is not None]


def _barycenters(
    trial: Trial,
    offered: Kernels,
    kernel: str,
    sharpness: float,
    weights: WeightRule,
    leftovers: Iterable[float],
) -> list[Recipe]:
    found = []
    knobs: dict[str, Any] = {"kernel": kernel, "sharpness": sharpness, "weights": weights}
    for leftover in list(leftovers)[-2:]:
        found += [Recipe("barycenter", exponent=f, leftover=leftover, **knobs) for f in _EXPONENTS]
    given = offered[kernel]
    if trial.kind == "multiclass":
        found.append(Recipe("barycenter", **knobs))
        if isinstance(given, LabelledKernel) and given.kernel.is_symmetric:
            same = all(m.labels == given.source == trial.target for m in trial.models)
            if same and given.source == given.target:
                found.append(Recipe("barycenter", debias=True, sweeps=20, **knobs))
    return found
