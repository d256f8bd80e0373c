"""Next-word histograms of several models into one: arrays in, arrays out, no states.

Words that are never generated take no part. With ``n_top``, only words that some model
finds likely do; the rows that belong to one item of the context share them, so that no
sentence depends on what else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import log_of
from wassemble._checks import fail
from wassemble.solvers import (
    Balanced,
    BarycenterProblem,
    BarycenterResult,
    MassRule,
    geometric_mean,
    solve_barycenter,
)
from wassemble.solvers.barycenter import solve
from wassemble.text.word_sets import WordSet, WordSets

__all__ = ["FusedWords", "Rule", "WordFusion"]


@dataclass(frozen=True)
class Rule:
    """How histograms become one; see `FusedNextWord`."""

    rule: Callable[..., Any]
    mass: MassRule
    debias: bool
    max_iterations: int
    tolerance: float | None

    @property
    def transports(self) -> bool:
        """Whether it is a barycenter."""
        return self.rule is solve_barycenter


@dataclass(frozen=True)
class FusedWords:
    """A step's consensus, with its evidence by row.

    Attributes
    ----------
    log_probabilities : float32 array of shape (n_rows, n_words)
        -inf for words that took no part. Rows are divided by their mass.
    dropped_mass : array of shape (n_rows,)
        Share of its mass on words that took no part, of the model hit hardest.
    n_iterations : int array of shape (n_rows,)
        Sweeps; 0 for a mean or a closed form.
    converged : bool array of shape (n_rows,)
    log_v : float32 array of shape (n_models, n_rows, n_words), optional
        Scalings to start the next step from.
    """

    log_probabilities: np.ndarray
    dropped_mass: np.ndarray
    n_iterations: np.ndarray
    converged: np.ndarray
    log_v: np.ndarray | None


@dataclass(frozen=True)
class WordFusion:
    """Fuses any number of steps.

    Parameters
    ----------
    sets : WordSets
    rule : Rule
    n_top : int, optional
        How many words take part in a step; all that may be generated if not given.
    """

    sets: WordSets
    rule: Rule
    n_top: int | None = None

    def fuse(
        self,
        log_probabilities: Sequence[np.ndarray],
        items: np.ndarray,
        log_v: np.ndarray | None = None,
        *,
        keep_scalings: bool = False,
    ) -> FusedWords:
        """Consensus of one step.

        Parameters
        ----------
        log_probabilities : one array of shape (n_rows, n_words) per model
        items : int array of shape (n_rows,)
            The item of the context that each row belongs to.
        log_v : array of shape (n_models, n_rows, n_words), optional
            Scalings to start from.
        keep_scalings : bool
        """
        n_rows, n_words = len(items), len(self.sets.target)
        histograms = [np.exp(logs) for logs in log_probabilities]
        found = FusedWords(
            np.full((n_rows, n_words), -np.inf, dtype=np.float32),
            np.zeros(n_rows),
            np.zeros(n_rows, dtype=np.int64),
            np.ones(n_rows, dtype=bool),
            np.zeros((len(histograms), n_rows, n_words), np.float32) if keep_scalings else None,
        )
        for rows, words, own, dropped in self._parts(histograms, items):
            found.dropped_mass[rows] = dropped
            if self.rule.transports:
                start = None if log_v is None else log_v[:, rows][:, :, words.target]
                result = self._solve(own, words, start, keep_scalings=keep_scalings)
                p = np.asarray(result.barycenters)
                found.n_iterations[rows] = result.iterations
                found.converged[rows] = result.converged
                if found.log_v is not None:
                    found.log_v[:, rows[:, None], words.target] = result.log_scalings()
            else:
                p = self._mean(own, words)
            _check_mass(p)
            logs = log_of(p) - np.log(p.sum(axis=1, keepdims=True))
            found.log_probabilities[rows[:, None], words.target] = logs
        return found

    def solve_row(
        self, log_probabilities: Sequence[np.ndarray]
    ) -> tuple[BarycenterResult, WordSet]:
        """The barycenter of a single row, ``(1, n_words)`` per model, with its couplings."""
        histograms = [np.exp(logs) for logs in log_probabilities]
        _, words, own, _ = next(self._parts(histograms, np.zeros(1, dtype=np.int64)))
        return self._solve(own, words, None, keep_scalings=True), words

    def _parts(
        self, histograms: list[np.ndarray], items: np.ndarray
    ) -> Iterator[tuple[np.ndarray, WordSet, list[np.ndarray], np.ndarray]]:
        """Rows that share their words, the words, the models' histograms of them, what is left."""
        n_words = len(self.sets.whole.target)
        if self.n_top is None or self.n_top >= n_words:
            if len(items):
                words = self.sets.whole
                yield np.arange(len(items)), words, *self._restrict(histograms, words)
            return
        for item in np.unique(items):
            rows = np.flatnonzero(items == item)
            some = [histogram[rows] for histogram in histograms]
            words = self.sets.top(some, self.n_top)
            yield rows, words, *self._restrict(some, words)

    def _restrict(
        self, histograms: list[np.ndarray], words: WordSet
    ) -> tuple[list[np.ndarray], np.ndarray]:
        own, dropped = [], np.zeros(len(histograms[0]))
        for histogram, source in zip(histograms, words.sources, strict=True):
            part = histogram[:, source]
            total = part.sum(axis=1, keepdims=True)
            dropped = np.maximum(dropped, 1 - total[:, 0])
            own.append(part / total if isinstance(self.rule.mass, Balanced) else part)
        return own, dropped

    def _solve(
        self,
        histograms: list[np.ndarray],
        words: WordSet,
        log_v: np.ndarray | None,
        *,
        keep_scalings: bool,
    ) -> BarycenterResult:
        is_diagonal = all(kernel.is_diagonal for kernel in words.kernels)
        if isinstance(self.rule.mass, Balanced) and words.weights.ndim == 1 and not is_diagonal:
            histograms = _reconciled(histograms, words)
        start: Any = None if log_v is None else _Scalings(log_v)
        problem = BarycenterProblem(
            histograms,
            words.kernels,
            weights=words.weights,
            mass=self.rule.mass,
            debias=self.rule.debias,
            max_iterations=self.rule.max_iterations,
            tolerance=self.rule.tolerance,
            initial=start,
        )
        return solve(problem, keep_scalings=keep_scalings)

    def _mean(self, histograms: list[np.ndarray], words: WordSet) -> np.ndarray:
        """The mean of what each model alone sends through its kernel, K^T (mu / K 1)."""
        images = [
            h if kernel.is_diagonal else kernel.apply_transpose(h / kernel.row_sums)
            for h, kernel in zip(histograms, words.kernels, strict=True)
        ]
        return np.asarray(self.rule.rule(images, weights=words.weights))


