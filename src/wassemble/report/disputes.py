"""The samples that models disagree about most, and what the consensus made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wassemble.ensemble.account import FusionAccount
from wassemble.ensemble.decisions import apply_thresholds
from wassemble.ensemble.explain import explain, find_disagreement
from wassemble.ensemble.fusion import FusionResult
from wassemble.ensemble.plan import FusionPlan
from wassemble.inputs import Predictions
from wassemble.metrics.arguments import divide_rows
from wassemble.report.evidence import Evidence
from wassemble.solvers import Barycenter

__all__ = ["find_disputes"]

_N_SHOWN = 20
_N_CONTRIBUTIONS = 6
_N_LETTERS = 400


def find_disputes(evidence: Evidence, texts: Mapping[Any, str] | None) -> dict[str, Any]:
    """At most 20 samples, most disputed first, each with its explanation."""
    texts = {str(sample): str(text) for sample, text in (texts or {}).items()}
    few, chosen = evidence.few, evidence.chosen
    plan = evidence.learned.plan
    fusion = None
    if isinstance(plan.rule, Barycenter):
        fusion = _fusion(plan, few.models)
        scores = np.nan_to_num(fusion.consensus.scores)
        disagreement = find_disagreement(fusion).score
    else:
        scores = chosen.fuse(few.models)
        disagreement = _variation(evidence, scores)
    order = np.argsort(-disagreement, kind="stable")[:_N_SHOWN].tolist()
    answers = _answers(evidence, scores)
    found = []
    for row in (i for i in order if disagreement[i] > 0):
        sample = str(few.models[0].samples[row])
        found.append(
            {
                "sample": sample,
                "text": _shorten(texts.get(sample)),
                "disagreement": float(disagreement[row]),
                **answers(row),
                "models": [_said(model, row) for model in few.models],
                "explanation": _explanation(fusion, sample),
            }
        )
    return {
        "measure": "transport" if fusion is not None else "total variation",
        "n_samples": few.n_samples,
        "samples": found,
        "has_couplings": fusion is not None,
    }


def _fusion(plan: FusionPlan, members: list[Predictions]) -> FusionResult:
    chunk = plan.fuse(members)
    account = FusionAccount.of(plan, kind_is_detected=False)
    account.add(members, chunk)
    consensus = Predictions(
        "consensus", members[0].samples, plan.target, chunk.scores, kind=plan.kind
    )
    return FusionResult(consensus, chunk.statuses, account, plan, members)


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


def _answers(evidence: Evidence, scores: np.ndarray) -> Any:
    """A function of a row: the truth, the answer, and whether they agree."""
    few, learned = evidence.few, evidence.learned
    shown = learned.sharpen(scores)
    target = few.target
    if few.task == "multiclass":
        best = shown.argmax(axis=1)

        def one(row: int) -> dict[str, Any]:
            place = int(best[row])
            silent = not scores[row].any()
            answer = [] if silent else [{"label": target[place], "score": float(shown[row, place])}]
            right = not silent and place == few.truth[row]
            return {
                "truth": [target[int(few.truth[row])]],
                "answer": answer,
                "is_right": bool(right),
            }

        return one
    assert learned.thresholds is not None
    decided = apply_thresholds(scores, learned.thresholds) == 1

    def several(row: int) -> dict[str, Any]:
        labels = np.flatnonzero(decided[row])
        labels = labels[np.argsort(-scores[row, labels], kind="stable")]
        known = ~np.isnan(few.truth[row])
        true = np.flatnonzero(few.truth[row] == 1)
        return {
            "truth": [target[i] for i in true.tolist()],
            "answer": [
                {"label": target[i], "score": float(scores[row, i])} for i in labels.tolist()
            ],
            "is_right": bool(((few.truth[row] == 1) == decided[row])[known].all()),
        }

    return several


def _said(model: Predictions, row: int) -> dict[str, Any]:
    """The label that a model scored highest; none if it gave no answer."""
    scores = np.nan_to_num(model.scores[row])
    if not scores.any():
        return {"model": model.model, "label": None, "score": None}
    best = int(scores.argmax())
    return {"model": model.model, "label": model.labels[best], "score": float(scores[best])}


def _explanation(fusion: FusionResult | None, sample: str) -> dict[str, Any] | None:
    if fusion is None or not np.nan_to_num(fusion.consensus.scores[fusion.row(sample)]).any():
        return None
    return explain(fusion, sample, n_largest=_N_CONTRIBUTIONS).to_dict()


def _shorten(text: str | None) -> str | None:
    if text is None or len(text) <= _N_LETTERS:
        return text
    return text[: _N_LETTERS - 1] + "…"
