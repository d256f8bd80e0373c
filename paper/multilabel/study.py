"""Every rule of the multi-label experiments by name, tuned on validation images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paper.multilabel.data import LabelTask
from paper.multilabel.rules import (
    PowerMean,
    Rule,
    Single,
    diagonals,
    gated_means,
    tune,
)
from paper.record.findings import Figure, Progress

__all__ = [
    "ARITHMETIC",
    "BEST",
    "GATE",
    "GATED_MEAN",
    "GEOMETRIC",
    "IDENTITY",
    "PAPERS",
    "Study",
    "count_steps",
    "show_gain",
    "study",
    "without_transport",
]

BEST, ARITHMETIC, GEOMETRIC = "best single model", "arithmetic mean", "geometric mean"
GATED_MEAN = "gated arithmetic mean"
IDENTITY, GATE, PAPERS = "K = I", "diagonal K, pure gate", "diagonal K, the paper's"

Candidates = dict[str, list[Rule]]
"""What is tried, by the name of the rule."""


@dataclass(frozen=True, eq=False)
class Study:
    """Tuned rules of one task.

    Attributes
    ----------
    tried : dict of name to dict of rule to float
        Validation mAP of every candidate, best first.
    rules : dict of name to rule
        The best candidates.
    scores : dict of name to array
        Their scores on test images.
    """

    task: LabelTask
    tried: dict[str, dict[Rule, float]]
    rules: dict[str, Rule]
    scores: dict[str, np.ndarray]

    def gain(self, name: str, over: str) -> Figure:
        """Paired gain in test mAP."""
        return self.task.test.gain(self.scores[name], self.scores[over])


def study(task: LabelTask, candidates: Candidates, step: Callable[[], None]) -> Study:
    """Choose the best of each name's candidates on validation images."""
    seen = task.part(False)
    tried = {name: tune(rules, seen, task.validation, step) for name, rules in candidates.items()}
    rules = {name: next(iter(found)) for name, found in tried.items()}
    held_out = task.part(True)
    scores = {name: rule.fuse(held_out) for name, rule in rules.items()}
    return Study(task, tried, rules, scores)


def without_transport(
    models: Sequence[str],
    *,
    n_tops: Sequence[int],
    zetas: Sequence[float],
    floors: Sequence[float],
    mass_penalties: Sequence[float],
    orders: Sequence[float],
) -> Candidates:
    """Single models, means, and barycenters whose kernel is diagonal.

    ``zetas`` are floors of diagonal kernels, of which Algorithm 2 takes a power; ``floors``
    multiply the gated mean as they are.
    """
    gates = (n_tops, zetas, mass_penalties)
    return {
        BEST: [Single(name, place) for place, name in enumerate(models)],
        ARITHMETIC: [PowerMean(1.0)],
        GEOMETRIC: [PowerMean(0.0)],
        "power mean": [PowerMean(order) for order in orders],
        GATED_MEAN: [*gated_means(n_tops, floors)],
        IDENTITY: [*diagonals((None,), (1.0,), mass_penalties)],
        GATE: [*diagonals(*gates)],
        PAPERS: [*diagonals(*gates, mean_scores=True)],
    }


def count_steps(
    candidates: Mapping[str, Candidates], progress: Progress, *, n_gains: int
) -> Callable[[], None]:
    """A function to call after each candidate and each of ``n_gains`` for each rule's name."""
    sizes = [len(rules) + n_gains for each in candidates.values() for rules in each.values()]
    n_all = sum(sizes)
    n_done = 0

    def step() -> None:
        nonlocal n_done
        n_done += 1
        if progress is not None:
            progress(n_done, n_all)

    return step


def show_gain(gain: Figure) -> str:
    """A gain in words."""
    return f"{gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
