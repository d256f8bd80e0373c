"""Tasks whose mistakes differ in cost, and answers and measures that know the cost."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paper.data.files import find_data
from paper.evidence.tasks import TASKS, Task
from wassemble.ensemble.completion import complete_scores
from wassemble.ensemble.decisions import choose_best, choose_least_cost
from wassemble.inputs import Edges, Predictions, read_edges
from wassemble.kernels import DenseKernel, LabelledKernel, from_cost_table, from_tree
from wassemble.labels import LabelSpace
from wassemble.metrics import Measure
from wassemble.solvers import Barycenter

Answer = Callable[[np.ndarray], np.ndarray]
"""From histograms to the places of the answers, ``(n_samples,)``."""


@dataclass(frozen=True, eq=False)
class CostTask:
    """Histograms of several models over one label set, and what mistakes cost."""

    title: str
    models: dict[str, np.ndarray]  # (n_samples, n_labels) each
    truth: np.ndarray
    is_test: np.ndarray
    cost: np.ndarray  # (n_labels, n_labels), of each answer (column) for each true label (row)
    kernels: dict[str, LabelledKernel]  # at the epsilon of 3 effective neighbours

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
    return Measure("accuracy", lambda scores, truth: (answer(scores) == truth).astype(float))


def minus_cost(answer: Answer, cost: np.ndarray) -> Measure:
    """Mean cost of the answers, a loss: its score has the sign that makes higher better."""
    return Measure("cost", lambda scores, truth: cost[truth, answer(scores)], is_loss=True)


def tree_steps(labels: LabelSpace, edges: Edges) -> np.ndarray:
    """Steps from label to label, up and down a tree, ``(n_labels, n_labels)``."""
    near = from_tree(labels, edges=edges, epsilon=1.0).kernel
    return np.rint(-np.log(np.asarray(near.to_dense())))


def sharpened_barycenter(
    stack: np.ndarray, kernel: LabelledKernel, sharpness: float, sweeps: int
) -> np.ndarray:
    """Algorithm 1 in float32, through K to a power."""
    entries = np.asarray(kernel.to_dense()).astype(np.float32) ** np.float32(sharpness)
    rule = Barycenter(max_sweeps=sweeps, tolerance=None)
    return np.asarray(rule.fuse(stack, DenseKernel(entries)).scores)


# Scores kept as float16 cannot tell less than this from 0, and a 0 is a geometric mean's veto.
_FLOOR = 1e-6


def histograms_of(models: list[Predictions]) -> dict[str, np.ndarray]:
    """Whole histograms by model: mass that a list leaves out is spread over its other labels.

    No label is ruled out: each has at least 1e-6 before rows are divided by their sums.
    """
    histograms = {}
    for each in models:
        scores = complete_scores(each, "spread", hard_confidence=0.9).astype(np.float32)
        scores = np.maximum(scores, np.float32(_FLOOR))
        histograms[each.model] = scores / scores.sum(axis=1, keepdims=True)
    return histograms


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


# What a user might ask of a camera on the road: a person who is overlooked costs most, a false
# alarm less, and among things, plants and places few mistakes matter.
# Krizhevsky 2009: kind, then the classes of each group of that kind.
_GROUPS = {
    "people": ["baby boy girl man woman"],
    "animals": [
        "beaver dolphin otter seal whale",
        "aquarium_fish flatfish ray shark trout",
        "bee beetle butterfly caterpillar cockroach",
        "bear leopard lion tiger wolf",
        "camel cattle chimpanzee elephant kangaroo",
        "fox porcupine possum raccoon skunk",
        "crab lobster snail spider worm",
        "crocodile dinosaur lizard snake turtle",
        "hamster mouse rabbit shrew squirrel",
    ],
    "vehicles": [
        "bicycle bus motorcycle pickup_truck train",
        "lawn_mower rocket streetcar tank tractor",
    ],
    "things": [
        "bottle bowl can cup plate",
        "clock keyboard lamp telephone television",
        "bed chair couch table wardrobe",
    ],
    "plants": [
        "orchid poppy rose sunflower tulip",
        "apple mushroom orange pear sweet_pepper",
        "maple_tree oak_tree palm_tree pine_tree willow_tree",
    ],
    "places": ["bridge castle house road skyscraper", "cloud forest mountain plain sea"],
}

# Rows are true kinds, columns answers. The diagonal is for another group of the same kind.
_COSTS = """
         people animals vehicles things plants places
people        2      10       10     12     12     12
animals       5       2        5      6      6      6
vehicles      5       5        2      6      6      6
things        4       4        4      2      2      2
plants        4       4        4      2      2      2
places        4       4        4      2      2      2
"""
_IN_GROUP = 1.0


def user_costs(classes: LabelSpace) -> np.ndarray:
    """Cost of each answer (column) for each true class (row), ``(n_labels, n_labels)``."""
    kinds, *rows = _COSTS.strip().splitlines()
    table = {
        (true, answer): float(cost)
        for true, *costs in map(str.split, rows)
        for answer, cost in zip(kinds.split(), costs, strict=True)
    }
    groups = [(kind, group.split()) for kind, each in _GROUPS.items() for group in each]
    cost = np.empty((len(classes), len(classes)))
    for true, rows_of in ((kind, classes.positions(names)) for kind, names in groups):
        for answer, names in groups:
            cost[np.ix_(rows_of, classes.positions(names))] = table[true, answer]
    for _, names in groups:
        places = classes.positions(names)
        cost[np.ix_(places, places)] = _IN_GROUP
    np.fill_diagonal(cost, 0)
    return cost
