"""How much of the answers of a stacked consensus rests on each model, and on each rule it sees."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from wassemble.report.evidence import Evidence
from wassemble.solvers import StackedConsensus
from wassemble.solvers.stacked import Sight

# Pairs of sample and target label that are looked at: every feature has a number for each.
_N_PAIRS = 100_000


def share_lead(evidence: Evidence) -> dict[str, Any] | None:
    """Percent of the answers' lead by model, and by feature of all models; largest first.

    The lead of an answer is its margin minus the mean margin of all labels. None for any other
    rule.
    """
    rule = evidence.learned.fusion.rule
    if not isinstance(rule, StackedConsensus):
        return None
    sight = _look(evidence)
    answers = rule.margins(sight).argmax(axis=1)[:, None]
    names = evidence.few.names
    leads: dict[tuple[str, bool], float] = defaultdict(float)
    for feature, values in rule.contributions(sight):
        own = np.take_along_axis(values, answers, axis=1)[:, 0] - values.mean(axis=1)
        key = (feature.name, False) if feature.model is None else (names[feature.model], True)
        leads[key] += float(own.mean())
    total = sum(leads.values()) or 1.0
    rows = [
        {"name": name, "is_model": is_model, "percent": 100 * lead / total}
        for (name, is_model), lead in leads.items()
    ]
    return {"n_samples": len(answers), "rows": sorted(rows, key=lambda row: -row["percent"])}


def _look(evidence: Evidence) -> Sight:
    """The first of the few samples, as the models see them."""
    plan = evidence.learned.plan
    n_rows = max(1, _N_PAIRS // len(plan.target))
    ready = plan.prepare([model.take(slice(n_rows)) for model in evidence.few.models])
    kernels = [member.kernel for member in plan.members]
    return Sight(ready.scores, kernels, ready.votes[:, :, None].astype(np.float64))
