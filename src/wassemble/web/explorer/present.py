"""An answer in words, tables and plots, for a page and for its script alike."""

import math
import re
from typing import Any

from pydantic import BaseModel

from wassemble.labels import enumerate_names
from wassemble.solvers import Status
from wassemble.web.explorer.answers import Answer, Flows, Line, Neighbor, find_flows, find_neighbors
from wassemble.web.explorer.cases import MASS_PENALTY, Case
from wassemble.web.explorer.plots import draw_answer, draw_flows, draw_neighbors
from wassemble.web.explorer.similarity import NAMES, OWN_EPSILON
from wassemble.web.explorer.view import View
from wassemble.web.pages import write_csv

# A slider goes this many times below and above where it starts.
_REACH = 30.0
_N_CHOICES = 20
_N_WORDS = 3


class Cell(BaseModel):
    """One cell of a table: its text, and the view that it leads to, if any."""

    text: str
    href: str = ""


class TableBody(BaseModel):
    """A table as rows of cells; the first cell of a row is its heading."""

    columns: list[str]
    rows: list[list[Cell]]


class Slider(BaseModel):
    """Where a slider stands and how far it goes; ``reason`` says why it cannot be moved."""

    value: float
    low: float
    high: float
    reason: str = ""


class Controls(BaseModel):
    """Every slider."""

    epsilon: Slider
    mass: str
    mass_reason: str = ""
    mass_penalty: Slider
    weight: list[Slider]


class Shown(BaseModel):
    """What a page shows of one sample, as its sliders stand."""

    query: str
    sample: str
    summary: str
    facts: list[str]
    controls: Controls
    rules: TableBody
    choices: list[str]
    label: str
    model: str
    heading: str
    flows_text: str
    flows: TableBody
    neighbors_text: str
    neighbors: TableBody
    plots: dict[str, Any]


def present(case: Case, answer: Answer, view: View) -> Shown:
    """Everything that is shown; links lead to views that differ in the label alone."""
    label = _label(case, answer, view)
    flows = find_flows(answer, label, view.model)
    neighbors = find_neighbors(case, answer, label, view.model)
    models = [model.model for model in case.table.models]
    return Shown(
        query=view.to_query(),
        sample=answer.sample,
        summary=_summary(answer),
        facts=_facts(case, answer),
        controls=_controls(case, answer, view),
        rules=_rules(answer),
        choices=[name for name, _ in answer.consensus.top(_N_CHOICES)],
        label=label,
        model=view.model,
        heading=f"{label} ({view.model})" if view.model else label,
        flows_text=_flows_text(answer, flows),
        flows=_flows_table(flows, view),
        neighbors_text=_neighbors_text(case, answer, neighbors),
        neighbors=_neighbors_table(case, neighbors, view),
        plots={
            "answer": draw_answer(answer, label, view.model),
            "flows": draw_flows(flows, models),
            "neighbors": draw_neighbors(neighbors),
        },
    )


def _label(case: Case, answer: Answer, view: View) -> str:
    """The label that is looked into; the best of the consensus if none was chosen."""
    top = answer.consensus.top(1)
    return view.label or (top[0][0] if top else case.target[0])


def _summary(answer: Answer) -> str:
    """One sentence for who cannot see the bars move."""
    top = answer.consensus.top(1)
    if not top:
        return "The consensus is empty."
    (label, score), mean = top[0], answer.lines[1].top(1)
    same = "a plain mean gives the same answer" if answer.same_as_mean else ""
    if mean and not same:
        same = f"a plain mean would say {mean[0][0]}"
    end = f"; {same}" if same else ""
    return (
        f"Consensus: {label}, {score:.3g}{_doubt(answer)}, entropy"
        f" {answer.consensus.entropy:.2f} nats{end}. {_status(answer)}"
    )


def _doubt(answer: Answer) -> str:
    """What stands beside a figure that was computed over some of the labels."""
    if not answer.cut.is_part:
        return ""
    return f" (without up to {100 * answer.cut.dropped:.2g} % of a model's mass)"


