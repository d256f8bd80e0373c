"""How similar labels are, at any epsilon: one kernel for all places of a slider.

A kernel K = exp(-cost / epsilon) is made once, at epsilon 1, and its costs are read off. A kernel
without a cost counts as made at epsilon 0.3, the paper's own: there it is as it was given, and
elsewhere it is raised to a power.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.errors import InvalidInputError
from wassemble.kernels import (
    DenseKernel,
    LabelledKernel,
    from_names,
    from_spelling,
    load as load_kernel,
)
from wassemble.kernels.builders.files import FILE_ORIGINS, read_kernel_origin
from wassemble.labels import LabelSpace

OWN_EPSILON = 0.3
# Kernels that come from a file, in the words of the command line.
KERNEL_FILES = (*FILE_ORIGINS, "kernel")
# Source labels from which an epsilon is chosen.
_N_ROWS = 64


@dataclass(frozen=True, eq=False)
class Similarity:
    """Costs between any of the labels that one origin knows."""

    origin: str  # what it is made from, in words
    # From an epsilon to what `Fusion` takes as a kernel: one with names, a dict with one for each
    # model, or a function of two label spaces.
    at: Callable[[Any], Any]
    has_cost: bool = False  # whether its epsilon counts in units of a cost
    n_bytes: int = 0  # size in memory, as far as it comes from a file

    @cached_property
    def _base(self) -> Any:
        return self.at(1.0)

    @property
    def is_shared(self) -> bool:
        """Whether models with the same labels have the same kernel."""
        return not isinstance(self._base, dict)

    @cached_property
    def target(self) -> LabelSpace | None:
        """The labels that it leads to, where it says so."""
        each = [self._base] if self.is_shared else list(self._base.values())
        if not all(isinstance(kernel, LabelledKernel) for kernel in each):
            return None
        return LabelSpace.union(*(kernel.target for kernel in each))

    def costs(self, model: str, source: LabelSpace, target: LabelSpace) -> np.ndarray:
        """Costs from a model's labels to target labels, float32; infinite where never joined."""
        scale = 1.0 if self.has_cost else OWN_EPSILON
        costs: np.ndarray = (-scale * _logs(self._base, model, source, target)).astype(np.float32)
        return costs

    def declared(self, model: str, target: LabelSpace) -> np.ndarray | None:
        """Target labels that a model has words for, where the kernel reaches more; else None."""
        kernel = self._base if self.is_shared else self._base[model]
        known = kernel.declared if isinstance(kernel, LabelledKernel) else None
        return None if known is None else known[kernel.target.places(target)]

    def suggest_epsilon(self, model: str, source: LabelSpace, target: LabelSpace) -> float:
        """The epsilon that the library chooses on its own, or that of the kernel as it is."""
        if not self.has_cost:
            return OWN_EPSILON
        places = np.unique(np.linspace(0, len(source) - 1, min(len(source), _N_ROWS)).astype(int))
        some = LabelSpace(source[i] for i in places.tolist())
        try:
            chosen = _logs(self.at("auto"), model, some, target)
        except InvalidInputError:  # no label has neighbours enough to choose by
            return OWN_EPSILON
        costs = -_logs(self._base, model, some, target)
        used = np.isfinite(costs) & np.isfinite(chosen) & (costs > 1e-3)
        if not used.any():
            return OWN_EPSILON
        return float(f"{np.median(costs[used] / -chosen[used]):.3g}")


def kernel_at(costs: np.ndarray, epsilon: float) -> DenseKernel:
    """K = exp(-costs / epsilon), kept in logarithms where it would underflow."""
    logs = costs.astype(np.float64) / -epsilon
    with np.errstate(under="ignore"):
        kernel = np.exp(logs)
    if ((kernel == 0) & np.isfinite(logs)).any():
        return DenseKernel.from_log(logs)
    return DenseKernel(kernel)


def read_similarity(kernel: str, path: Path | None) -> Similarity:
    """What the files and choices of a page ask for; "" is "names"."""
    if kernel in ("", "names"):
        return NAMES
    if kernel == "spelling":
        return _SPELLING
    if kernel not in KERNEL_FILES:
        fail(
            f"a kernel must be made from one of names, spelling, {', '.join(KERNEL_FILES)}; got"
            f" {kernel!r}."
        )
    if path is None:
        fail(f"a kernel from {kernel} needs a file; got none.", hint="choose one beside it")
    if kernel == "kernel":
        return given_kernel(load_kernel(path))
    origin = read_kernel_origin(kernel, path)
    return Similarity(f"{kernel} in {path.name}", origin.at, origin.has_cost)


def given_kernel(kernel: LabelledKernel) -> Similarity:
    """A kernel that is there already."""
    return Similarity(kernel.origin, lambda epsilon: kernel)


def from_cost(origin: str, build: Callable[..., LabelledKernel], **options: Any) -> Similarity:
    """A builder of `wassemble.kernels` that takes an epsilon, with its other options."""
    return Similarity(
        origin, lambda epsilon: partial(build, epsilon=epsilon, **options), has_cost=True
    )


def _logs(given: Any, model: str, source: LabelSpace, target: LabelSpace) -> np.ndarray:
    """Logs of the entries between two label spaces."""
    kernel = given[model] if isinstance(given, dict) else given
    if not isinstance(kernel, LabelledKernel):
        kernel = kernel(source, target)
    return np.asarray(kernel.align(source, target).to_log_dense(), dtype=np.float64)


NAMES = Similarity("equal names", lambda epsilon: from_names)
_SPELLING = from_cost("spelling", from_spelling)
