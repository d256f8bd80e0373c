"""Tasks to learn a kernel on: samples for candidates, samples to learn on, samples to test on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paper.evidence.tasks import TASKS, Task, every_language
from wassemble.ensemble.completion import Unobserved
from wassemble.kernels import DenseKernel, LabelledKernel, from_attributes

__all__ = ["KERNEL_TASKS", "KernelTask"]


@dataclass(frozen=True, eq=False)
class KernelTask:
    """A task and what a kernel is learned from.

    Attributes
    ----------
    learns : bool array of shape (n_samples,)
        Samples to learn on; what is neither theirs nor for test makes candidates.
    make_candidates : callable
        Candidates made from the samples of a mask.
    carrier : str or None
        The candidate that a mean goes through; None where names will do.
    weights : array of shape (n_models,)
    unit : sequence of str
        Samples of the same unit stand and fall together.
    """

    task: Task
    learns: np.ndarray
    make_candidates: Callable[[np.ndarray], dict[str, Any]]
    weights: np.ndarray
    unit: Sequence[str]
    carrier: str | None = None
    unobserved: Unobserved = "spread"

    @property
    def is_test(self) -> np.ndarray:
        """Samples for test."""
        return self.task.is_test


def animals() -> KernelTask:
    """Attributes to animals: no label of the models is a target label."""
    task = TASKS["animals"]()
    table = task.kernels["attributes"].to_dense() > 0
    source, target = task.models[0].labels, task.target
    columns = table / table.sum(axis=0)
    # Animals with the same attributes are close: the cosine between columns.
    unit = table / np.sqrt(table.sum(axis=0))
    close = (unit.T @ unit) ** 8
    tables = {
        "rows": (table / table.sum(axis=1, keepdims=True), "attributes, rows divided by sums"),
        "similar animals": (columns @ (close / close.sum(axis=0)), "attributes of similar animals"),
        "every animal": (np.ones(table.shape), "every attribute to every animal"),
    }
    candidates: dict[str, Any] = {
        name: LabelledKernel(DenseKernel(entries), source, target, origin)
        for name, (entries, origin) in tables.items()
    }
    candidates["columns"] = from_attributes(table, source, target)
    even = np.full(len(task.models), 1 / len(task.models))
    return KernelTask(task, ~task.is_test, lambda _: candidates, even, _ids(task), "columns")


def languages() -> KernelTask:
    """Nine label sets: candidates are each detector's mistakes, with several priors."""
    task = every_language()
    weights = task.weights_by_accuracy()

    def candidates(rows: np.ndarray) -> dict[str, Any]:
        return {
            f"mistakes, prior {prior:g}": task.kernels_of_mistakes(rows, prior=prior)
            for prior in (0.03, 0.2, 1.0)
        }

    return KernelTask(task, task.last_of_each(), candidates, weights, task.truth, unobserved="drop")


def cifar100() -> KernelTask:
    """Three networks over the same hundred classes: word vectors, a tree, and mistakes."""
    task = TASKS["cifar100"]()
    # Every third sample that is not for test makes candidates.
    learns = ~task.is_test & (np.cumsum(~task.is_test) % 3 != 0)

    def candidates(rows: np.ndarray) -> dict[str, Any]:
        return {**task.kernels, "mistakes": task.kernels_of_mistakes(rows, prior=0.2)}

    return KernelTask(task, learns, candidates, task.weights_by_accuracy(), _ids(task))


def _ids(task: Task) -> list[str]:
    return [str(sample) for sample in task.models[0].samples.tolist()]


KERNEL_TASKS: dict[str, Callable[[], KernelTask]] = {
    "animals": animals,
    "languages": languages,
    "cifar100": cifar100,
}
