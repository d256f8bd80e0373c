"""A case: a task, the samples that are learned from, and those that are tested on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from paper.evidence.tasks import Task
from wassemble.inputs import Predictions
from wassemble.metrics import USUAL, Measure, PairedBootstrap

SHARES = (1.0, 0.25, 0.05)
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Draw:
    """Which samples of a task are learned from.

    Attributes
    ----------
    share : float
        Of the samples to learn from, spread evenly over the true labels.
    seed : int
        Of the share; nothing is drawn for all of them.
    split : int
        0 is the task's own split into samples to learn from and to test on; another number is
        the seed of a new one, of the same sizes.
    """

    share: float = 1.0
    seed: int = 0
    split: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether it is every sample to learn from, of the task's own split."""
        return self.share == 1 and self.split == 0

    @property
    def name(self) -> str:
        """Of its records.

        Examples
        --------
        >>> Draw().name, Draw(0.05, 2).name, Draw(split=1).name
        ('100', '005-2', '100-split-1')
        """
        words = [f"{round(100 * self.share):03d}"]
        words += [str(self.seed)] if self.share < 1 else []
        return "-".join(words + ([f"split-{self.split}"] if self.split else []))

    def __str__(self) -> str:
        share = f"{self.share:.0%}".replace("%", " %")
        drawn = f", draw {self.seed}" if self.share < 1 else ""
        return share + drawn + (f", new split {self.split}" if self.split else "")


def list_draws(*, has_been_seen: bool) -> list[Draw]:
    """Every draw of a task, all samples first; with new splits if its test samples were seen."""
    splits = [Draw(split=seed) for seed in SEEDS] if has_been_seen else []
    return [Draw(), *splits, *(Draw(share, seed) for share in SHARES[1:] for seed in SEEDS)]


class Case:
    """A task with one draw of its samples.

    Attributes
    ----------
    known, test : arrays of int
        Samples to learn from, and to test on.
    """

    def __init__(self, task: Task, draw: Draw) -> None:
        self.task, self.draw = task, draw
        is_test = task.is_test if draw.split == 0 else _split(task, draw.split)
        known = np.flatnonzero(~is_test)
        self.known = known if draw.share == 1 else _draw(_strata(task)[known], known, draw)
        self.test = np.flatnonzero(is_test)

    @cached_property
    def places(self) -> np.ndarray:
        """The truth of all samples: places of labels, or 1, 0 and nan for each label."""
        truth = self.task.truth
        return truth if isinstance(truth, np.ndarray) else self.task.target.places(truth)

    @property
    def is_multilabel(self) -> bool:
        """Whether samples have any number of true labels."""
        return self.places.ndim == 2

    @property
    def measure(self) -> Measure:
        """Accuracy, or mean average precision."""
        return USUAL["multilabel" if self.is_multilabel else "multiclass"]

    def models(self, rows: np.ndarray) -> list[Predictions]:
        """Models on some samples."""
        return [model.take(rows) for model in self.task.models]

    def names(self, rows: np.ndarray) -> Any:
        """The truth of some samples, as `learn_ensemble` takes it."""
        truth = self.task.truth
        return truth[rows] if isinstance(truth, np.ndarray) else [truth[i] for i in rows]

    def score(self, scores: np.ndarray, rows: np.ndarray) -> float:
        """The measure on some samples."""
        return self.measure.score(scores, self.places[rows])

    @cached_property
    def bootstrap(self) -> PairedBootstrap:
        """The same resamples of the test samples for every rule, whole groups where there are."""
        groups = self.task.groups
        own = None if groups is None else np.array(groups)[self.test]
        return PairedBootstrap(self.measure, self.places[self.test], groups=own)

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change with the data of the case."""
        digest = hashlib.sha256(repr([*self.task.target, *self.task.aliases.rows]).encode())
        for model in self.task.models:
            digest.update(repr((model, *model.labels)).encode())
            digest.update(model.scores.tobytes())
        for rows in (self.known, self.test, self.places):
            digest.update(rows.tobytes())
        return digest.hexdigest()[:16]


def _strata(task: Task) -> np.ndarray:
    """A number for each sample: its true label, or the rarest that it has; -1 for none."""
    if not isinstance(task.truth, np.ndarray):
        return np.asarray(task.target.places(task.truth))
    counts = np.nansum(task.truth, axis=0)
    rare = np.where(task.truth == 1, counts, np.inf)
    return np.where(np.isfinite(rare.min(axis=1)), rare.argmin(axis=1), -1)


def _draw(strata: np.ndarray, rows: np.ndarray, draw: Draw) -> np.ndarray:
    """A share of ``rows``, taken at even steps while samples of one label lie together."""
    rng = np.random.default_rng([draw.seed, draw.split])
    # Labels in an order drawn anew, so that no label is always between two steps.
    order = rng.permutation(len(rows))
    order = order[np.argsort(rng.permutation(strata.max() + 2)[strata[order]], kind="stable")]
    n_drawn = max(2, round(draw.share * len(rows)))
    steps = (np.arange(n_drawn) + rng.random()) * len(rows) / n_drawn
    return np.sort(rows[order[steps.astype(int)]])


def _split(task: Task, seed: int) -> np.ndarray:
    """True for samples to test on, as many as in the task's own split; groups stay whole."""
    rng = np.random.default_rng(seed)
    n_known = int((~task.is_test).sum())
    everything = np.arange(task.n_samples)
    is_test = np.ones(task.n_samples, dtype=bool)
    if not task.is_split_by_group:
        share = Draw(n_known / task.n_samples, seed)
        is_test[_draw(_strata(task), everything, share)] = False
        return is_test
    names, numbers, sizes = np.unique(
        np.array(task.groups), return_inverse=True, return_counts=True
    )
    order = rng.permutation(len(names))
    kept = order[np.cumsum(sizes[order]) <= n_known]
    return ~np.isin(numbers, kept)
