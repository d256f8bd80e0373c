"""What single labels and single models have of it: gains per label, and weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from wassemble.ensemble.learning.trial import Trial
from wassemble.metrics import average_precision
from wassemble.metrics.multi_class import are_right
from wassemble.report.evidence import Evidence

__all__ = ["find_gains", "show_weights"]

_N_SHOWN = 15
_N_WEIGHT_LABELS = 40


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
    """Weight of each model in the chosen rule; per label where models declare different ones."""
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
