"""The leaderboard: every rule on validation and on test samples, and each model by the rule."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from wassemble.ensemble.learning import Recipe, Standing
from wassemble.ensemble.learning.recipes import TIERS
from wassemble.report.evidence import Evidence
from wassemble.solvers import Barycenter, PowerMean
from wassemble.solvers.exact import ExactBarycenter

# What is told of a rule on test samples.
_TEST = ("score", "standard_error", "low", "high", "against_chosen")
# Other metrics of the table: key, and title with an arrow where lower is better.
_FIGURES = (
    ("accuracy", "accuracy"),
    ("top_5_accuracy", "top-5 accuracy"),
    ("log_loss", "log-loss ↓"),
    ("brier_score", "Brier score ↓"),
    ("calibration_error", "calibration error ↓"),
    ("mAP", "mAP"),
    ("top_3_precision_per_class", "P-C, top 3"),
    ("top_3_recall_per_class", "R-C, top 3"),
    ("top_3_f1_per_class", "F1-C, top 3"),
    ("top_3_precision_overall", "P-O, top 3"),
    ("top_3_recall_overall", "R-O, top 3"),
    ("top_3_f1_overall", "F1-O, top 3"),
)


def make_board(evidence: Evidence) -> dict[str, Any]:
    """A row for each line of the leaderboard, best on validation first."""
    outcomes = {each.recipe: each for each in evidence.evaluation.outcomes}
    rows: list[dict[str, Any]] = []
    for line in evidence.learned.leaderboard:
        outcome = outcomes.get(line.recipe)
        rows.append(
            {
                "name": line.name,
                "sort": _sort(line.recipe),
                "is_chosen": line.is_chosen,
                "validation": _told(line, "score", "standard_error", "against_chosen"),
                "test": None if outcome is None else _told(outcome, *_TEST),
                "microseconds": None if outcome is None else outcome.microseconds,
                "figures": {} if outcome is None else outcome.figures,
            }
        )
    known = {name for row in rows for name in row["figures"]} - {evidence.evaluation.metric}
    return {
        "rows": rows,
        "figures": [{"key": key, "title": title} for key, title in _FIGURES if key in known],
    }


def _told(line: Standing, *names: str) -> dict[str, Any]:
    entries = line.to_dict()
    return {name: entries[name] for name in names}


def _sort(recipe: Recipe) -> str:
    """What sort of rule it is, in a word or two."""
    if recipe.model is not None:
        return "model"
    if recipe.is_stacked:
        return TIERS[recipe.tier]
    if isinstance(recipe.rule, PowerMean):
        return "mean through mistakes" if recipe.uses_mistakes else "mean"
    is_barycenter = isinstance(recipe.rule, Barycenter | ExactBarycenter)
    return "barycenter" if is_barycenter else "gate"


def judge_members(evidence: Evidence) -> dict[str, Any]:
    """Test scores of each model alone, as it is and by the chosen rule, best first.

    A rule through a kernel changes even one model. What the chosen rule gains over a model
    alone by the same rule is what fusing gives; the rest is the kernel's.
    """
    trial, chosen = evidence.trial, evidence.chosen
    if chosen.recipe.is_simple or len(trial.models) < 2:
        return {"omitted": "The chosen rule does nothing to a model alone."}
    if chosen.recipe.is_stacked:
        return {"omitted": "The chosen rule was fitted on all models together, not on one alone."}
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
