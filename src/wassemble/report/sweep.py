"""The epsilon sweep: the same rule through its kernel raised to powers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wassemble.ensemble.learning import FittedRecipe
from wassemble.ensemble.learning.fitting import change_each, sharpen
from wassemble.kernels import LabelledKernel, distance_to_identity
from wassemble.metrics import entropy
from wassemble.report.evidence import Evidence

__all__ = ["sweep_epsilon"]

_POWERS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


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
    found = []
    for kernel in kernels.values():
        if set(kernel.source) != set(kernel.target):
            return None
        found.append(float(distance_to_identity(kernel.align(kernel.target, kernel.target))))
    return float(np.mean(found))


def _is_binary(kernel: LabelledKernel) -> bool:
    bare = kernel.kernel
    entries = bare.to_sparse().data if bare.is_sparse else bare.to_dense()
    return bool(np.isin(entries, (0, 1)).all())
