"""The samples that models disagree about most, and what the consensus made of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wassemble.ensemble.decisions import apply_thresholds
from wassemble.ensemble.explain import explain, find_disagreement
from wassemble.ensemble.fusion import FusionResult
from wassemble.inputs import Predictions
from wassemble.metrics.arguments import divide_rows
from wassemble.report.evidence import Evidence

_N_SHOWN = 20
_N_CONTRIBUTIONS = 6
_N_LETTERS = 400


def find_disputes(evidence: Evidence, texts: Mapping[Any, str] | None) -> dict[str, Any]:
    """At most 20 samples, most disputed first, each with its explanation."""
    texts = {str(sample): str(text) for sample, text in (texts or {}).items()}
    few, chosen = evidence.few, evidence.chosen
    has_couplings = chosen.recipe.rule.transports
    with warnings.catch_warnings():  # of how rows end, which was told when it was learned
        warnings.simplefilter("ignore")
        fusion = chosen.fusion.run(few.models)
    scores = chosen.fuse(few.models)
    if has_couplings:
        disagreement = find_disagreement(fusion).score
    else:
        disagreement = _variation(evidence, scores)
    order = np.argsort(-disagreement, kind="stable")[:_N_SHOWN].tolist()
    answers = _answers(evidence, scores)
    samples = [str(sample) for sample in few.models[0].samples.tolist()]
    disputed = [
        {
            "sample": samples[row],
            "text": _shorten(texts.get(samples[row])),
            "disagreement": float(disagreement[row]),
            **answers(row),
            "models": [_said(model, row) for model in few.models],
            "explanation": _explanation(fusion, samples[row]),
        }
        for row in order
        if disagreement[row] > 0
    ]
    return {
        "measure": "transport" if has_couplings else "total variation",
        "n_samples": few.n_samples,
        "samples": disputed,
        "has_couplings": has_couplings,
        "has_features": chosen.recipe.is_stacked,
    }


def _variation(evidence: Evidence, scores: np.ndarray) -> np.ndarray:
    """Mean total variation between what each model says of the target labels and the consensus."""
    rule = evidence.plain_mean(1.0) or evidence.chosen
    plan = rule.fusion.plan(evidence.few.models)
    ready = plan.prepare(evidence.few.models)
    consensus = divide_rows(scores.astype(np.float64))
    total, count = np.zeros(len(scores)), np.zeros(len(scores))
    for index, member in enumerate(plan.members):
        image = divide_rows(plan.carry(member, ready.scores[index]).astype(np.float64))
        said = ready.answered[index] & image.any(axis=1)
        total += np.where(said, np.abs(image - consensus).sum(axis=1) / 2, 0)
        count += said
    return total / np.maximum(count, 1)


def _answers(evidence: Evidence, scores: np.ndarray) -> Callable[[int], dict[str, Any]]:
    """A function of a row: the truth, the answer, and whether they agree."""
    few, learned = evidence.few, evidence.learned
    shown, truth = learned.sharpen(scores), few.truth
    if few.task == "multiclass":
        labels = np.arange(len(few.target))
        truth = (truth[:, None] == labels).astype(float)
        decided = (shown.argmax(axis=1)[:, None] == labels) & scores.any(axis=1, keepdims=True)
    else:
        assert learned.thresholds is not None
        decided = apply_thresholds(scores, learned.thresholds) == 1

    def tell(row: int) -> dict[str, Any]:
        labels = np.flatnonzero(decided[row])
        labels = labels[np.argsort(-shown[row, labels], kind="stable")]
        known, present = ~np.isnan(truth[row]), truth[row] == 1
        return {
            "truth": [few.target[i] for i in np.flatnonzero(present).tolist()],
            "answer": [
                {"label": few.target[i], "score": float(shown[row, i])} for i in labels.tolist()
            ],
            "is_right": bool((present == decided[row])[known].all()),
        }

    return tell


def _said(model: Predictions, row: int) -> dict[str, Any]:
    """The label that a model scored highest; none if it gave no answer."""
    scores = np.nan_to_num(model.scores[row])
    if not scores.any():
        return {"model": model.model, "label": None, "score": None}
    best = int(scores.argmax())
    return {"model": model.model, "label": model.labels[best], "score": float(scores[best])}


def _explanation(fusion: FusionResult, sample: str) -> dict[str, Any] | None:
    if not np.nan_to_num(fusion.consensus.scores[fusion.row(sample)]).any():
        return None
    return explain(fusion, sample, n_largest=_N_CONTRIBUTIONS).to_dict()


def _shorten(text: str | None) -> str | None:
    if text is None or len(text) <= _N_LETTERS:
        return text
    return text[: _N_LETTERS - 1] + "…"
