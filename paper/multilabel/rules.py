"""Rules that fuse multi-label scores, and their tuning on validation samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol, TypeVar

import numpy as np

from paper.record.judging import Judge
from wassemble.kernels import (
    DenseKernel,
    IdentityKernel,
    Kernel,
    from_cost,
    top_labels,
)
from wassemble.solvers import (
    ARITHMETIC,
    Barycenter,
    BarycenterResult,
    PowerMean as ArrayMean,
    Unbalanced,
    solve_barycenter,
)

__all__ = [
    "Diagonal",
    "GatedMean",
    "Generic",
    "PowerMean",
    "Rule",
    "Single",
    "diagonals",
    "gated_means",
    "generics",
    "tune",
]


class Rule(Protocol):
    """Scores of several models in, fused scores out."""

    @property
    def settings(self) -> str:
        """What was chosen, in words."""

    def fuse(self, scores: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """From ``(n_models, n_samples, n_labels)`` to ``(n_samples, n_labels)``."""


@dataclass(frozen=True)
class Single:
    """One model alone."""

    name: str
    place: int

    @property
    def settings(self) -> str:
        return self.name

    def fuse(self, scores: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        found: np.ndarray = scores[self.place]
        return found


@dataclass(frozen=True)
class PowerMean:
    """Order 1 is the arithmetic mean, 0 the geometric one."""

    order: float

    @property
    def settings(self) -> str:
        return f"order {self.order:g}"

    def fuse(self, scores: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        found: np.ndarray = ArrayMean(self.order).fuse(scores, weights=weights).consensus
        return found


@dataclass(frozen=True)
class GatedMean:
    """The arithmetic mean, times ``floor`` where a label is in no model's ``n_top`` best."""

    n_top: int
    floor: float

    @property
    def settings(self) -> str:
        return f"top {self.n_top}, floor {self.floor:g}"

    def fuse(self, scores: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        gate = top_labels(scores, n_top=self.n_top, floor=self.floor).diagonal
        found: np.ndarray = gate * ARITHMETIC.fuse(scores, weights=weights).consensus
        return found


@dataclass(frozen=True)
class Diagonal:
    """Unbalanced barycenter with a diagonal kernel, which moves nothing between labels.

    The kernel is given as it is, so only mass_penalty / epsilon counts: epsilon is 1.

    Attributes
    ----------
    n_top : int or None
        How many labels of each model are let through; None is K = I.
    floor : float
        The entry of every other label, the paper's zeta.
    mean_scores : bool
        Top labels have the mean of the models' scores, as in the paper; else 1, a gate and
        nothing more.
    sweeps : int or None
        None is the fixed point, in closed form.
    """

    n_top: int | None
    floor: float
    mass_penalty: float
    mean_scores: bool = False
    sweeps: int | None = None

    @property
    def settings(self) -> str:
        gate = "" if self.n_top is None else f"top {self.n_top}, zeta {self.floor:g}, "
        return f"{gate}mass_penalty {self.mass_penalty:g} epsilon"

    def fuse(self, scores: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        kernel: Kernel = IdentityKernel(scores.shape[-1])
        if self.n_top is not None:
            kernel = top_labels(
                scores, n_top=self.n_top, floor=self.floor, mean_scores=self.mean_scores
            )
        mass = Unbalanced(self.mass_penalty, epsilon=1.0)
        found: np.ndarray = _solve(scores, kernel, mass, self.sweeps, weights).barycenter
        return found


@dataclass(frozen=True, eq=False)
class Generic:
    """Unbalanced barycenter with K = exp(-cost / epsilon), one kernel for all samples.

    Attributes
    ----------
    penalty_ratio : float
        mass_penalty / epsilon.
    sweeps : int or None
        None runs to convergence.
    """

    cost: np.ndarray
    epsilon: float
    penalty_ratio: float
    sweeps: int | None

    @property
    def settings(self) -> str:
        return f"epsilon {self.epsilon:g}, mass_penalty {self.penalty_ratio:g} epsilon"

    def kernel(self) -> DenseKernel:
        """K itself."""
        return from_cost(self.cost, self.epsilon)

    def solve(self, scores: np.ndarray, weights: np.ndarray | None = None) -> BarycenterResult:
        """The barycenter with its evidence."""
        mass = Unbalanced(self.penalty_ratio * self.epsilon, epsilon=self.epsilon)
        return _solve(scores, self.kernel(), mass, self.sweeps, weights)

    def fuse(self, scores: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        found: np.ndarray = self.solve(scores, weights).barycenter
        return found


def _solve(
    scores: np.ndarray,
    kernel: Kernel,
    mass: Unbalanced,
    sweeps: int | None,
    weights: np.ndarray | None,
) -> BarycenterResult:
    return solve_barycenter(
        scores,
        kernel,
        Barycenter(
            mass,
            max_sweeps=1000 if sweeps is None else sweeps,
            tolerance=1e-4 if sweeps is None else None,
        ),
        weights=weights,
    )


def gated_means(n_tops: Sequence[int], floors: Sequence[float]) -> list[GatedMean]:
    """Of each gate."""
    return [GatedMean(n_top, floor) for n_top, floor in product(n_tops, floors)]


def diagonals(
    n_tops: Sequence[int | None],
    floors: Sequence[float],
    mass_penalties: Sequence[float],
    *,
    mean_scores: bool = False,
) -> list[Diagonal]:
    """Of each gate and mass_penalty, at the fixed point."""
    every = product(n_tops, floors, mass_penalties)
    return [Diagonal(*each, mean_scores=mean_scores) for each in every]


def generics(
    cost: np.ndarray, epsilons: Sequence[float], penalty_ratios: Sequence[float], sweeps: int
) -> list[Generic]:
    """Of each epsilon and mass_penalty."""
    return [Generic(cost, *each, sweeps) for each in product(epsilons, penalty_ratios)]


_R = TypeVar("_R", bound=Rule)


def tune(
    rules: Sequence[_R], scores: np.ndarray, judge: Judge, step: Callable[[], None]
) -> dict[_R, float]:
    """The judge's figure for each rule, best first; of equal ones the first."""
    found = {}
    for rule in rules:
        found[rule] = judge.score(rule.fuse(scores))
        step()
    return dict(sorted(found.items(), key=lambda each: -each[1]))
