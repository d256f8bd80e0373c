"""Exact barycenters: what those on a line and on a tree of labels share."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from wassemble._arrays import Array, namespace, without_gradient
from wassemble._checks import fail
from wassemble.solvers.carried_means import fuse_carried
from wassemble.solvers.problem import FusionProblem
from wassemble.solvers.rules import CarriedRule, Fused
from wassemble.solvers.weights import with_three_axes

# Numbers that are sorted together, with several arrays as large beside them.
_SORTED = 2**18


class ExactBarycenter(CarriedRule):
    """A barycenter that needs no epsilon: distances between labels are those of a line or a tree.

    Models are carried to the target labels by their kernels first. Transport moves histograms:
    each model is divided by its mass, and the consensus gets the weighted mean of the masses. A
    model without mass says nothing of where it lies.
    """

    fuses_parts: ClassVar[bool] = False
    weighs_labels: ClassVar[bool] = False

    @abstractmethod
    def _find(self, shares: Array, weights: Array) -> Array:
        """The barycenter of histograms, (n_models, n_rows, n_target), to (n_rows, n_target).

        ``weights`` are (n_models, 1 or n_rows), on the simplex over models.
        """

    @abstractmethod
    def couple(self, model: np.ndarray, consensus: np.ndarray) -> np.ndarray:
        """An optimal coupling of two histograms, (n_target, n_target): from row to column."""

    @abstractmethod
    def distances(self, models: np.ndarray, consensus: np.ndarray) -> np.ndarray:
        """W1 of histograms, row by row: how far their mass must move, on the mean."""

    @abstractmethod
    def _check_labels(self, n_target: int) -> None:
        """Refuse labels that the rule was not made for."""

    def pose(self, histograms: Any, kernels: Any, **options: Any) -> FusionProblem:
        problem = super().pose(histograms, kernels, **options)
        self._check_labels(problem.n_target)
        if with_three_axes(problem.weights).shape[2] > 1:
            fail(
                "`weights` must be one per model: mass that moves belongs to no label; got weights"
                " per target label."
            )
        return problem

    def _solve(self, problem: FusionProblem, **options: Any) -> Fused:
        return fuse_carried(problem, self._combine, size=_SORTED, **options)

    def _combine(self, images: Array, weights: Array) -> Array:
        xp = namespace(images)
        masses = xp.sum(images, axis=-1)  # (n_models, n_rows)
        has_mass = masses > 0
        shares = images / xp.where(has_mass, masses, 1.0)[..., None]
        votes = weights[..., 0]
        total = xp.sum(votes * masses, axis=0)
        if not all_hold(has_mass):
            votes = xp.where(has_mass, votes, 0.0)
            sums = xp.sum(votes, axis=0)
            votes = votes / xp.where(sums > 0, sums, 1.0)
        return xp.astype(self._find(shares, votes), images.dtype, copy=False) * total[:, None]


def distribution_functions(shares: Array) -> Array:
    """Mass at or before each label but the last, where it is 1: one number per gap."""
    xp = namespace(shares)
    # Small masses at the far end are differences of numbers near 1.
    return xp.cumulative_sum(shares[..., :-1], axis=-1, dtype=xp.float64)


def has_numbers(array: Array) -> bool:
    """Whether there are numbers to look at; a head is drawn before there are any."""
    return hasattr(array, "all")


def all_hold(flags: Array) -> bool:
    """Whether all are known to be true."""
    return has_numbers(flags) and bool(flags.all())


def are_equal(weights: Array) -> bool:
    """Whether all models are known to count alike, on all rows."""
    weights = without_gradient(weights)
    return has_numbers(weights) and all_hold(weights == weights[0, 0])
