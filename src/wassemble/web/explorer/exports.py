"""What a page shows, as files: every label of every histogram."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from wassemble.web.cells import safe_cell
from wassemble.web.explorer.answers import Answer
from wassemble.web.explorer.cases import Case
from wassemble.web.explorer.flows import find_flows

__all__ = ["as_csv", "as_json", "file_name"]


def as_csv(answer: Answer) -> str:
    """A row for each label of each histogram: what, its role, label and score.

    Names that a spreadsheet would take for a formula get an apostrophe in front.
    """
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    write(["histogram", "role", "label", "score"])
    for line in answer.lines:
        for label, score in zip(line.labels, line.scores.tolist(), strict=True):
            write([safe_cell(line.name), line.role, safe_cell(label), repr(score)])
    return out.getvalue()


def as_json(case: Case, answer: Answer, label: str, model: str, query: str) -> dict[str, Any]:
    """The same, with how it was made and the flows of the label that is looked into."""
    flows = find_flows(answer, label, model)
    return {
        "view": query,
        "data": case.table.title,
        "kernel": case.similarity.origin,
        "sample": answer.sample,
        "epsilon": answer.knobs.epsilon,
        "mass_penalty": None if answer.knobs.balanced else answer.knobs.mass_penalty,
        "weights": {
            model.model: weight
            for model, weight in zip(case.table.models, answer.knobs.weights, strict=True)
        },
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
