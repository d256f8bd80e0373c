"""The multi-label tasks, and every rule on them by name, tuned on validation images."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product

import numpy as np
from scipy.spatial.distance import cdist

from paper.data.files import find_data
from paper.data.wordnet import wordnet_steps
from paper.evidence.tasks import TASKS, Task
from paper.record.findings import Figure, Progress, follow
from paper.record.judging import Judge
from wassemble.inputs import Predictions
from wassemble.kernels import Kernel, from_cooccurrence, from_cost, top_labels
from wassemble.kernels.builders.cost import local_bandwidths
from wassemble.metrics import MEAN_AVERAGE_PRECISION
from wassemble.solvers import Barycenter, Fused, PowerMean, Rule, Single, Unbalanced

BEST, ARITHMETIC, GEOMETRIC = "best single model", "arithmetic mean", "geometric mean"
GATED_MEAN = "gated arithmetic mean"
IDENTITY, GATE, PAPERS = "K = I", "diagonal K, pure gate", "diagonal K, the paper's"


@dataclass(frozen=True, eq=False)
class LabelTask:
    """Scores of several models for the same labels, the truth, and one judge per side."""

    task: Task
    scores: np.ndarray  # (n_models, n_samples, n_labels)
    costs: dict[str, np.ndarray]  # of generic kernels: K = exp(-cost / epsilon)
    described: dict[str, str]  # what is known of each model, by name
    validation: Judge
    test: Judge

    def part(self, is_test: bool) -> np.ndarray:
        """Scores on one side of the split."""
        return self.scores[:, self.task.is_test == is_test]


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
    return {
        "GloVe": _distances(vectors),
        "GloVe, local": _local(_distances(vectors)),
        "visual embeddings": _distances(visual_embeddings(features, labels)),
        "visual embeddings, local": _local(_distances(visual_embeddings(features, labels))),
        "co-occurrence": -np.log(from_cooccurrence(labels, task.target).to_dense()),
        "WordNet": wordnet_steps(task.target) / _STEPS,
    }


def _voc_costs(task: Task) -> dict[str, np.ndarray]:
    together = task.kernels["co-occurrence"].to_dense().astype(np.float64)
    with np.errstate(divide="ignore"):  # never together: an infinite cost
        apart = -np.log(together)
    vectors = np.load(find_data("voc2007/voc_glove_300d.npy")).astype(np.float64)
    return {
        "GloVe": _distances(vectors),
        "GloVe, local": _local(_distances(vectors)),
        "co-occurrence": apart,
        "WordNet": wordnet_steps(task.target) / _STEPS,
    }


# Steps in WordNet that cost 1, so that the same epsilons serve for all costs.
_STEPS = 5.0
_LOCAL_BANDWIDTH = 5


def _local(cost: np.ndarray) -> np.ndarray:
    """Costs measured by those of both labels' fifth neighbours: ``local_bandwidth``."""
    widths = np.sqrt(local_bandwidths(cost, _LOCAL_BANDWIDTH))
    return np.asarray(cost / np.outer(widths, widths))


