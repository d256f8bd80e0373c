"""What the kernel does: the rule through powers of it, and after its neighbours are shuffled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wassemble.ensemble.learning import FittedRecipe
from wassemble.ensemble.learning.fitting import change_each, sharpen
from wassemble.ensemble.shuffling import group_labels, label_similarity, shuffle_inside
from wassemble.kernels import LabelledKernel, distance_to_identity
from wassemble.metrics import entropy
from wassemble.report.evidence import Evidence

_POWERS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_SIZES = (1, 2, 3, 5, 10)
_N_SHUFFLES = 3


def sweep_epsilon(evidence: Evidence) -> dict[str, Any]:
    """Metric, entropy of the consensus and distance to the identity, by power of the kernel.

    K = exp(-C / epsilon) to the power s is exp(-C s / epsilon): twice the power is half the
    epsilon.
    """
    rule = evidence.through_kernel
    if rule is None:
        return {"omitted": "No barycenter through a kernel is on the leaderboard."}
    if all(_is_binary(kernel) for kernel in rule.fusion.kernel.values()):
        return {"omitted": "The kernel holds only 0 and 1, which no power changes."}
    powers = sorted({*_POWERS, rule.recipe.sharpness})
    points = [_point(evidence, _raised(rule, power), power) for power in powers]
    mean = evidence.plain_mean(1.0)
    return {
        "rule": rule.recipe.name,
        "is_chosen": rule is evidence.chosen,
        "n_samples": evidence.few.n_samples,
        "own_power": rule.recipe.sharpness,
        "points": points,
        "mean_score": None if mean is None else evidence.score_few(mean.fuse(evidence.few.models)),
    }


def _point(evidence: Evidence, rule: FittedRecipe, power: float) -> dict[str, Any]:
    scores = rule.fuse(evidence.few.models)
    each = entropy(scores)
    return {
        "power": power,
        "score": evidence.score_few(scores),
        "entropy": float(np.nanmean(each)) if (~np.isnan(each)).any() else None,
        "distance_to_identity": _distance(rule.fusion.kernel),
    }


def _raised(rule: FittedRecipe, power: float) -> FittedRecipe:
    """The rule through its kernel as it was offered, to a power."""
    further = partial(sharpen, power=power / rule.recipe.sharpness)
    return replace(
        rule, fusion=rule.fusion.replace(kernel=change_each(rule.fusion.kernel, further))
    )


def _distance(kernels: Mapping[str, LabelledKernel]) -> float | None:
    """The paper's ||K - I||_F, mean over models; None where some kernel has other labels."""
    distances = []
    for kernel in kernels.values():
        if set(kernel.source) != set(kernel.target):
            return None
        distances.append(float(distance_to_identity(kernel.align(kernel.target, kernel.target))))
    return float(np.mean(distances))


def _is_binary(kernel: LabelledKernel) -> bool:
    bare = kernel.kernel
    entries = bare.to_sparse().data if bare.is_sparse else bare.to_dense()
    return bool(np.isin(entries, (0, 1)).all())


def shuffle_neighbours(evidence: Evidence) -> dict[str, Any]:
    """The metric when scores are shuffled inside neighbourhoods of ever more labels.

    Robustness to semantic shuffling: the paper, section 6.3, right panel of its last figure.
    Labels are put into groups of neighbours by the kernel. In each sample of each model, scores
    of a group are shuffled; the mean over several shuffles is kept.
    """
    rule = evidence.find(lambda each: _same_labels(each) is not None)
    kernel = None if rule is None else _same_labels(rule)
    if rule is None or kernel is None:
        return {"omitted": "No rule on the leaderboard has a kernel from labels to themselves."}
    others = [("arithmetic mean", evidence.plain_mean(1.0))]
    others.append(("geometric mean", evidence.plain_mean(0.0)))
    title = "chosen" if rule is evidence.chosen else "barycenter"
    rules = [(title, rule), *((name, each) for name, each in others if each is not None)]
    similar = label_similarity(kernel)
    if not (similar > 0).any():
        return {"omitted": "The kernel joins no two labels, so that there are no neighbours."}
    sizes = [size for size in _SIZES if size <= len(kernel.target)]
    by_rule: dict[str, list[float]] = {name: [] for name, _ in rules}
    for size in sizes:
        groups = [[kernel.target[i] for i in group] for group in group_labels(similar, size)]
        scores = np.zeros(len(rules))
        n_shuffles = 1 if size == 1 else _N_SHUFFLES
        for turn in range(n_shuffles):
            rng = np.random.default_rng([evidence.seed, size, turn])
            shuffled = shuffle_inside(evidence.few.models, groups, rng)
            scores += [evidence.score_few(each.fuse(shuffled)) for _, each in rules]
        for (name, _), score in zip(rules, scores / n_shuffles, strict=True):
            by_rule[name].append(float(score))
    kept, *means = (scores[-1] for scores in by_rule.values())
    better = "more" if kept > max(means, default=kept) else "no more"
    return {
        "sentence": (
            f"In neighbourhoods of {sizes[-1]} labels the barycenter keeps {better} than the"
            f" means: {', '.join(f'{name} {scores[-1]:.4f}' for name, scores in by_rule.items())}."
        ),
        "kernel": kernel.origin,
        "rule": rule.recipe.name,
        "is_chosen": rule is evidence.chosen,
        "sizes": sizes,
        "scores": by_rule,
        "n_samples": evidence.few.n_samples,
        "n_shuffles": _N_SHUFFLES,
    }


def _same_labels(rule: FittedRecipe) -> LabelledKernel | None:
    """A kernel of the rule between the target labels and themselves."""
    wanted = set(rule.fusion.target or ())
    kernels = rule.fusion.kernel.values() if rule.recipe.transports else ()
    return next((k for k in kernels if set(k.source) == wanted == set(k.target)), None)
