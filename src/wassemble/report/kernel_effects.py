"""What the kernel does: the rule through powers of it, and after its neighbours are shuffled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wassemble.ensemble.learning import FittedRecipe
from wassemble.ensemble.learning.fitting import change_each, sharpen
from wassemble.ensemble.shuffling import label_similarity, shuffle_model
from wassemble.kernels import LabelledKernel, distance_to_identity
from wassemble.labels import LabelSpace
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
    """The metric when scores are shuffled inside the stars of ever more labels.

    Robustness to semantic shuffling: the paper, section 6.3, right panel of its last figure. In
    each sample of each model, scores change places among a label and its nearest by the kernel;
    the mean over several shuffles is kept.
    """
    rule = evidence.find(lambda each: _same_labels(each) is not None)
    kernel = None if rule is None else _same_labels(rule)
    if rule is None or kernel is None:
        return {"omitted": "No rule on the leaderboard has a kernel from labels to themselves."}
    similar = label_similarity(kernel)
    if not (similar > 0).any():
        return {"omitted": "The kernel joins no two labels, so that there are no neighbours."}
    means = {
        "arithmetic mean": evidence.plain_mean(1.0),
        "geometric mean": evidence.plain_mean(0.0),
    }
    rules = {"chosen" if rule is evidence.chosen else "barycenter": rule}
    rules |= {name: each for name, each in means.items() if each is not None}
    sizes = [size for size in _SIZES if size <= len(kernel.target)]
    scores = [_score_shuffled(evidence, rules, kernel.target, similar, size) for size in sizes]
    by_rule = dict(zip(rules, np.transpose(scores).tolist(), strict=True))
    return {
        "sentence": _compare_kept(by_rule, sizes[-1]),
        "kernel": kernel.origin,
        "rule": rule.recipe.name,
        "is_chosen": rule is evidence.chosen,
        "sizes": sizes,
        "scores": by_rule,
        "n_samples": evidence.few.n_samples,
        "n_shuffles": _N_SHUFFLES,
    }


def _score_shuffled(
    evidence: Evidence,
    rules: Mapping[str, FittedRecipe],
    labels: LabelSpace,
    similar: np.ndarray,
    size: int,
) -> np.ndarray:
    """The metric of each rule, mean over shuffles; stars of one leave nothing to draw."""
    scores = []
    for turn in range(1 if size == 1 else _N_SHUFFLES):
        rng = np.random.default_rng([evidence.seed, size, turn])
        moved = [shuffle_model(each, similar, labels, size, rng) for each in evidence.few.models]
        scores.append([evidence.score_few(rule.fuse(moved)) for rule in rules.values()])
    return np.asarray(np.mean(scores, axis=0))


def _compare_kept(by_rule: Mapping[str, list[float]], size: int) -> str:
    kept, *means = (scores[-1] for scores in by_rule.values())
    better = "more" if kept > max(means, default=kept) else "no more"
    each = ", ".join(f"{name} {scores[-1]:.4f}" for name, scores in by_rule.items())
    return f"In stars of {size} labels the barycenter keeps {better} than the means: {each}."


def _same_labels(rule: FittedRecipe) -> LabelledKernel | None:
    """A kernel of the rule between the target labels and themselves."""
    wanted = set(rule.fusion.target or ())
    kernels = rule.fusion.kernel.values() if rule.recipe.transports else ()
    return next((k for k in kernels if set(k.source) == wanted == set(k.target)), None)
