"""Each model alone by the chosen rule: what is the rule's share, and what the ensemble's."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from wassemble.report.evidence import Evidence

__all__ = ["judge_members"]


def judge_members(evidence: Evidence) -> dict[str, Any]:
    """Test scores of each model alone, as it is and by the chosen rule, best first.

    A rule through a kernel changes even one model. What the chosen rule gains over a model
    alone by the same rule is what fusing gives; the rest is the kernel's.
    """
    trial, chosen = evidence.trial, evidence.chosen
    if chosen.recipe.is_simple or len(trial.models) < 2:
        return {"omitted": "The chosen rule does nothing to a model alone."}
    bootstrap = trial.bootstrap(evidence.measure, evidence.seed)
    own = bootstrap.estimate(evidence.scores(chosen))
    plain = {
        each.model: each.score
        for each in reversed(evidence.evaluation.outcomes)
        if each.model is not None
    }
    rows = []
    for model in trial.models:
        # A model of weight 0 takes no part.
        weights = {name: float(name == model.model) for name in trial.names}
        rule = replace(chosen, fusion=chosen.fusion.replace(weights=weights))
        alone = bootstrap.estimate(rule.fuse(trial.models))
        gain = own.minus(alone)
        rows.append(
            {
                "model": model.model,
                "alone": plain.get(model.model),
                "by_rule": alone.score,
                "gain": asdict(gain),
                "text": str(gain),
            }
        )
    return {"rule": chosen.recipe.name, "models": sorted(rows, key=lambda row: -row["by_rule"])}