@dataclass(frozen=True)
class _Scalings:
    """Where a solve starts."""

    log_v: np.ndarray

    def log_scalings(self) -> np.ndarray:
        return self.log_v


def _reconciled(histograms: list[np.ndarray], words: WordSet) -> list[np.ndarray]:
    """Histograms with the same mass on each component: the geometric mean of the models'.

    Mass never crosses from one component to another, such as from the end of the sentence
    to any other word. Where models put different mass on one, Algorithm 1 settles on the
    geometric mean of it while its scalings grow without end. Bringing the masses there
    first gives the same consensus, up to a factor for the whole row, and scalings that
    stay where they are.
    """
    if words.n_components == 1:
        return histograms
    members = [
        sp.csr_array(
            (np.ones(len(parts), np.float32), (np.arange(len(parts)), parts)),
            shape=(len(parts), words.n_components),
        )
        for parts in words.components
    ]
    masses = np.stack([h @ part for h, part in zip(histograms, members, strict=True)])
    common = np.asarray(geometric_mean(masses, weights=words.weights))
    common /= common.sum(axis=1, keepdims=True)
    factors = np.divide(common, masses, out=np.zeros_like(masses), where=masses > 0)
    return [
        h * factor[:, parts]
        for h, factor, parts in zip(histograms, factors, words.components, strict=True)
    ]


def _check_mass(p: np.ndarray) -> None:
    if not (p.sum(axis=1) > 0).all():
        fail(
            "some word must be possible for every model that has a say on it; got none.",
            hint="an arithmetic mean, or a kernel that joins more words",
        )