def _status(answer: Answer) -> str:
    residual = f"residual {answer.residual:.1g}"
    if answer.status is Status.CONVERGED:
        if answer.n_sweeps == 0:
            return "Found by a formula." if answer.cut.is_part else "Exact: found by a formula."
        return f"Converged after {answer.n_sweeps} sweeps, {residual}."
    if answer.status is Status.MAX_SWEEPS:
        return (
            f"Not converged: stopped after {answer.n_sweeps} sweeps, {residual}; a larger epsilon"
            " needs fewer."
        )
    if answer.status is Status.NO_MASS:
        return f"No consensus: {answer.status.message}; the unbalanced rule gives one."
    if answer.status is Status.UNREACHABLE_MASS:
        return f"Not all mass arrived: {answer.status.message}, {residual}."
    return f"No answer to trust: it {answer.status.message}."


def _facts(case: Case, answer: Answer) -> list[str]:
    """What a reader should know beside the figures."""
    table, consensus = case.table, answer.consensus
    facts = [f"Labels are joined by {case.similarity.origin}."]
    if case.similarity is not NAMES and not case.similarity.has_cost:
        facts.append(
            f"At epsilon {OWN_EPSILON:g} the kernel is as it was given; elsewhere it is raised to"
            " a power."
        )
    if answer.cut.is_part:
        facts.append(
            f"Computed over the {len(answer.plan.target):,} of {len(case.target):,} labels that"
            " some model finds most likely. At most"
            f" {100 * answer.cut.dropped:.2g} % of a model's mass is on the others and was left"
            " out of the consensus; the means are over all."
        )
    if table.kind == "multiclass" and not math.isclose(consensus.mass, 1, abs_tol=1e-3):
        power = 1 / answer.plan.rule.flattening
        raised = f"raised to the power {power:.3g} and " if power > 1 else ""
        facts.append(
            f"The consensus was {raised}divided by its mass, {consensus.mass:.3g} at first."
        )
    if not case.means_by_name:
        facts.append("The means are of what each model's kernel alone sends to the target labels.")
    silent = [line.name for line in answer.lines if line.role == "model" and not line.has_answer]
    if silent:
        facts.append(f"No answer here: {enumerate_names(silent)}.")
    if table.note:
        facts.append(table.note)
    return facts


def _controls(case: Case, answer: Answer, view: View) -> Controls:
    is_balanced = answer.plan.rule.is_balanced
    still = case.similarity is NAMES and is_balanced
    weights = view.weight or (1.0,) * len(case.table.models)
    return Controls(
        epsilon=Slider(
            value=answer.epsilon,
            low=case.epsilon / _REACH,
            high=case.epsilon * _REACH,
            reason="Labels are joined by name alone: nothing travels." if still else "",
        ),
        mass="balanced" if is_balanced else "unbalanced",
        mass_reason="" if case.may_be_balanced else "Scores have no mass in common to keep.",
        mass_penalty=Slider(
            value=view.mass_penalty or MASS_PENALTY,
            low=0.02,
            high=200,
            reason="Mass is kept, so that changing it has no price." if is_balanced else "",
        ),
        weight=[Slider(value=weight, low=0, high=max(1.0, *weights)) for weight in weights],
    )


def _table(columns: list[str], rows: list[list[str | Cell]]) -> TableBody:
    cells = [[each if isinstance(each, Cell) else Cell(text=each) for each in row] for row in rows]
    return TableBody(columns=columns, rows=cells)


def _rules(answer: Answer) -> TableBody:
    rows: list[list[str | Cell]] = [
        [
            line.name + (_doubt(answer) if line.role == "consensus" else ""),
            _words(line),
            "" if not line.has_answer else f"{line.entropy:.2f}",
            f"{line.mass:.3g}",
            "" if line.weight is None else f"{line.weight:.3g}",
        ]
        for line in answer.lines
    ]
    return _table(["", "Top labels", "Entropy (nats)", "Mass", "Weight"], rows)


def _words(line: Line) -> str:
    top = line.top(_N_WORDS)
    return ", ".join(f"{name} {score:.3g}" for name, score in top) if top else "no answer"