def visual_embeddings(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean feature vector of the images that have a label, ``(n_labels, n_features)``."""
    return np.asarray((labels.T @ features) / labels.sum(axis=0)[:, None])


def _distances(vectors: np.ndarray) -> np.ndarray:
    """Squared, between vectors of length 1, as in the paper's kernel from word vectors."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(cdist(unit, unit, "sqeuclidean"))


@dataclass(frozen=True)
class Grid:
    """What is tried on validation images; mass_penalty is in units of epsilon.

    ``zetas`` are floors of diagonal kernels, of which Algorithm 2 takes a power; ``floors``
    multiply the gated mean as they are.
    """

    n_tops: tuple[int, ...] = (1, 2, 3)
    zetas: tuple[float, ...] = (1e-5, 0.001, 0.01, 0.05, 0.1, 0.3)
    floors: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9)
    mass_penalties: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
    orders: tuple[float, ...] = (0.25, 0.5, 0.75, 1.5, 2.0, 4.0)
    least_score: float = 0.001
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Candidate:
    """A rule, what it goes through, and its settings in words."""

    settings: str
    rule: Rule
    # One for all samples, or what makes it from the scores; None is the identity.
    kernel: Kernel | Callable[[np.ndarray], Kernel] | None = None

    def run(self, scores: np.ndarray, weights: np.ndarray | None = None) -> Fused:
        """The consensus, and how it ended."""
        kernel = self.kernel
        if kernel is not None and not isinstance(kernel, Kernel):
            kernel = kernel(scores)
        return self.rule.fuse(scores, kernel, weights=weights, holds="scores")

    def fuse(self, scores: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """From ``(n_models, n_samples, n_labels)`` to ``(n_samples, n_labels)``."""
        consensus: np.ndarray = self.run(scores, weights).scores
        return consensus

    def with_sweeps(self, sweeps: int | None) -> Candidate:
        """The same barycenter after so many sweeps, or converged."""
        assert isinstance(self.rule, Barycenter)
        assert isinstance(self.rule.mass, Unbalanced)
        return replace(self, rule=_barycenter(self.rule.mass, sweeps))


def _barycenter(mass: Unbalanced, sweeps: int | None = None) -> Barycenter:
    if sweeps is None:
        return Barycenter(mass, tolerance=1e-4)
    return Barycenter(mass, max_sweeps=sweeps, tolerance=None)


def _diagonals(grid: Grid, *, mean_scores: bool) -> list[Candidate]:
    """Barycenters with a diagonal kernel, which moves nothing between labels, converged.

    Labels in some model's top N have the mean of the models' scores, as in the paper, or 1; all
    others zeta. The kernel is given as it is, so only mass_penalty / epsilon counts.
    """
    return [
        Candidate(
            f"top {n_top}, zeta {zeta:g}, mass_penalty {mass_penalty:g} epsilon",
            _barycenter(Unbalanced(mass_penalty, epsilon=1.0)),
            partial(top_labels, n_top=n_top, floor=zeta, mean_scores=mean_scores),
        )
        for n_top, zeta, mass_penalty in product(grid.n_tops, grid.zetas, grid.mass_penalties)
    ]


def generics(
    cost: np.ndarray, epsilons: Sequence[float], ratios: Sequence[float], sweeps: int
) -> list[Candidate]:
    """Barycenters with K = exp(-cost / epsilon); ``ratios`` are mass_penalty / epsilon."""
    return [
        Candidate(
            f"epsilon {epsilon:g}, mass_penalty {ratio:g} epsilon",
            _barycenter(Unbalanced(ratio * epsilon, epsilon=epsilon), sweeps),
            from_cost(cost, epsilon),
        )
        for epsilon, ratio in product(epsilons, ratios)
    ]


def without_transport(models: Iterable[str], grid: Grid) -> dict[str, list[Candidate]]:
    """Single models, means, and barycenters whose kernel is diagonal, by name."""

    def means(*orders: float) -> list[Candidate]:
        return [Candidate(f"order {order:g}", PowerMean(order)) for order in orders]

    return {
        BEST: [Candidate(name, Single(place)) for place, name in enumerate(models)],
        ARITHMETIC: means(1.0),
        GEOMETRIC: means(0.0),
        "power mean": means(*grid.orders),
        GATED_MEAN: [
            # Not `GatedMean`, whose gate models without weight have no say in.
            Candidate(
                f"top {n_top}, floor {floor:g}",
                PowerMean(1.0),
                partial(top_labels, n_top=n_top, floor=floor),
            )
            for n_top, floor in product(grid.n_tops, grid.floors)
        ],
        IDENTITY: [
            Candidate(f"mass_penalty {each:g} epsilon", _barycenter(Unbalanced(each, epsilon=1.0)))
            for each in grid.mass_penalties
        ],
        GATE: _diagonals(grid, mean_scores=False),
        PAPERS: _diagonals(grid, mean_scores=True),
    }


@dataclass(frozen=True, eq=False)
class Study:
    """Tuned rules of one task."""

    task: LabelTask
    tried: dict[str, dict[Candidate, float]]  # validation mAP of every candidate, best first

    @cached_property
    def best(self) -> dict[str, Candidate]:
        """The best candidate of each name."""
        return {name: next(iter(ranked)) for name, ranked in self.tried.items()}

    @cached_property
    def scores(self) -> dict[str, np.ndarray]:
        """What they make of the test images."""
        held_out = self.task.part(True)
        return {name: candidate.fuse(held_out) for name, candidate in self.best.items()}

    def gain(self, name: str, over: str) -> Figure:
        """Paired gain in test mAP."""
        return self.task.test.gain(self.scores[name], self.scores[over])


def rank(
    candidates: Sequence[Candidate], scores: np.ndarray, judge: Judge
) -> dict[Candidate, float]:
    """The judge's figure for each candidate, best first; of equal ones the first."""
    figures = {each: judge.score(each.fuse(scores)) for each in candidates}
    return dict(sorted(figures.items(), key=lambda each: -each[1]))


def study_tasks(
    grid: Grid,
    candidates_of: Callable[[LabelTask], dict[str, list[Candidate]]],
    progress: Progress = None,
) -> dict[str, Study]:
    """COCO and VOC, with the best of each name's candidates on validation images."""
    tasks = {
        "COCO": load_task("coco", least_score=0.0, seed=grid.seed),
        "VOC": load_task("voc", least_score=grid.least_score, seed=grid.seed),
    }
    studies = {title: Study(task, {}) for title, task in tasks.items()}
    every = [(title, *each) for title in tasks for each in candidates_of(tasks[title]).items()]
    for title, name, candidates in follow(every, progress):
        task = tasks[title]
        studies[title].tried[name] = rank(candidates, task.part(False), task.validation)
    return studies
