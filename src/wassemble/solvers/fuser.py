"""A rule made ready: every check and choice once, then sweeps alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from wassemble._arrays import Array
from wassemble._checks import check_count, fail
from wassemble.kernels import Kernel, as_kernel
from wassemble.solvers.rules import Fused, Rule, is_list_of_kernels

__all__ = ["Fuser", "read_sizes"]


class Fuser:
    """A rule with its kernels and weights; `Rule.prepare` makes one."""

    def __init__(self, rule: Rule, kernels: Any, weights: Any) -> None:
        self.rule = rule
        self._kernels = kernels
        self._weights = weights

    def run(self, scores: Any) -> Fused:
        """The consensus with its evidence, as `Rule.fuse` gives it."""
        return self.rule.fuse(scores, self._kernels, weights=self._weights, holds="scores")

    def __call__(self, scores: Any) -> Array:
        """The consensus of one sample, or of many."""
        fused = self.run(scores)
        return fused.scores[0] if fused.drops_sample_axis else fused.scores


def read_sizes(kernels: Any, weights: Any, n_models: int | None) -> list[Kernel]:
    """One kernel per model."""
    if is_list_of_kernels(kernels):
        each = {id(kernel): as_kernel(kernel) for kernel in kernels}
        return [each[id(kernel)] for kernel in kernels]
    if n_models is None:
        if weights is None:
            fail(
                "`n_models` must be given where neither kernels nor weights tell; got one kernel"
                " for all models and no weights."
            )
        n_models = len(weights)
    return [as_kernel(kernels)] * check_count(n_models, "n_models")


def prepare(rule: Rule, kernels: Any, weights: Any, *, n_models: int | None, dtype: Any) -> Fuser:
    """See `Rule.prepare`."""
    if np.dtype(dtype) not in (np.float32, np.float64):
        fail(f"`dtype` must be float32 or float64; got {dtype!r}.")
    return Fuser(rule, read_sizes(kernels, weights, n_models), weights)
