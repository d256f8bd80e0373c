"""Next-word histograms of several models into one: arrays in, arrays out, no states.

Words that are never generated take no part. With ``n_top``, only words that some model
finds likely do, and all others count as one; the rows that belong to one item of the context
share them, so that no sentence depends on what else is in the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wassemble._arrays import log_of
from wassemble._checks import fail
from wassemble.solvers import GEOMETRIC, Barycenter, BarycenterProblem, BarycenterResult, Rule
from wassemble.solvers.barycenter import solve
from wassemble.text.word_masses import Posed, pose_balanced
from wassemble.text.word_parts import WordPart
from wassemble.text.selection import WordSet, WordSets

__all__ = ["FusedWords", "WordFusion"]

# Mass of gathered words where there is nearly none: less could be rounding.
_LEAST = 1e-7


@dataclass(frozen=True)
class FusedWords:
    """A step's consensus, with its evidence by row.

    Attributes
    ----------
    log_probabilities : float32 array of shape (n_rows, n_words)
        -inf for words that took no part. Rows are divided by their mass, with that of all
        words that took no part where they count as one.
    dropped_mass : array of shape (n_rows,)
        Share of its mass on words that took no part, of the model hit hardest.
    n_sweeps : int array of shape (n_rows,)
        Sweeps; 0 for a mean or a closed form.
    converged : bool array of shape (n_rows,)
    log_v : float32 array of shape (n_models, n_rows, n_words), optional
        Scalings to start the next step from.
    """

    log_probabilities: np.ndarray
    dropped_mass: np.ndarray
    n_sweeps: np.ndarray
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

    @property
    def _is_debiased(self) -> bool:
        return isinstance(self.rule, Barycenter) and self.rule.debias

    @property
    def _keeps_mass(self) -> bool:
        """Whether words that take no part leave the others with all of the mass."""
        return not isinstance(self.rule, Barycenter) or self.rule.is_balanced

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
        for rows, words in self._groups(histograms, items):
            some_rows = histograms if len(rows) == n_rows else [h[rows] for h in histograms]
            own, found.dropped_mass[rows] = self._cut(some_rows, words)
            answers = []
            for part, some in zip(words.parts, own, strict=True):
                places = np.ix_(np.array(part.models), rows, part.target)
                start = None if log_v is None else log_v[places]
                answer = self._solve(some, part, start, keep_scalings=keep_scalings)
                answers.append(answer)
                found.converged[rows] &= answer.converged
                if not part.is_alone:
                    found.n_sweeps[rows] = answer.n_sweeps
                if found.log_v is not None and answer.result is not None:
                    found.log_v[places] = answer.log_scalings()
            mass = np.sum([answer.p.sum(axis=1, keepdims=True) for answer in answers], axis=0)
            _check_mass(mass)
            for answer in answers:
                target = answer.part.target
                logs = log_of(answer.p[:, : len(target)]) - np.log(mass)
                if words.is_said is not None:
                    logs[:, ~words.is_said[target]] = -np.inf
                found.log_probabilities[rows[:, None], target] = logs
        return found

    def solve_row(
        self, log_probabilities: Sequence[np.ndarray], word: int
    ) -> tuple[WordPart, list[np.ndarray]] | None:
        """What each model sends to one word of the consensus, from a row ``(1, n_words)`` each.

        Returns
        -------
        part : WordPart
            The words that the word has to do with.
        sent : one array per model of the part, over its words there
        None if the word takes no part.
        """
        histograms = [np.exp(logs) for logs in log_probabilities]
        _, words = next(self._groups(histograms, np.zeros(1, dtype=np.int64)))
        own, _ = self._cut(histograms, words)
        for part, some in zip(words.parts, own, strict=True):
            place = int(np.searchsorted(part.target, word))
            if place < len(part.target) and part.target[place] == word:
                answer = self._solve(some, part, None, keep_scalings=True)
                return part, answer.mass_sent(place)
        return None

    def _groups(
        self, histograms: list[np.ndarray], items: np.ndarray
    ) -> Iterator[tuple[np.ndarray, WordSet]]:
        """Rows that share their words, and the words."""
        if self.n_top is None or self.n_top >= len(self.sets.generated):
            if len(items):
                yield np.arange(len(items)), self.sets.whole
            return
        for item in np.unique(items):
            rows = np.flatnonzero(items == item)
            some = [histogram[rows] for histogram in histograms]
            # Debiasing needs a symmetric kernel: one word for all others would not leave it so.
            yield rows, self.sets.top(some, self.n_top, gather=not self._is_debiased)

    def _cut(
        self, histograms: list[np.ndarray], words: WordSet
    ) -> tuple[list[list[np.ndarray]], np.ndarray]:
        """For each part each model's histograms of its words, and the largest share left out."""
        own = [
            [_with_gathered(histograms[model], part, i) for i, model in enumerate(part.models)]
            for part in words.parts
        ]
        totals = [np.zeros((len(histogram), 1), histogram.dtype) for histogram in histograms]
        for part, some in zip(words.parts, own, strict=True):
            for model, histogram in zip(part.models, some, strict=True):
                totals[model] += histogram.sum(axis=1, keepdims=True)
        if self._keeps_mass:
            for part, some in zip(words.parts, own, strict=True):
                for model, histogram in zip(part.models, some, strict=True):
                    np.divide(histogram, totals[model], out=histogram)
        taken = [
            np.take(histogram, source, axis=1).sum(axis=1)
            for histogram, source in zip(histograms, words.sources, strict=True)
        ]
        return own, np.max([1 - mass for mass in taken], axis=0)

    def _solve(
        self,
        own: list[np.ndarray],
        part: WordPart,
        log_v: np.ndarray | None,
        *,
        keep_scalings: bool,
    ) -> _Answer:
        """The consensus of a part, before it is divided by the mass of all parts."""
        if not isinstance(self.rule, Barycenter):
            return _Answer(part, own, _mean_of_images(self.rule, own, part))
        is_balanced = self.rule.is_balanced
        if is_balanced and part.is_alone:
            # Where mass cannot go anywhere else Algorithm 1 gives the geometric mean at once.
            return _Answer(part, own, _mean_of_images(GEOMETRIC, own, part))
        posed = pose_balanced(own, part) if is_balanced else Posed(own, part.kernels, part.weights)
        problem = BarycenterProblem(
            posed.histograms,
            posed.kernels,
            self.rule,
            weights=posed.weights,
            initial=None if log_v is None else _Scalings(posed.widen(log_v)),  # type: ignore[arg-type]
        )
        result = solve(problem, keep_scalings=keep_scalings)
        p = np.asarray(result.barycenters)[:, : part.kernels[0].shape[1]]
        return _Answer(part, own, p * posed.factor, result)


