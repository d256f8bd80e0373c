"""Tasks whose mistakes differ in cost, and answers and measures that know the cost."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wassemble.ensemble.completion import complete_scores
from wassemble.ensemble.decisions import choose_best, choose_least_cost
from wassemble.ensemble.learning.measure import Measure
from wassemble.experiments.tasks import TASKS, Task
from wassemble.experiments.user_costs import user_costs
from wassemble.inputs import Edges, Predictions, read_edges
from wassemble.inputs.datasets import find_data
from wassemble.kernels import LabelledKernel, from_cost_table, from_tree
from wassemble.labels import LabelSpace

__all__ = [
    "Answer",
    "CostTask",
    "answers",
    "cifar100_by_tree",
    "cifar100_by_user",
    "histograms_of",
    "imagenet",
    "minus_cost",
    "share_right",
    "tree_steps",
]

Answer = Callable[[np.ndarray], np.ndarray]
"""From histograms to the places of the answers, ``(n_samples,)``."""


@dataclass(frozen=True, eq=False)
class CostTask:
    """Histograms of several models over one label set, and what mistakes cost.

    Attributes
    ----------
    models : dict of name to array of shape (n_samples, n_labels)
    truth : array of int, shape (n_samples,)
    is_test : array of bool, shape (n_samples,)
    cost : array of shape (n_labels, n_labels)
        Of each answer (column) for each true label (row).
    kernels : dict of name to LabelledKernel
        At the epsilon that gives the median label 3 effective neighbours.
    """

    title: str
    models: dict[str, np.ndarray]
    truth: np.ndarray
    is_test: np.ndarray
    cost: np.ndarray
    kernels: dict[str, LabelledKernel]

    def stack(self, is_test: bool) -> np.ndarray:
        """Histograms of one side of the split, ``(n_models, n_samples, n_labels)``."""
        return np.stack([each[self.is_test == is_test] for each in self.models.values()])


def answers(cost: np.ndarray) -> dict[str, Answer]:
    """The two ways to an answer: the most likely label, or that of least expected cost."""
    return {
        "largest": choose_best,
        "least cost": lambda histograms: choose_least_cost(histograms, cost),
    }


def share_right(answer: Answer) -> Measure:
    """Accuracy of the answers."""
    return _mean_of("accuracy", lambda scores, truth: (answer(scores) == truth).astype(float))


def minus_cost(answer: Answer, cost: np.ndarray) -> Measure:
    """Mean cost of the answers, with the sign that makes higher better."""
    return _mean_of("cost", lambda scores, truth: -cost[truth, answer(scores)])


def _mean_of(name: str, each: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Measure:
    def score(scores: np.ndarray, truth: np.ndarray, sample_weight: np.ndarray | None) -> float:
        return float(np.average(each(scores, truth), weights=sample_weight))

    return Measure(name, score, each)


def tree_steps(labels: LabelSpace, edges: Edges) -> np.ndarray:
    """Steps from label to label, up and down a tree, ``(n_labels, n_labels)``."""
    near = from_tree(labels, edges=edges, epsilon=1.0).kernel
    return np.rint(-np.log(np.asarray(near.to_dense())))


# Scores kept as float16 cannot tell less than this from 0, and a 0 is a geometric mean's veto.
_FLOOR = 1e-6


def histograms_of(models: list[Predictions]) -> dict[str, np.ndarray]:
    """Whole histograms by model: mass that a list leaves out is spread over its other labels.

    No label is ruled out: each has at least 1e-6 before rows are divided by their sums.
    """
    found = {}
    for each in models:
        scores = complete_scores(each, "spread", hard_confidence=0.9).astype(np.float32)
        scores = np.maximum(scores, np.float32(_FLOOR))
        found[each.model] = scores / scores.sum(axis=1, keepdims=True)
    return found


def cifar100_by_tree() -> CostTask:
    """CIFAR-100 by three networks; a mistake costs its steps in the tree of classes."""
    task = TASKS["cifar100"]()
    cost = tree_steps(task.target, read_edges(find_data("cifar100/tree.txt")))
    return _from_task(task, "CIFAR-100, steps in the tree of classes", cost, task.kernels)


def cifar100_by_user() -> CostTask:
    """CIFAR-100 by three networks; a mistake costs what a user says."""
    task = TASKS["cifar100"]()
    cost = user_costs(task.target)
    kernels = {"user's costs": from_cost_table(cost, task.target)}
    return _from_task(task, "CIFAR-100, a user's costs", cost, kernels)


def _from_task(
    task: Task, title: str, cost: np.ndarray, kernels: dict[str, LabelledKernel]
) -> CostTask:
    truth = task.target.positions(task.truth)
    return CostTask(title, histograms_of(task.models), truth, task.is_test, cost, kernels)


# Shares of the images by a hash of their numbers: to validate, to test, and the rest.
_VALIDATION, _TEST = 0.02, 0.06


def imagenet() -> CostTask:
    """ImageNet by the five best classes of eight networks; a mistake costs its WordNet steps.

    A network's score for a rank is how often the truth stood there on images of neither
    part; mass that the five do not reach is spread over the other classes.
    """
    index = json.loads(find_data("imagenet/imagenet_class_index.json").read_text())
    classes = LabelSpace(index[str(number)][0] for number in range(1000))
    edges = read_edges(find_data("imagenet/wordnet.parent-child.mintree.txt"))
    with np.load(find_data("imagenet/top5_8models.npz")) as arrays:
        names, top5, truth = (arrays[name] for name in ("models", "top5", "truth"))
    place = np.array([zlib.crc32(str(i).encode()) / 2**32 for i in range(len(truth))])
    kept = place < _VALIDATION + _TEST
    models = []
    for name, best in zip(names, top5.astype(int), strict=True):
        at_rank = (best[~kept] == truth[~kept, None]).mean(axis=0)
        scores = np.full((int(kept.sum()), len(classes)), np.nan, dtype=np.float32)
        np.put_along_axis(scores, best[kept], at_rank[None], axis=1)
        ids = np.flatnonzero(kept)
        models.append(Predictions(str(name), ids, classes, scores, kind="multiclass"))
    return CostTask(
        "ImageNet, steps in WordNet",
        histograms_of(models),
        truth[kept].astype(int),
        place[kept] >= _VALIDATION,
        tree_steps(classes, edges),
        {"WordNet": from_tree(classes, edges=edges)},
    )
