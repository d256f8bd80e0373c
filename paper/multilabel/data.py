"""Multi-label tasks as arrays, with the costs that generic kernels are made of."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from paper.data.files import find_data
from paper.evidence.tasks import TASKS, Task
from paper.record.judging import Judge
from wassemble.ensemble.learning.trial import Trial
from wassemble.inputs import Predictions
from wassemble.kernels import from_cooccurrence
from wassemble.metrics import MEAN_AVERAGE_PRECISION

GLOVE, VISUAL, COOCCURRENCE = "GloVe", "visual embeddings", "co-occurrence"


@dataclass(frozen=True, eq=False)
class LabelTask:
    """Scores of several models for the same labels, the truth, and one judge per side.

    Attributes
    ----------
    scores : array of shape (n_models, n_samples, n_labels)
    costs : dict of name to array of shape (n_labels, n_labels)
        Of generic kernels, ``K = exp(-cost / epsilon)``.
    described : dict of str to str
        What is known of each model, by name.
    """

    task: Task
    scores: np.ndarray
    costs: dict[str, np.ndarray]
    described: dict[str, str]
    validation: Judge
    test: Judge

    @property
    def models(self) -> list[str]:
        """Names."""
        return list(self.described)

    def part(self, is_test: bool) -> np.ndarray:
        """Scores on one side of the split."""
        return self.scores[:, self.task.is_test == is_test]

    def trial(self) -> Trial:
        """What weights are learned from: the validation side."""
        models, truth = self.task.part(False)
        return Trial(models, self.task.target, self.task.kind, truth)


def load_task(name: str, *, least_score: float, seed: int = 0) -> LabelTask:
    """One of "coco" and "voc", every score at least ``least_score``.

    A zero of one model is a veto in a geometric mean. Detectors report nothing below their
    threshold, which is not to say that nothing is there.
    """
    task = TASKS[name]()
    members = [
        Predictions(m.model, m.samples, m.labels, np.maximum(m.scores, least_score), kind=task.kind)
        for m in task.models
    ]
    task = replace(task, models=members)
    validation, test = (
        Judge(MEAN_AVERAGE_PRECISION, task.truth[task.is_test == side], seed=seed)
        for side in (False, True)
    )
    costs = _coco_costs(task) if name == "coco" else _voc_costs(task)
    described = {m.model: "" for m in members}
    if name == "coco":
        for each in json.loads(find_data("coco_multilabel/models.json").read_text())["models"]:
            share = f"{100 * each['train_fraction']:g} %"
            described[each["name"]] = f"{each['features']}, {share} of the training images"
    scores = np.stack([m.scores for m in members])
    return LabelTask(task, scores, costs, described, validation, test)


def _coco_costs(task: Task) -> dict[str, np.ndarray]:
    with np.load(find_data("coco_multilabel/labels.npz")) as arrays:
        is_seen = arrays["split"] == 0
        labels = arrays["labels"][is_seen].astype(np.float64)
    with np.load(find_data("coco_multilabel/features_resnet50_center_int8.npz")) as arrays:
        features = arrays["codes"][is_seen] * arrays["scale"].astype(np.float64)
    with np.load(find_data("coco_multilabel/category_glove100.npz")) as arrays:
        vectors = arrays["vectors"].astype(np.float64)
    together = from_cooccurrence(labels, task.target).to_dense()
    return {
        GLOVE: _distances(vectors),
        VISUAL: _distances(visual_embeddings(features, labels)),
        COOCCURRENCE: -np.log(together),
    }


def _voc_costs(task: Task) -> dict[str, np.ndarray]:
    together = task.kernels[COOCCURRENCE].to_dense().astype(np.float64)
    with np.errstate(divide="ignore"):  # never together: an infinite cost
        apart = -np.log(together)
    vectors = np.load(find_data("voc2007/voc_glove_300d.npy")).astype(np.float64)
    return {GLOVE: _distances(vectors), COOCCURRENCE: apart}


def visual_embeddings(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean feature vector of the images that have a label, ``(n_labels, n_features)``."""
    return np.asarray((labels.T @ features) / labels.sum(axis=0)[:, None])


def _distances(vectors: np.ndarray) -> np.ndarray:
    """Between vectors of length 1, as in the paper's kernel from word vectors."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(cdist(unit, unit))
