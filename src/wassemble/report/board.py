"""The leaderboard: every rule on validation and on test samples, side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from wassemble.ensemble.learning import Outcome, Recipe
from wassemble.report.evidence import Evidence
from wassemble.solvers import Barycenter, PowerMean

__all__ = ["make_board"]

# Other metrics of the table, by task: key, title, whether lower is better.
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
        against = line.against_chosen
        rows.append(
            {
                "name": line.name,
                "sort": _sort(line.recipe),
                "is_chosen": line.is_chosen,
                "validation": {
                    "score": line.score,
                    "standard_error": line.standard_error,
                    "against_chosen": None if against is None else asdict(against),
                },
                "test": None if outcome is None else _test(outcome),
                "microseconds": None if outcome is None else outcome.microseconds,
                "figures": {} if outcome is None else outcome.figures,
            }
        )
    known = {name for row in rows for name in row["figures"]} - {evidence.evaluation.metric}
    return {
        "rows": rows,
        "figures": [{"key": key, "title": title} for key, title in _FIGURES if key in known],
    }


def _test(outcome: Outcome) -> dict[str, Any]:
    against = outcome.against_chosen
    return {
        "score": outcome.score,
        "standard_error": outcome.standard_error,
        "low": outcome.low,
        "high": outcome.high,
        "against_chosen": None if against is None else asdict(against),
    }


def _sort(recipe: Recipe | None) -> str:
    """What sort of rule it is, in a word or two."""
    if recipe is None:
        return "stacking"
    if recipe.model is not None:
        return "model"
    if isinstance(recipe.rule, PowerMean):
        return "mean through mistakes" if recipe.uses_mistakes else "mean"
    return "barycenter" if isinstance(recipe.rule, Barycenter) else "gate"