def _flows_text(answer: Answer, flows: Flows) -> str:
    if not flows.flows:
        return "It takes no part: no mass came here, or went from here."
    doubt = "" if answer.status is Status.CONVERGED else " Not converged: shares of the last sweep."
    if flows.model:
        return (
            f"Where {flows.mass:.3g} of the consensus went from this label of {flows.model}.{doubt}"
        )
    return f"Where its mass, {flows.mass:.3g}, came from.{doubt}"


def _flows_table(flows: Flows, view: View) -> TableBody:
    rows: list[list[str | Cell]] = []
    for flow in flows.flows:
        href = view.address(label=flow.label, model=flow.model) if flow.label else ""
        share = 100 * flow.mass / flows.mass if flows.mass else 0.0
        model = [] if flows.model else [flow.model]
        label = Cell(text=flow.label or "all other labels", href=href)
        rows.append([label, *model, f"{flow.mass:.3g}", f"{share:.1f} %"])
    columns = ["To", "Mass", "Share"] if flows.model else ["From", "Model", "Mass", "Share"]
    return _table(columns, rows)


def _neighbors_text(case: Case, answer: Answer, neighbors: list[Neighbor]) -> str:
    if not neighbors:
        return "The kernel joins it with no label."
    if case.similarity is NAMES:
        return "Labels are joined by name alone."
    return f"The labels that the kernel makes most similar, at epsilon {answer.epsilon:.3g}."


def _neighbors_table(case: Case, neighbors: list[Neighbor], view: View) -> TableBody:
    has_model = any(each.model for each in neighbors) and not view.model
    rows: list[list[str | Cell]] = []
    for each in neighbors:
        # Neighbours of a label of the consensus are labels of models, and the other way round.
        whose = "" if view.model else each.model
        if not view.model and not whose and each.label not in case.target:
            whose = case.table.models[0].model
        label = Cell(text=each.label, href=view.address(label=each.label, model=whose))
        rows.append([label, *([each.model] if has_model else []), f"{each.similarity:.3g}"])
    return _table(["Label", *(["Model"] if has_model else []), "Similarity"], rows)


def as_csv(answer: Answer) -> str:
    """A row for each label of each histogram: what, its role, label and score."""
    rows = [
        (line.name, line.role, label, repr(score))
        for line in answer.lines
        for label, score in zip(line.labels, line.scores.tolist(), strict=True)
    ]
    return write_csv([("histogram", "role", "label", "score"), *rows])


def as_json(case: Case, answer: Answer, view: View) -> dict[str, Any]:
    """The same, with how it was made and the flows of the label that is looked into."""
    flows = find_flows(answer, _label(case, answer, view), view.model)
    is_balanced = answer.plan.rule.is_balanced
    return {
        "view": view.to_query(),
        "data": case.table.title,
        "kernel": case.similarity.origin,
        "sample": answer.sample,
        "epsilon": answer.epsilon,
        "mass_penalty": None if is_balanced else view.mass_penalty or MASS_PENALTY,
        "weights": {line.name: line.weight for line in answer.lines if line.role == "model"},
        "status": answer.status.name.lower(),
        "residual": answer.residual,
        "n_sweeps": answer.n_sweeps,
        "dropped_mass": answer.cut.dropped,
        "histograms": [
            {
                "name": line.name,
                "role": line.role,
                "mass": line.mass,
                "entropy": line.entropy if line.has_answer else None,
                "labels": list(line.labels),
                "scores": line.scores.tolist(),
            }
            for line in answer.lines
        ],
        "flows": {
            "label": flows.label,
            "model": flows.model,
            "mass": flows.mass,
            "parts": [vars(flow) for flow in flows.flows],
        },
    }


def file_name(sample: str, end: str) -> str:
    """A name that any file system and any header takes.

    Examples
    --------
    >>> file_name('../a "b".png', "csv")
    'wassemble-a-b-png.csv'
    """
    words = re.sub(r"[^A-Za-z0-9]+", "-", sample).strip("-")[:60]
    return f"wassemble-{words or 'sample'}.{end}"
