"""The samples that models disagree about most, first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wassemble.ensemble.explain import measure_disagreement
from wassemble.inputs import Predictions
from wassemble.metrics.arguments import divide_rows
from wassemble.solvers import ARITHMETIC
from wassemble.web.explorer.answers import Knobs, make_plan
from wassemble.web.explorer.cases import Case, Cut
from wassemble.web.explorer.similarity import NAMES
from wassemble.web.explorer.view import View

__all__ = ["Ranking", "rank_samples"]

# An order needs no last digits.
_N_SWEEPS = 20
# Samples and scores that are compared; what is beyond comes after, in the order of the file.
_N_SAMPLES = 3_000
_N_SCORES = 3_000_000


@dataclass(frozen=True, eq=False)
class Ranking:
    """Every sample, the most disputed first.

    Attributes
    ----------
    order : array of shape (n_samples,)
    disagreement : array of shape (n_samples,)
        nan for samples that were not compared.
    measure : str
        What it is, in words.
    """

    samples: list[str]
    order: np.ndarray
    disagreement: np.ndarray
    measure: str

    @property
    def n_compared(self) -> int:
        """Samples that were compared."""
        return int((~np.isnan(self.disagreement)).sum())

    @cached_property
    def _lower(self) -> list[str]:
        return [sample.casefold() for sample in self.samples]

    def find(self, search: str) -> list[int]:
        """Samples whose id has ``search`` in it, in order."""
        wanted = search.casefold()
        return [row for row in self.order.tolist() if wanted in self._lower[row]]


def rank_samples(case: Case) -> Ranking:
    """The samples of a case, by the transport cost from each model to the consensus.

    Where names alone join labels, or label sets are so large that they are cut, it is the total
    variation between each model and the plain mean.
    """
    knobs = Knobs.of(case, View())
    n_samples = len(case.table.samples)
    found = np.full(n_samples, np.nan)
    n_labels = sum(len(model.labels) for model in case.table.models)
    n_compared = min(n_samples, _N_SAMPLES, max(1, _N_SCORES // n_labels))
    members = [model.take(slice(0, n_compared)) for model in case.table.models]
    measure = "transport cost from each model to the consensus, in units of epsilon"
    if case.similarity is NAMES or case.is_cut:
        measure = "total variation between each model and the plain mean"
        found[:n_compared] = _variation(case, members, knobs)
    else:
        rule = knobs.rule(max_sweeps=_N_SWEEPS, tolerance=1e-3)
        plan = make_plan(case, Cut(members, case.target, case.costs, 0.0), knobs, rule)
        found[:n_compared] = measure_disagreement(plan, members).score
    order = np.argsort(-np.nan_to_num(found, nan=-1.0), kind="stable")
    return Ranking(case.table.samples, order, found, measure)


def _variation(case: Case, members: list[Predictions], knobs: Knobs) -> np.ndarray:
    """Mean total variation between each model and the plain mean, label by label."""
    if not case.means_by_name:
        return np.full(members[0].n_samples, np.nan)
    plan = case.mean_plan(ARITHMETIC, knobs.weights)
    mean = divide_rows(np.nan_to_num(plan.fuse(members).scores).astype(np.float64))
    ready = plan.prepare(members)
    total, count = np.zeros(len(mean)), np.zeros(len(mean))
    for index, member in enumerate(plan.members):
        image = divide_rows(plan.carry(member, ready.scores[index]).astype(np.float64))
        total += np.where(ready.answered[index], np.abs(image - mean).sum(axis=1) / 2, 0)
        count += ready.answered[index]
    found: np.ndarray = total / np.maximum(count, 1)
    return found
