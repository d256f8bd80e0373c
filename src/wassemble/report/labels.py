"""The truth label by label: curves of scores, gains of each label, and weights of models."""

from __future__ import annotations

from typing import Any

import numpy as np

from wassemble.ensemble.learning import FittedRecipe, Trial
from wassemble.metrics import average_precision, calibration_bins, expected_calibration_error
from wassemble.metrics.multi_class import are_right
from wassemble.report.evidence import Evidence
from wassemble.report.features import share_lead

_N_BINS = 10
# Labels whose curve can be looked at, and points of each.
_N_LABELS = 30
_N_POINTS = 60
_N_SHOWN = 15
_N_WEIGHT_LABELS = 40
_NO_WEIGHTS = "A stacked rule has coefficients in place of weights of models."


def find_gains(evidence: Evidence) -> dict[str, Any]:
    """The chosen rule minus the best simple one on each label; most gained and most lost."""
    simple = evidence.evaluation.best_simple
    if simple is None:
        return {"omitted": "There is no simple rule to compare with."}
    trial = evidence.trial
    own = _per_label(evidence.scores(evidence.chosen), trial)
    other = _per_label(evidence.scores(evidence.rule_of(simple)), trial)
    counts = _count(trial)
    gains = own - other
    known = np.flatnonzero(~np.isnan(gains))
    order = known[np.argsort(-gains[known], kind="stable")]
    gained = [i for i in order[:_N_SHOWN].tolist() if gains[i] > 0]
    lost = [i for i in order[::-1][:_N_SHOWN].tolist() if gains[i] < 0]

    def row(label: int) -> dict[str, Any]:
        return {
            "label": trial.target[label],
            "gain": float(gains[label]),
            "chosen": float(own[label]),
            "simple": float(other[label]),
            "n_samples": int(counts[label]),
        }

    return {
        "metric": "accuracy" if trial.task == "multiclass" else "average precision",
        "simple": simple.name,
        "n_labels": len(known),
        "n_gained": int((gains[known] > 0).sum()),
        "n_lost": int((gains[known] < 0).sum()),
        "gained": [row(i) for i in gained],
        "lost": [row(i) for i in lost],
    }


def _per_label(scores: np.ndarray, trial: Trial) -> np.ndarray:
    """Accuracy on the samples of each true label, or average precision; nan without any."""
    if trial.task == "multilabel":
        return average_precision(np.nan_to_num(scores), trial.truth, trial.sample_weight)
    weight = np.ones(trial.n_samples) if trial.sample_weight is None else trial.sample_weight
    right = are_right(scores, trial.truth)
    n_labels = len(trial.target)
    total = np.bincount(trial.truth, weights=weight, minlength=n_labels)
    hits = np.bincount(trial.truth, weights=weight * right, minlength=n_labels)
    return np.divide(hits, total, out=np.full(n_labels, np.nan), where=total > 0)


def _count(trial: Trial) -> np.ndarray:
    if trial.task == "multilabel":
        return np.nansum(trial.truth, axis=0)
    return np.bincount(trial.truth, minlength=len(trial.target))


def show_weights(evidence: Evidence) -> dict[str, Any]:
    """Weight of each model in the chosen rule; per label where models declare different ones.

    A stacked rule has none: what it looks at has coefficients.
    """
    if evidence.chosen.recipe.is_stacked:
        return {"omitted": _NO_WEIGHTS, "lead": share_lead(evidence)}
    plan, is_single = evidence.learned.plan, evidence.chosen.recipe.model is not None
    models = [member.model for member in plan.members]
    labels = None
    if plan.is_label_aware and not is_single:
        shown = np.argsort(-_count(evidence.trial), kind="stable")[:_N_WEIGHT_LABELS]
        labels = {
            "models": models,
            "labels": [plan.target[i] for i in shown.tolist()],
            "weights": plan.label_weights[:, shown].T.tolist(),
            "n_labels": len(plan.target),
        }
    return {
        "rule": evidence.chosen.recipe.weights,
        "weights": dict(zip(models, plan.weights.tolist(), strict=True)),
        "per_label": labels,
        "is_single": is_single,
    }


def _rules_to_compare(evidence: Evidence) -> list[tuple[str, FittedRecipe]]:
    """The chosen rule, the best single model and the arithmetic mean, each once."""
    single = evidence.rule_of(evidence.evaluation.best_single)
    rules = {evidence.chosen.recipe: ("chosen", evidence.chosen)}
    rules.setdefault(single.recipe, ("best single", single))
    mean = evidence.plain_mean(1.0)
    if mean is not None:
        rules.setdefault(mean.recipe, ("arithmetic mean", mean))
    return list(rules.values())


def compare_calibration(evidence: Evidence) -> dict[str, Any]:
    """How often answers of each confidence are right (multi-class)."""
    learned, truth = evidence.learned, evidence.trial.truth
    curves = []
    for title, rule in _rules_to_compare(evidence):
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
        for title, rule in _rules_to_compare(evidence)
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
    hits, decided = np.cumsum(positive), np.cumsum(weight[order])
    # Equal scores are decided together: only the last of them is a point.
    last = np.flatnonzero(np.append(scores[1:] < scores[:-1], True))
    recall = hits[last] / max(float(hits[-1]), 1e-12)
    precision = hits[last] / np.maximum(decided[last], 1e-12)
    # Those points at which recall has grown, at most so many.
    steps = np.searchsorted(recall, np.linspace(recall[0], recall[-1], _N_POINTS))
    kept = np.unique(np.minimum(steps, len(last) - 1))
    return {
        "title": title,
        "rule": rule,
        "recall": recall[kept].tolist(),
        "precision": precision[kept].tolist(),
    }
