"""Where mass came from and where it went, and which labels a kernel joins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wassemble.ensemble.explain import find_contributions
from wassemble.errors import fail
from wassemble.labels import LabelSpace
from wassemble.web.explorer.answers import Answer
from wassemble.web.explorer.cases import Case

__all__ = ["Flow", "Flows", "Neighbor", "find_flows", "find_neighbors"]

# What a picture can show; the rest is added up.
_N_FLOWS = 12
_N_NEIGHBORS = 12


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
    """Everything that came to a consensus label, or that went from a model's label.

    Attributes
    ----------
    model : str
        Whose label it is; empty for the consensus.
    mass : float
        Of the label in the consensus; of a model's label, what of it went into the consensus.
    """

    model: str
    label: str
    mass: float
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
    place = answer.plan.target.position(label)
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
    row = labels.position(label)
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
    found: list[Neighbor] = []
    seen: set[LabelSpace] = set()
    for each in models:
        if case.similarity.is_shared and each.labels in seen:
            continue
        seen.add(each.labels)
        names = case.target if model else each.labels
        costs = case.costs_of(each, label, is_target=not model)
        with np.errstate(under="ignore"):
            similarities = np.exp(costs.astype(np.float64) / -answer.knobs.epsilon)
        best = np.argsort(-similarities, kind="stable")[:_N_NEIGHBORS]
        found += [
            Neighbor(each.model, names[i], float(similarities[i]))
            for i in best.tolist()
            if similarities[i] > 0
        ]
    if len(seen) == 1 and case.similarity.is_shared:
        found = [Neighbor("", each.label, each.similarity) for each in found]
    return sorted(found, key=lambda each: -each.similarity)[:_N_NEIGHBORS]
