"""Rules that give hidden labels their mass back, each tuned on validation samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from paper.expansion.tasks import Expansion
from paper.record.judging import tune
from wassemble.ensemble import Fusion
from wassemble.kernels import LabelledKernel, SparseKernel
from wassemble.solvers import ARITHMETIC, GEOMETRIC, Barycenter, PowerMean, Rule, Unbalanced

FLOOR = 1e-6
"""What a log-likelihood takes at least: some rules give a hidden label nothing."""


@dataclass(frozen=True)
class Grid:
    """What is tried."""

    orders: tuple[float, ...] = (0.25, 0.5, 2.0)
    # What a label passes on to hidden ones for 1 that it keeps: all of it evenly or to each
    # that it is nearest to; and times similarity, in kernels.
    given: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    kernel_given: tuple[float, ...] = (0.03, 0.1, 1.0, 5.0, 20.0)
    epsilons: tuple[float, ...] = (0.1, 0.2)
    leftover: float = 0.05  # share of its weight that a model keeps on labels it does not know
    exponents: tuple[float, ...] = (0.9, 0.97)  # mass_penalty / (mass_penalty + epsilon)
    n_sweeps: int = 3


Consensus = Callable[[Any], np.ndarray]
"""What a rule makes of some rows, given by an index."""


class Rules:
    """Consensus of each rule over the rows of a task, with its knobs in words."""

    def __init__(self, task: Expansion, grid: Grid) -> None:
        self.task, self.grid = task, grid
        self.knobs: dict[str, str] = {}
        self.validation: dict[str, float] = {}  # of what was tuned
        self._tuning_rows = np.unique(task.row[~task.is_test])

    @cached_property
    def whole(self) -> np.ndarray:
        """The mean of the models with nothing hidden."""
        return Fusion(ARITHMETIC).run(self.task.whole).consensus.scores

    @cached_property
    def alone(self) -> dict[str, np.ndarray]:
        """Each model over the target labels; 0 where it knows none."""
        fusion = Fusion(ARITHMETIC, target=self.task.target, leftover=1)
        return {model.model: fusion.run([model]).consensus.scores for model in self.task.models}

    def all(self) -> dict[str, np.ndarray]:
        """Every rule, tuned."""
        grid, rows = self.grid, slice(None)
        seen = {
            name: self._validation(each[self._tuning_rows]) for name, each in self.alone.items()
        }
        best = max(seen, key=seen.__getitem__)
        masses = {each: Unbalanced(each / (1 - each), epsilon=1.0) for each in grid.exponents}
        barycenters: dict[str, Rule] = {
            f", f {each:g}": Barycenter(mass, max_sweeps=grid.n_sweeps, tolerance=None)
            for each, mass in masses.items()
        }
        tried: dict[str, dict[str, Consensus]] = {
            "power mean": {
                f"order {order:g}": self._fusion(PowerMean(order), leftover=0)
                for order in grid.orders
            },
            "spread evenly": {
                f"given {given:g}": partial(self._spread, given) for given in grid.given
            },
            "nearest neighbour": self._through(self._nearest_kernels(), {"": ARITHMETIC}),
            "linear through K": self._through(self._kernels, {"": ARITHMETIC}),
            "geometric mean through K": self._through(self._kernels, {"": GEOMETRIC}),
            "barycenter": self._through(self._kernels, barycenters),
        }
        tuned = {name: self._best(name, each) for name, each in tried.items()}
        return {
            f"best single model ({best})": self.alone[best],
            "mean, unknown is 0": self._fusion(ARITHMETIC, leftover=1)(rows),
            "mean of those who know": self._fusion(ARITHMETIC, leftover=0)(rows),
            "geometric mean of those who know": self._fusion(GEOMETRIC, leftover=0)(rows),
            "power mean of those who know": tuned.pop("power mean"),
            **tuned,
        }

    def _validation(self, scores: np.ndarray) -> float:
        """Mean log-likelihood of the validation samples, from the scores of their rows."""
        task, samples = self.task, ~self.task.is_test
        places = np.searchsorted(self._tuning_rows, task.row[samples])
        return float(np.log(np.maximum(scores[places, task.truth[samples]], FLOOR)).mean())

    def _best(self, name: str, tried: dict[str, Consensus]) -> np.ndarray:
        words, seen = tune(
            list(tried), lambda words: tried[words](self._tuning_rows), self._validation
        )
        self.knobs[name], self.validation[name] = words, self._validation(seen)
        return tried[words](slice(None))

    def _fusion(self, rule: Rule, **options: Any) -> Consensus:
        fusion = Fusion(rule, target=self.task.target, **options)
        models = self.task.models
        return lambda rows: fusion.run([model.take(rows) for model in models]).consensus.scores

    def _through(
        self, kernels: dict[str, list[LabelledKernel]], rules: Mapping[str, Rule]
    ) -> dict[str, Consensus]:
        return {
            of_kernel + of_rule: self._fusion(
                rule, kernel=kernels[of_kernel], leftover=self.grid.leftover
            )
            for of_kernel, (of_rule, rule) in product(kernels, rules.items())
        }

    def _spread(self, given: float, rows: Any) -> np.ndarray:
        """Every model gives as much to each label that it does not know."""
        completed = []
        for own, known in zip(self.alone.values(), self.task.is_known, strict=True):
            each = given / max((~known).sum(), 1)
            completed.append(np.where(known, own[rows], each) / (1 + given))
        weights = np.where(self.task.is_known, 1.0, self.grid.leftover)
        mean = ARITHMETIC.fuse(completed, weights=weights / weights.sum(axis=0)).scores
        return np.asarray(mean / mean.sum(axis=1, keepdims=True))

    def _nearest_kernels(self) -> dict[str, list[LabelledKernel]]:
        nearest = [nearest_known(self.task.similarity, known) for known in self.task.is_known]
        return {
            f"given {given:g}": self._labelled([given * each for each in nearest])
            for given in self.grid.given
        }

    @cached_property
    def _kernels(self) -> dict[str, list[LabelledKernel]]:
        """To hidden labels alone, beside the identity; and the paper's, to near labels too."""
        kernels = {}
        for epsilon in self.grid.epsilons:
            similar = self.task.similarity.power(1 / epsilon)
            towards = [kernel_to_hidden(similar, known) for known in self.task.is_known]
            for given in self.grid.kernel_given:
                kernels[f"epsilon {epsilon:g}, {given:g} to hidden labels"] = self._labelled(
                    [given * each for each in towards]
                )
            beside = sp.csr_array(similar - sp.eye_array(similar.shape[0]))
            kernels[f"epsilon {epsilon:g}, to all labels"] = self._labelled(
                [beside[known] for known in self.task.is_known]
            )
        return kernels

    def _labelled(self, beyond: Sequence[sp.csr_array]) -> list[LabelledKernel]:
        """A kernel per model: the identity, and what goes beyond it."""
        own = sp.eye_array(len(self.task.target), format="csr", dtype=np.float32)
        return [
            LabelledKernel(
                SparseKernel(sp.csr_array(own[known] + further).astype(np.float32)),
                model.labels,
                self.task.target,
                "similarity of labels",
                declared=known,
            )
            for model, known, further in zip(
                self.task.models, self.task.is_known, beyond, strict=True
            )
        ]


def kernel_to_hidden(similarity: sp.csr_array, is_known: np.ndarray) -> sp.csr_array:
    """From known labels to hidden ones: rows of known labels, columns of hidden ones filled."""
    hidden = sp.diags_array((~is_known).astype(similarity.dtype))
    return sp.csr_array(similarity[is_known] @ hidden)


def nearest_known(similarity: sp.csr_array, is_known: np.ndarray) -> sp.csr_array:
    """1 for each hidden label and the known label that is most similar to it, else 0."""
    towards = kernel_to_hidden(similarity, is_known).tocsc()
    best = np.asarray(towards.argmax(axis=0)).ravel()
    filled = np.flatnonzero(np.diff(towards.indptr) > 0)
    return sp.csr_array((np.ones(len(filled)), (best[filled], filled)), shape=towards.shape)
