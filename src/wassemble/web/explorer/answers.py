"""What a view shows of a sample: models, means and the consensus, flows of mass, neighbours.

Also which samples the models disagree about most.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from wassemble._checks import fail
from wassemble.ensemble import FusionPlan
from wassemble.ensemble.explain import find_contributions, measure_disagreement
from wassemble.ensemble.plan import Solved
from wassemble.labels import LabelSpace, enumerate_names
from wassemble.metrics import entropy
from wassemble.metrics.arguments import divide_rows
from wassemble.solvers import ARITHMETIC, GEOMETRIC, Balanced, Barycenter, Rule, Status, Unbalanced
from wassemble.web.explorer.cases import MASS_PENALTY, Case, Cut
from wassemble.web.explorer.similarity import NAMES
from wassemble.web.explorer.view import View

# Sweeps until a slider has its answer: enough for most samples, and never a long wait.
_TOLERANCE = 1e-5
_N_SWEEPS = 300
# What a picture can show; the rest is added up.
_N_FLOWS = 12
_N_NEIGHBORS = 12
# Samples and scores that are compared; what is beyond comes after, in the order of the file.
_N_SAMPLES = 3_000
_N_SCORES = 3_000_000

Role = Literal["consensus", "arithmetic mean", "geometric mean", "model"]
MEANS: dict[Role, Rule] = {"arithmetic mean": ARITHMETIC, "geometric mean": GEOMETRIC}


@dataclass(frozen=True, eq=False)
class Line:
    """One histogram, or scores: a model's, a mean or the consensus."""

    name: str
    role: Role
    labels: LabelSpace
    scores: np.ndarray  # (n_labels,); the consensus and means of histograms made histograms
    mass: float  # before that
    weight: float | None = None  # of a model

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
    epsilon: float  # of the kernel
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


def fuse_sample(case: Case, row: int, view: View) -> Answer:
    """The sample at ``row``, fused as a view has it."""
    cut = case.cut(row)
    plan = plan_view(case, cut, view, max_sweeps=_N_SWEEPS, tolerance=_TOLERANCE)
    solved = plan.solve_sample(cut.members, 0)
    raw = np.asarray(solved.result.barycenters[0], dtype=np.float64)
    mass = float(raw.sum())
    shown = plan.rule.to_histograms(raw[None])[0] if case.table.kind == "multiclass" else raw
    epsilon = view.epsilon or case.epsilon
    lines = [Line("consensus", "consensus", plan.target, shown, mass)]
    over = case.take(slice(row, row + 1), by_name=True) if case.means_by_name else cut
    for role, rule in MEANS.items():
        mean = case.plan(over, rule, epsilon).with_weights(plan.weights)
        chunk = mean.fuse(over.members)
        lines.append(Line(role, role, mean.target, chunk.scores[0], float(chunk.mass[0])))
    for model, weight in zip(case.table.models, plan.weights.tolist(), strict=True):
        scores = np.nan_to_num(model.scores[row].astype(np.float64))
        own = Line(model.model, "model", model.labels, scores, float(scores.sum()), weight)
        lines.append(own)
    return Answer(case.table.samples[row], case.target, epsilon, lines, cut, plan, solved)


def plan_view(case: Case, cut: Cut, view: View, **ending: Any) -> FusionPlan:
    """How a view has the labels of a cut fused; what it leaves open is as the case suggests.

    ``ending`` is when the sweeps of the barycenter end.
    """
    epsilon = view.epsilon or case.epsilon
    mass: Balanced | Unbalanced = Unbalanced(view.mass_penalty or MASS_PENALTY, epsilon=epsilon)
    if view.mass == "balanced":
        mass = Balanced()
    models = case.table.models
    weights = np.array(view.weight or (1.0,) * len(models))
    if len(weights) != len(models):
        names = enumerate_names(model.model for model in models)
        fail(f"there must be one weight for each of {names}; got {len(weights)}.")
    if not weights.any():
        fail("some model must have a weight above 0; got 0 for all.")
    plan = case.plan(cut, Barycenter(mass, **ending), epsilon)
    return plan.with_weights(weights / weights.sum())


@dataclass(frozen=True)
class Flow:
    """Mass from a label of a model to a label of the consensus.

    ``model`` is empty where the label is the consensus' own. ``label`` is empty for the rest,
    all that is too small to be shown.
    """

    model: str
    label: str
    mass: float


@dataclass(frozen=True)
class Flows:
    """Everything that came to a consensus label, or that went from a model's label."""

    model: str  # whose label it is; empty for the consensus
    label: str
    mass: float  # in the consensus; of a model's label, what of it went there
    flows: tuple[Flow, ...]


@dataclass(frozen=True)
class Neighbor:
    """A label that a kernel joins with another, and how similar it makes them."""

    model: str  # whose kernel; empty if all have the same
    label: str
    similarity: float


def find_flows(answer: Answer, label: str, model: str = "") -> Flows:
    """The flows of a label of the consensus, or of ``model``."""
    return _flows_from(answer, label, model) if model else _flows_into(answer, label)


def _flows_into(answer: Answer, label: str) -> Flows:
    if label in answer.whole and label not in answer.plan.target:
        return Flows("", label, 0.0, ())  # it was cut off
    place = answer.plan.target.place(label)
    mass = float(answer.consensus.scores[place])
    parts = find_contributions(answer.plan, answer.solved, place, n_largest=_N_FLOWS)
    flows = [Flow(part.model, part.label, mass * part.percent / 100) for part in parts]
    return Flows("", label, mass, _with_rest(flows, mass))


