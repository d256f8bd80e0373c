"""Every rule of the multi-label experiments by name, tuned on validation images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product

import numpy as np

from paper.multilabel.data import LabelTask, load_task
from paper.record.findings import Figure, Progress, follow
from paper.record.judging import Judge
from wassemble.kernels import Kernel, from_cost, top_labels
from wassemble.solvers import (
    Barycenter,
    Fused,
    PowerMean,
    Rule,
    Single,
    Unbalanced,
)

BEST, ARITHMETIC, GEOMETRIC = "best single model", "arithmetic mean", "geometric mean"
GATED_MEAN = "gated arithmetic mean"
IDENTITY, GATE, PAPERS = "K = I", "diagonal K, pure gate", "diagonal K, the paper's"


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
    """A rule, what it goes through, and its settings in words.

    Attributes
    ----------
    kernel : Kernel, callable or None
        One for all samples, or what makes it from the scores; None is the identity.
    """

    settings: str
    rule: Rule
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


def _barycenter(mass: Unbalanced, sweeps: int | None) -> Barycenter:
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
            _barycenter(Unbalanced(mass_penalty, epsilon=1.0), None),
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


def without_transport(models: Sequence[str], grid: Grid) -> dict[str, list[Candidate]]:
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
            Candidate(
                f"mass_penalty {mass_penalty:g} epsilon",
                _barycenter(Unbalanced(mass_penalty, epsilon=1.0), None),
            )
            for mass_penalty in grid.mass_penalties
        ],
        GATE: _diagonals(grid, mean_scores=False),
        PAPERS: _diagonals(grid, mean_scores=True),
    }


@dataclass(frozen=True, eq=False)
class Study:
    """Tuned rules of one task.

    Attributes
    ----------
    tried : dict of name to dict of candidate to float
        Validation mAP of every candidate, best first.
    """

    task: LabelTask
    tried: dict[str, dict[Candidate, float]]

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


def study(
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
    every = [
        (title, name, candidates)
        for title, task in tasks.items()
        for name, candidates in candidates_of(task).items()
    ]
    for title, name, candidates in follow(every, progress):
        task = tasks[title]
        studies[title].tried[name] = rank(candidates, task.part(False), task.validation)
    return studies
