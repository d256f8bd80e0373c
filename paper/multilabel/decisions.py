"""Precision, recall and F1 of multi-label decisions (the paper's appendix B.1, table 10)."""

from __future__ import annotations

import numpy as np

from paper.multilabel.data import LabelTask
from paper.multilabel.study import Study
from paper.record.findings import Cell, Table
from paper.record.paper_figures import PaperFigures
from wassemble.metrics import precision_recall_f1

_MODELS_NOTE = """\
Decisions at 0.5. F1-C is the harmonic mean of P-C and R-C, which is what the paper's own rows
have. The paper's models are not ours; their rows show the level of its table."""

_DECISIONS_NOTE = """\
The paper's table 10 announces these rows and has only those of single models. At 0.5, a
barycenter is not judged like a mean: Algorithm 2 raises scores to the power mass_penalty /
(mass_penalty + epsilon), which lifts small ones, while a gate (zeta below 1) lowers what is
outside the top N, and mean scores as K lower everything. The last two columns have the
threshold of best F1-O on validation images (steps of {step:g}), and F1-O on test images there."""

_MEASURES = {
    "F1-C": "f1_of_means",
    "P-C": "precision_per_class",
    "R-C": "recall_per_class",
    "F1-O": "f1_overall",
    "P-O": "precision_overall",
    "R-O": "recall_overall",
}


def models_table(task: LabelTask, expected: PaperFigures) -> Table:
    """Ours and the paper's (its tables 5 and 10)."""
    rows: list[list[Cell]] = []
    models = zip(task.described.items(), task.part(True), strict=True)
    for (name, described), scores in models:
        rows.append([name, described, task.test.figure(scores), *_decisions(scores, task, 0.5)])
    for name, figures in expected.figures.items():
        if "trained" in figures:
            paper = [expected.get(name, each) for each in ("mAP", *_MEASURES)]
            rows.append([f"paper: {name}", figures["trained"], *paper])
    columns = ["model", "trained on", "mAP", *_MEASURES]
    return Table("COCO: the models, and the paper's", columns, rows, note=_MODELS_NOTE)


def _decisions(scores: np.ndarray, task: LabelTask, threshold: float) -> list[Cell]:
    measured = precision_recall_f1(scores, task.test.truth, threshold=threshold)
    return [getattr(measured, name) for name in _MEASURES.values()]


def decisions_table(study: Study, step: float) -> Table:
    """Each rule at 0.5 and at a threshold of validation images."""
    task = study.task
    thresholds = np.arange(step, 1, step)
    rows: list[list[Cell]] = []
    for name, candidate in study.best.items():
        seen = candidate.fuse(task.part(False))
        f1 = [
            precision_recall_f1(seen, task.validation.truth, threshold=t).f1_overall
            for t in thresholds
        ]
        tuned = float(thresholds[int(np.argmax(f1))])
        scores = study.scores[name]
        overall = precision_recall_f1(scores, task.test.truth, threshold=tuned).f1_overall
        rows.append([name, *_decisions(scores, task, 0.5), tuned, overall])
    columns = ["rule", *_MEASURES, "tuned threshold", "F1-O there"]
    note = _DECISIONS_NOTE.format(step=step)
    return Table("COCO: decisions at 0.5", columns, rows, note=note)