def _flows_from(answer: Answer, label: str, model: str) -> Flows:
    names = [member.model for member in answer.plan.members]
    if model not in names:
        fail(f"the model must be one of {', '.join(names)}; got {model!r}.")
    line = next(each for each in answer.lines if each.role == "model" and each.name == model)
    labels = answer.plan.members[names.index(model)].labels
    if label in line.labels and label not in labels:
        return Flows(model, label, 0.0, ())  # it was cut off
    row = labels.place(label)
    result, voting = answer.solved.result, answer.solved.voting.tolist()
    index = voting.index(names.index(model)) if names.index(model) in voting else None
    if index is None or index not in result.problem.model_order:
        return Flows(model, label, 0.0, ())  # it has no say here
    own = np.asarray(result.problem.weights_of(0))
    couplings = {at: own[at] * np.asarray(result.coupling(at)) for at in result.problem.model_order}
    # Shares of what arrived, as in `_flows_into`: before convergence the two differ.
    arrived = sum(coupling.sum(axis=0) for coupling in couplings.values())
    shares = np.divide(
        couplings[index][row], arrived, out=np.zeros(len(arrived)), where=arrived > 0
    )
    sent = shares * answer.consensus.scores
    order = np.argsort(-sent, kind="stable")[:_N_FLOWS]
    flows = [Flow("", answer.plan.target[j], float(sent[j])) for j in order.tolist() if sent[j] > 0]
    return Flows(model, label, float(sent.sum()), _with_rest(flows, float(sent.sum())))


def _with_rest(flows: list[Flow], mass: float) -> tuple[Flow, ...]:
    rest = mass - sum(flow.mass for flow in flows)
    return (*flows, Flow("", "", rest)) if rest > 1e-9 * mass else tuple(flows)


def find_neighbors(case: Case, answer: Answer, label: str, model: str = "") -> list[Neighbor]:
    """The labels that the kernel makes most similar to a target label, or to a model's label."""
    models = [each for each in case.table.models if model in ("", each.model)]
    neighbors: list[Neighbor] = []
    seen: set[LabelSpace] = set()
    for each in models:
        if case.similarity.is_shared and each.labels in seen:
            continue
        seen.add(each.labels)
        names = case.target if model else each.labels
        costs = case.costs_of(each, label, is_target=not model)
        with np.errstate(under="ignore"):
            similarities = np.exp(costs.astype(np.float64) / -answer.epsilon)
        best = np.argsort(-similarities, kind="stable")[:_N_NEIGHBORS]
        neighbors += [
            Neighbor(each.model, names[i], float(similarities[i]))
            for i in best.tolist()
            if similarities[i] > 0
        ]
    if len(seen) == 1 and case.similarity.is_shared:
        neighbors = [Neighbor("", each.label, each.similarity) for each in neighbors]
    return sorted(neighbors, key=lambda each: -each.similarity)[:_N_NEIGHBORS]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Every sample, the most disputed first."""

    order: np.ndarray  # (n_samples,)
    disagreement: np.ndarray  # (n_samples,); nan for samples that were not compared
    measure: str  # what it is, in words

    @property
    def n_compared(self) -> int:
        """Samples that were compared."""
        return int((~np.isnan(self.disagreement)).sum())


def get_ranking(case: Case) -> Ranking:
    """The ranking of a case, made once."""
    ranking: Ranking = case.rankings.get("ranking", lambda: rank_samples(case))
    return ranking


def rank_samples(case: Case) -> Ranking:
    """The samples of a case, by the transport cost from each model to the consensus.

    Where names alone join labels, or label sets are so large that they are cut, it is the total
    variation between each model and the plain mean.
    """
    n_samples = len(case.table.samples)
    disagreement = np.full(n_samples, np.nan)
    n_labels = sum(len(model.labels) for model in case.table.models)
    n_compared = min(n_samples, _N_SAMPLES, max(1, _N_SCORES // n_labels))
    compared = slice(0, n_compared)
    if case.similarity is NAMES or case.is_cut:
        measure = "total variation between each model and the plain mean"
        if case.means_by_name:
            disagreement[compared] = _variation(case, case.take(compared, by_name=True))
    else:
        measure = "transport cost from each model to the consensus, in units of epsilon"
        cut = case.take(compared)
        plan = plan_view(case, cut, View(), max_sweeps=20, tolerance=1e-3)  # no last digits
        disagreement[compared] = measure_disagreement(plan, cut.members).score
    order = np.argsort(-np.nan_to_num(disagreement, nan=-1.0), kind="stable")
    return Ranking(order, disagreement, measure)


def _variation(case: Case, cut: Cut) -> np.ndarray:
    """Mean total variation between each model and the plain mean, label by label."""
    plan = case.plan(cut, ARITHMETIC, case.epsilon)
    mean = divide_rows(np.nan_to_num(plan.fuse(cut.members).scores).astype(np.float64))
    ready = plan.prepare(cut.members)
    total = np.zeros(len(mean))
    for index, member in enumerate(plan.members):
        image = divide_rows(plan.carry(member, ready.scores[index]).astype(np.float64))
        total += np.where(ready.answered[index], np.abs(image - mean).sum(axis=1) / 2, 0)
    variation: np.ndarray = total / np.maximum(ready.answered.sum(axis=0), 1)
    return variation
