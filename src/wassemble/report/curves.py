"""Curves of scores against the truth: calibration, or precision over recall."""

from __future__ import annotations

from typing import Any

import numpy as np

from wassemble.ensemble.learning import FittedRecipe
from wassemble.metrics import calibration_bins, expected_calibration_error
from wassemble.report.evidence import Evidence

__all__ = ["compare_calibration", "compare_precision", "rules_to_compare"]

_N_BINS = 10
# Labels whose curve can be looked at, and points of each.
_N_LABELS = 30
_N_POINTS = 60


def rules_to_compare(evidence: Evidence) -> list[tuple[str, FittedRecipe]]:
    """The chosen rule, the best single model and the arithmetic mean, each once."""
    single = evidence.rule_of(evidence.evaluation.best_single)
    found = {evidence.chosen.recipe: ("chosen", evidence.chosen)}
    found.setdefault(single.recipe, ("best single", single))
    mean = evidence.plain_mean(1.0)
    if mean is not None:
        found.setdefault(mean.recipe, ("arithmetic mean", mean))
    return list(found.values())


def compare_calibration(evidence: Evidence) -> dict[str, Any]:
    """How often answers of each confidence are right (multi-class)."""
    learned, truth = evidence.learned, evidence.trial.truth
    curves = []
    for title, rule in rules_to_compare(evidence):
        name, scores, role = rule.recipe.name, evidence.scores(rule), title
        if title == "chosen" and learned.temperature != 1:
            tempered = f"chosen, temperature {learned.temperature:.2g}"
            curves.append(_reliability(tempered, role, name, learned.sharpen(scores), truth))
            role = "chosen as fused"
        curves.append(_reliability(role, role, name, scores, truth))
    return {"curves": curves, "n_bins": _N_BINS, "temperature": learned.temperature}


def _reliability(
    title: str, role: str, rule: str, scores: np.ndarray, truth: np.ndarray
) -> dict[str, Any]:
    bins = calibration_bins(scores, truth, n_bins=_N_BINS)
    filled = np.flatnonzero(bins.count)
    return {
        "title": title,
        "role": role,
        "rule": rule,
        "calibration_error": expected_calibration_error(scores, truth),
        "confidence": bins.confidence[filled].tolist(),
        "accuracy": bins.accuracy[filled].tolist(),
        "count": bins.count[filled].tolist(),
    }


def compare_precision(evidence: Evidence) -> dict[str, Any]:
    """Precision over recall of all labels together, and of the most frequent ones (multi-label)."""
    trial = evidence.trial
    truth, target = trial.truth, trial.target
    weight = np.ones(len(truth)) if trial.sample_weight is None else trial.sample_weight
    frequent = np.argsort(-np.nansum(truth, axis=0), kind="stable")[:_N_LABELS].tolist()
    rules = [
        (title, rule.recipe.name, evidence.scores(rule))
        for title, rule in rules_to_compare(evidence)
    ]
    each = np.broadcast_to(weight[:, None], truth.shape)
    groups: list[dict[str, Any]] = [
        {"label": None, "curves": [_curve(*rule, truth, each) for rule in rules]}
    ]
    for label in frequent:
        if not (truth[:, label] == 1).any():
            continue
        some = np.s_[:, label]
        curves = [
            _curve(title, name, scores[some], truth[some], weight) for title, name, scores in rules
        ]
        groups.append({"label": target[label], "curves": curves})
    return {"groups": groups, "n_labels": len(target)}


def _curve(
    title: str, rule: str, scores: np.ndarray, truth: np.ndarray, weight: np.ndarray
) -> dict[str, Any]:
    known = ~np.isnan(truth)
    scores, truth, weight = scores[known], truth[known], weight[known]
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], weight[order] * (truth[order] == 1)
    found, decided = np.cumsum(positive), np.cumsum(weight[order])
    # Equal scores are decided together: only the last of them is a point.
    last = np.flatnonzero(np.append(scores[1:] < scores[:-1], True))
    recall = found[last] / max(float(found[-1]), 1e-12)
    precision = found[last] / np.maximum(decided[last], 1e-12)
    # Those points at which recall has grown, at most so many.
    steps = np.searchsorted(recall, np.linspace(recall[0], recall[-1], _N_POINTS))
    kept = np.unique(np.minimum(steps, len(last) - 1))
    return {
        "title": title,
        "rule": rule,
        "recall": recall[kept].tolist(),
        "precision": precision[kept].tolist(),
    }