@dataclass(frozen=True)
class _Answer:
    """The consensus of a part of the words, and how it was found."""

    part: WordPart
    histograms: list[np.ndarray]
    p: np.ndarray  # at the end, where others are gathered, their one word
    result: BarycenterResult | None = None  # none where a formula gave it

    @property
    def n_sweeps(self) -> np.ndarray | int:
        return 0 if self.result is None else self.result.sweeps

    @property
    def converged(self) -> np.ndarray | bool:
        return True if self.result is None else np.asarray(self.result.converged)

    def log_scalings(self) -> np.ndarray:
        assert self.result is not None
        return np.asarray(self.result.log_scalings())[:, :, : len(self.part.target)]

    def mass_sent(self, place: int) -> list[np.ndarray]:
        """What each model's words sent to a word of the consensus, in the first row."""
        sizes = [len(source) for source in self.part.sources]  # without what is gathered
        if self.result is not None:
            sent = self.result.mass_sent(place)
            return [np.asarray(mass)[:size] for mass, size in zip(sent, sizes, strict=True)]
        sent = []
        for histogram, kernel in zip(self.histograms, self.part.kernels, strict=True):
            only = np.zeros(kernel.shape[1], dtype=np.float32)
            only[place] = 1
            mass = histogram[0] * (np.asarray(kernel.apply(only)) > 0)
            sent.append(mass * self.p[0, place] / (mass.sum() or 1))
        return sent


@dataclass(frozen=True)
class _Scalings:
    """Where a solve starts."""

    log_v: np.ndarray

    def log_scalings(self) -> np.ndarray:
        return self.log_v


def _with_gathered(histogram: np.ndarray, part: WordPart, index: int) -> np.ndarray:
    """A model's histogram of its words in a part, the mass of those gathered into one last."""
    own = np.take(histogram, part.sources[index], axis=1)
    if part.gathered is None:
        return own
    whole = np.take(histogram, part.gathered[index], axis=1).sum(axis=1, keepdims=True)
    others = np.maximum(whole - own.sum(axis=1, keepdims=True), _LEAST)
    return np.hstack([own, others])


def _mean_of_images(rule: Rule, histograms: list[np.ndarray], part: WordPart) -> np.ndarray:
    """The mean of what each model alone sends through its kernel, K^T (mu / K 1)."""
    images = [
        h if kernel.is_diagonal else kernel.apply_transpose(h / kernel.row_sums)
        for h, kernel in zip(histograms, part.kernels, strict=True)
    ]
    return np.asarray(rule.fuse(images, weights=part.weights, holds="scores").scores)


def _check_mass(mass: np.ndarray) -> None:
    if not (mass > 0).all():
        fail(
            "some word must be possible for every model that has a say on it; got none.",
            hint="an arithmetic mean, or a kernel that joins more words",
        )
