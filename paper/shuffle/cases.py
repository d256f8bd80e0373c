"""What is shuffled: models, the neighbourhoods of their labels, and ways to fuse them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paper.cost_sensitive.tasks import histograms_of, sharpened_barycenter, tree_steps
from paper.data.files import find_data
from paper.evidence.tasks import TASKS
from wassemble.ensemble.learning.fitting import shuffle_labels
from wassemble.ensemble.shuffling import group_labels, label_similarity, shuffle_inside
from wassemble.inputs import Predictions, load_animals, read_edges
from wassemble.kernels import DenseKernel, Kernel, LabelledKernel
from wassemble.solvers import ARITHMETIC, Barycenter, Unbalanced

SHUFFLED = "barycenter, labels shuffled"

Knob = float
Fuse = Callable[[np.ndarray, Knob], np.ndarray]
"""From a stack of models, (n_models, n_samples, n_source), and a knob to a consensus."""


@dataclass(frozen=True, eq=False)
class Shuffled:
    """Scores of all models after shuffles, validation samples first, and their truth."""

    models: dict[str, np.ndarray]
    truth: np.ndarray
    is_test: np.ndarray
    samples: np.ndarray  # of each row: a sample is there as often as it was shuffled

    def stack(self, is_test: bool) -> np.ndarray:
        """Scores of one side of the split."""
        return np.stack([each[self.is_test == is_test] for each in self.models.values()])


@dataclass(frozen=True, eq=False)
class Case:
    """Models on samples whose truth is known, and what is known about their labels."""

    name: str
    title: str
    models: list[Predictions]
    truth: np.ndarray
    is_test: np.ndarray
    similar: np.ndarray  # (n_source, n_source): who is whose neighbour
    cost: np.ndarray  # (n_target, n_target), of each answer (column) for each true label (row)
    cost_title: str
    untuned: Knob  # of a barycenter that nothing is known about
    knobs: tuple[Knob, ...]
    barycenter: Fuse
    controls: dict[str, Fuse]  # other ways through the kernel, with the same knob
    complete: Callable[[list[Predictions]], dict[str, np.ndarray]]
    # From the models' labels to those of the truth, after a mean.
    carry: Callable[[np.ndarray], np.ndarray] = lambda scores: scores

    def shuffle(self, size: int, n_shuffles: int, seed: int) -> Shuffled:
        """Scores shuffled inside groups of ``size`` neighbours, per sample and model.

        The two sides of the split have shuffles of their own.
        """
        labels = self.models[0].labels
        groups = [[labels[i] for i in group] for group in group_labels(self.similar, size)]
        parts, rows = [], []
        for is_test in (False, True):
            mine = np.flatnonzero(self.is_test == is_test)
            for turn in range(n_shuffles if size > 1 else 1):
                rng = np.random.default_rng([seed, size, turn, int(is_test)])
                taken = [model.take(mine) for model in self.models]
                parts.append(self.complete(shuffle_inside(taken, groups, rng)))
                rows.append(mine)
        places = np.concatenate(rows)
        models = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Shuffled(models, self.truth[places], self.is_test[places], places)


def cifar100(kernel_name: str, knobs: tuple[float, ...], *, sweeps: int, seed: int) -> Case:
    """CIFAR-100 by three networks; the knob is the power that K is raised to."""
    task = TASKS["cifar100"]()
    kernel = task.kernels[kernel_name]

    def through(kernel: LabelledKernel) -> Fuse:
        return lambda stack, sharpness: sharpened_barycenter(stack, kernel, sharpness, sweeps)

    real = through(kernel)
    return Case(
        name=f"cifar100-{kernel_name.lower()}",
        title=f"CIFAR-100, {kernel_name} neighbours",
        models=task.models,
        truth=task.target.positions(task.truth),
        is_test=task.is_test,
        similar=label_similarity(kernel),
        cost=tree_steps(task.target, read_edges(find_data("cifar100/tree.txt"))),
        cost_title="steps in the tree",
        untuned=1.0,
        knobs=knobs,
        barycenter=real,
        controls={
            "arithmetic mean through K": lambda stack, s: real(_mean(stack), s),
            SHUFFLED: through(shuffle_labels(kernel, seed)),
        },
        complete=histograms_of,
    )


def animals(knobs: tuple[float, ...], *, mass_penalty: float, epsilon: float) -> Case:
    """Animals from attributes; attributes of the same animals are neighbours.

    The knob is epsilon. Means are mapped to animals by the same table.
    """
    data = load_animals()
    task = TASKS["animals"]()
    has = data.has_attribute
    kernel: Kernel = DenseKernel(has / has.sum(axis=0))

    def fuse(stack: np.ndarray, epsilon: float) -> np.ndarray:
        rule = Barycenter(Unbalanced(mass_penalty, epsilon=epsilon))
        return np.asarray(rule.fuse(stack, kernel, holds="scores").scores)

    lengths = np.linalg.norm(has, axis=1)
    similar = has @ has.T / np.outer(lengths, lengths)
    np.fill_diagonal(similar, 0)
    return Case(
        name="animals",
        title="Animals from attributes, attributes of the same animals",
        models=task.models,
        truth=data.truth,
        is_test=data.is_test,
        similar=similar,
        cost=(has[:, :, None] != has[:, None, :]).sum(axis=0).astype(float),
        cost_title="attributes that differ",
        untuned=epsilon,
        knobs=knobs,
        barycenter=fuse,
        controls={"arithmetic mean through K": lambda stack, e: fuse(_mean(stack), e)},
        complete=lambda models: {each.model: each.scores for each in models},
        carry=kernel.apply_transpose,
    )


def _mean(stack: np.ndarray) -> np.ndarray:
    return np.asarray(ARITHMETIC.fuse(stack).scores)[None]
