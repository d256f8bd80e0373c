"""Weights by performance (the paper's appendix B.2): models that do well count more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from paper.multilabel.study import (
    ARITHMETIC,
    BEST,
    GATED_MEAN,
    GEOMETRIC,
    PAPERS,
    Grid as Config,
    LabelTask,
    Study,
    study_tasks,
    without_transport,
)
from paper.record.findings import (
    Claim,
    Figure,
    Findings,
    PaperFigures,
    Progress,
    Table,
    paper_figures,
)
from paper.record.verdicts import claim_gains, conclude, smallest_visible
from wassemble.ensemble.learning.fitting import Fitter
from wassemble.ensemble.learning.recipes import Recipe
from wassemble.ensemble.learning.trial import Trial
from wassemble.ensemble.learning.weights import WeightRule
from wassemble.solvers import PowerMean

_TEXT = """\
The tasks and rules of `multilabel`, with three kinds of weights: equal, in proportion to each
model's mAP on validation images (the paper's), and greedy (models added one by one, with
replacement, each time the one that makes the arithmetic mean best on validation images:
Caruana et al. 2004). Other settings are those tuned with equal weights, so that nothing but
weights differs between columns. Diagonal kernels are converged.

Weights by mAP are close to equal: the largest is {ratio:.2f} times the smallest on COCO. The
barycenters here have diagonal kernels and transport nothing; the gated arithmetic mean has such
a gate, tuned for it, without a barycenter. {verdict}"""

_NOTE = """\
Test mAP; gains over the same rule with equal weights are paired, with 95 % bootstrap intervals."""

_WEIGHTS_NOTE = """\
Greedy weights are shares of the additions up to the best of them; 0 leaves a model out."""

_WHY = """\
one rule with two kinds of weights is compared image by image, which shows small changes; two rules
differ more at random"""

_DIFFERENCE = """\
other models and fewer images (see `multilabel`). Its differences between columns are 0 to 0.3
points of mAP on 35,150 images, without intervals; here they are paired, on 1,300."""


@dataclass(frozen=True, eq=False)
class _Weighted:
    """One task under each kind of weights."""

    study: Study
    weights: dict[str, np.ndarray]
    scores: dict[str, dict[str, np.ndarray]]  # by weights, then by rule
    gains: dict[str, dict[str, Figure]]


def run(config: Config, progress: Progress = None) -> Findings:
    """Gains of weights, for each rule."""
    studies = study_tasks(config, lambda task: without_transport(task.described, config), progress)
    weighted = {title: _weigh(each) for title, each in studies.items()}
    coco, voc = weighted["COCO"], weighted["VOC"]
    by_metric, by_rule = coco.weights["mAP"], coco.scores["mAP"]
    advantage = {
        over: coco.study.task.test.gain(by_rule[PAPERS], by_rule[over])
        for over in (ARITHMETIC, GEOMETRIC, GATED_MEAN)
    }
    claims = _claims(coco, voc, advantage)
    return Findings(
        text=_TEXT.format(
            ratio=by_metric.max() / by_metric.min(),
            verdict="Weighted by mAP on COCO, the barycenter gains"
            f" {advantage[GATED_MEAN].words(4)} over it.",
        ),
        tables=[
            _table("COCO", coco, paper="weighted"),
            _table("VOC", voc),
            *(_weights_table(name, each) for name, each in weighted.items()),
        ],
        claims=claims,
        verdict=conclude(claims, _WHY),
        difference=_DIFFERENCE,
    )


def _learn_weights(task: LabelTask) -> dict[str, np.ndarray]:
    """Weights by validation mAP, and greedy ones."""
    models, truth = task.task.part(False)
    trial = Trial(models, task.task.target, task.task.kind, truth)
    fitter = Fitter(trial, {}, task.validation.measure)
    rules: dict[str, WeightRule] = {"mAP": "metric", "greedy": "greedy"}
    fitted = {name: fitter.fit(Recipe(PowerMean(1.0), rule)) for name, rule in rules.items()}
    return {name: np.array(list(rule.fusion.weights.values())) for name, rule in fitted.items()}


def _weigh(study: Study) -> _Weighted:
    task, weights = study.task, _learn_weights(study.task)
    scores = {
        kind: {
            name: candidate.fuse(task.part(True), each)
            for name, candidate in study.best.items()
            if name != BEST
        }
        for kind, each in weights.items()
    }
    gains = {
        kind: {name: task.test.gain(mine, study.scores[name]) for name, mine in by_rule.items()}
        for kind, by_rule in scores.items()
    }
    return _Weighted(study, weights, scores, gains)


def _table(title: str, each: _Weighted, paper: str | None = None) -> Table:
    test, expected = each.study.task.test, paper_figures(paper) if paper else None
    rows: list[list[Any]] = []
    for name, best in each.study.best.items():
        row: list[Any] = [name, best.settings, test.score(each.study.scores[name])]
        for kind, scores in each.scores.items():
            has = name in scores  # a single model has no weights
            row += [test.score(scores[name]), each.gains[kind][name]] if has else [None, None]
        if expected is not None:
            row += [expected.get(name, "equal"), expected.get(name, "mAP")]
        rows.append(row)
    columns = ["rule", "settings", "equal", "by mAP", "gain", "greedy", "gain"]
    if expected is not None:
        columns += ["paper, equal", "paper, by mAP"]
    return Table(f"{title}: mAP with weights", columns, rows, 4, _NOTE)


def _weights_table(title: str, each: _Weighted) -> Table:
    task = each.study.task
    models = zip(task.described, task.part(False), *each.weights.values(), strict=True)
    rows = [
        [name, task.validation.score(scores), *map(float, weights)]
        for name, scores, *weights in models
    ]
    columns = ["model", "validation mAP", "weight by mAP", "greedy weight"]
    return Table(f"{title}: weights", columns, rows, note=_WEIGHTS_NOTE)


# The smallest change that the paper's table shows as one.
_CHANGE = 0.001


def _claims(coco: _Weighted, voc: _Weighted, advantage: Mapping[str, Figure]) -> list[Claim]:
    """Judged on COCO, the paper's task; what VOC says stands beside."""
    own, other, expected = coco.gains["mAP"], voc.gains["mAP"], paper_figures("weighted")
    equal = "equal weights"
    helped = {ARITHMETIC: "arithmetic mean", PAPERS: "barycenter"}
    means = (ARITHMETIC, GEOMETRIC)
    return [
        *(
            claim_gains(
                f"weights by mAP help the {rule}",
                "table 11",
                {equal: own[name]},
                stated={equal: _stated(expected, name)},
                beside=f"VOC {other[name].words(4)}",
                digits=4,
            )
            for name, rule in helped.items()
        ),
        Claim(
            "the geometric mean is not significantly changed",
            "appendix B.2",
            is_unchanged(own[GEOMETRIC], _CHANGE),
            f"COCO {own[GEOMETRIC].words(4)}, VOC {other[GEOMETRIC].words(4)}",
            f"{smallest_visible(own[GEOMETRIC]):.4f}",
        ),
        claim_gains(
            "with weights the barycenter keeps its advantage over both means",
            "table 11",
            {name: advantage[name] for name in means},
            stated={name: expected.gain(PAPERS, name, "mAP") for name in means},
            digits=4,
        ),
    ]


def _stated(expected: PaperFigures, name: str) -> float | None:
    weighted, equal = expected.get(name, "mAP"), expected.get(name, "equal")
    return None if weighted is None or equal is None else weighted - equal


def is_unchanged(gain: Figure, change: float) -> bool | None:
    """Whether nothing changed by as much as ``change``; None if these data cannot tell."""
    if gain.low > 0 or gain.high < 0:
        return False
    return True if -change < gain.low and gain.high < change else None
