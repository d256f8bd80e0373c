"""One sample, fused as the sliders stand: every model, the plain means and the consensus."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble import Fusion, FusionPlan
from wassemble.ensemble.plan import Solved
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.metrics import entropy
from wassemble.solvers import ARITHMETIC, GEOMETRIC, Balanced, Barycenter, Rule, Status, Unbalanced
from wassemble.web.explorer.cases import MASS_PENALTY, Case, Cut
from wassemble.web.explorer.view import View

__all__ = ["Answer", "Knobs", "Line", "fuse_sample", "make_plan"]

# Sweeps until a slider has its answer: enough for most samples, and never a long wait.
_TOLERANCE = 1e-5
_N_SWEEPS = 300

Role = Literal["consensus", "arithmetic mean", "geometric mean", "model"]
_MEANS: dict[Role, Rule] = {"arithmetic mean": ARITHMETIC, "geometric mean": GEOMETRIC}


@dataclass(frozen=True)
class Knobs:
    """Where every slider stands; ``weights`` are on the simplex."""

    epsilon: float
    balanced: bool
    mass_penalty: float
    weights: tuple[float, ...]

    @classmethod
    def of(cls, case: Case, view: View) -> Knobs:
        """The knobs of a view; what it leaves open is chosen as the case suggests."""
        n_models = len(case.table.models)
        raw = view.weight or (1.0,) * n_models
        if len(raw) != n_models:
            names = enumerate_names(model.model for model in case.table.models)
            fail(f"there must be one weight for each of {names}; got {len(raw)}.")
        if not sum(raw) > 0:
            fail("some model must have a weight above 0; got 0 for all.")
        if view.mass == "balanced" and not case.may_be_balanced:
            fail('multi-label scores have no mass in common; got mass "balanced".')
        return cls(
            view.epsilon or case.epsilon,
            view.mass == "balanced" if view.mass else case.is_balanced,
            view.mass_penalty or MASS_PENALTY,
            tuple(weight / sum(raw) for weight in raw),
        )

    def rule(self, *, max_sweeps: int, tolerance: float) -> Barycenter:
        """The barycenter that they stand for."""
        unbalanced = Unbalanced(self.mass_penalty, epsilon=self.epsilon)
        mass = Balanced() if self.balanced else unbalanced
        return Barycenter(mass, max_sweeps=max_sweeps, tolerance=tolerance)


@dataclass(frozen=True, eq=False)
class Line:
    """One histogram, or scores: a model's, a mean or the consensus.

    Attributes
    ----------
    scores : array of shape (n_labels,)
        The consensus and the means of histograms are divided by their mass.
    mass : float
        Before that.
    weight : float, optional
        Of a model.
    """

    name: str
    role: Role
    labels: LabelSpace
    scores: np.ndarray
    mass: float
    weight: float | None = None

    @property
    def has_answer(self) -> bool:
        """Whether anything is said."""
        return bool(self.scores.any())

    @property
    def entropy(self) -> float:
        """In nats, of the scores divided by their sum; nan without an answer."""
        return float(entropy(self.scores))

    def top(self, n_labels: int) -> list[tuple[str, float]]:
        """The largest scores with their labels."""
        order = self._order[:n_labels].tolist()
        return [(self.labels[i], float(self.scores[i])) for i in order if self.scores[i]]

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(-self.scores, kind="stable")


@dataclass(frozen=True, eq=False)
class Answer:
    """What a page shows of a sample, and what its couplings are read from."""

    sample: str
    whole: LabelSpace  # target labels, those that were cut off included
    knobs: Knobs
    lines: list[Line]  # consensus, arithmetic mean, geometric mean, models
    cut: Cut
    plan: FusionPlan
    solved: Solved

    @property
    def consensus(self) -> Line:
        """The barycenter."""
        return self.lines[0]

    @property
    def status(self) -> Status:
        """How the sweeps ended."""
        return Status(int(self.solved.result.statuses[0]))

    @property
    def residual(self) -> float:
        """By how much the last sweep moved the couplings."""
        return float(self.solved.result.residuals[0])

    @property
    def n_sweeps(self) -> int:
        """Sweeps that were done."""
        return int(self.solved.result.sweeps[0])

    @property
    def same_as_mean(self) -> bool:
        """Whether a plain mean has the same first label."""
        consensus, mean = self.lines[0].top(1), self.lines[1].top(1)
        return [label for label, _ in consensus] == [label for label, _ in mean]


def fuse_sample(case: Case, row: int, knobs: Knobs) -> Answer:
    """The sample at ``row``, fused."""
    cut = case.cut(row)
    plan = make_plan(case, cut, knobs, knobs.rule(max_sweeps=_N_SWEEPS, tolerance=_TOLERANCE))
    solved = plan.solve_sample(cut.members, 0)
    raw = np.asarray(solved.result.barycenters[0], dtype=np.float64)
    mass = float(raw.sum())
    shown = raw / mass if case.table.kind == "multiclass" and mass > 0 else raw
    lines = [Line("consensus", "consensus", plan.target, shown, mass)]
    lines += [_mean(case, row, cut, knobs, role) for role in _MEANS]
    for model, weight in zip(case.table.models, knobs.weights, strict=True):
        scores = np.nan_to_num(model.scores[row].astype(np.float64))
        own = Line(model.model, "model", model.labels, scores, float(scores.sum()), weight)
        lines.append(own)
    return Answer(case.table.samples[row], case.target, knobs, lines, cut, plan, solved)


def make_plan(case: Case, cut: Cut, knobs: Knobs, rule: Rule) -> FusionPlan:
    """How the labels that take part are fused."""
    fusion = Fusion(
        rule,
        cut.kernels(knobs.epsilon),
        kind=case.table.kind,
        target=cut.target,
        weights=list(knobs.weights),
    )
    return fusion.plan(cut.members)


def _mean(case: Case, row: int, cut: Cut, knobs: Knobs, role: Role) -> Line:
    """A plain mean by names; through the kernels where no label has a target's name."""
    if case.means_by_name:
        plan = case.mean_plan(_MEANS[role], knobs.weights)
        members = [model.take(slice(row, row + 1)) for model in case.table.models]
    else:
        plan, members = make_plan(case, cut, knobs, _MEANS[role]), cut.members
    chunk = plan.fuse(members)
    return Line(role, role, plan.target, chunk.scores[0], float(chunk.mass[0]))
