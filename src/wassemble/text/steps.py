"""One step: next-word histograms of several models into one. Arrays in, arrays out, no states.

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
from wassemble.kernels import Kernel
from wassemble.solvers import GEOMETRIC, BarycenterResult, Rule
from wassemble.solvers.barycenter import solve
from wassemble.text.selection import Selection, Selector, WordPart

# Mass of gathered words where there is nearly none: less could be rounding.
_LEAST_GATHERED = 1e-7
# Mass of the rest where there is nearly none: less would leave the range of plain sums.
_LEAST_REST = 1e-6


@dataclass(frozen=True)
class FusedStep:
    """A step's consensus, with its evidence by row.

    Rows are divided by their mass, with that of all words that took no part where they count as
    one; the log probability of words that took no part is -inf.
    """

    log_probabilities: np.ndarray  # float32, (n_rows, n_words)
    dropped_mass: (
        np.ndarray
    )  # (n_rows,): share on words that took no part, of the model hit hardest
    n_sweeps: np.ndarray  # (n_rows,); 0 for a mean or a closed form
    converged: np.ndarray  # bool, (n_rows,)
    log_v: np.ndarray | None  # float32, (n_models, n_rows, n_words): where the next step may start


@dataclass(frozen=True)
class StepFusion:
    """Fuses any number of steps."""

    selector: Selector
    rule: Rule
    n_top: int | None = None  # words that take part in a step; all that may be generated if None

    def fuse(
        self,
        log_probabilities: Sequence[np.ndarray],
        items: np.ndarray,
        log_v: np.ndarray | None = None,
        *,
        keep_scalings: bool = False,
    ) -> FusedStep:
        """Consensus of one step, from an array of shape (n_rows, n_words) per model.

        Each row belongs to one of the ``items`` of the context. Sweeps start from ``log_v``,
        ``(n_models, n_rows, n_words)``.
        """
        n_rows, n_words = len(items), len(self.selector.target)
        histograms = [np.exp(logs) for logs in log_probabilities]
        step = FusedStep(
            np.full((n_rows, n_words), -np.inf, dtype=np.float32),
            np.zeros(n_rows),
            np.zeros(n_rows, dtype=np.int64),
            np.ones(n_rows, dtype=bool),
            np.zeros((len(histograms), n_rows, n_words), np.float32) if keep_scalings else None,
        )
        for rows, words in self._groups(histograms, items):
            some_rows = histograms if len(rows) == n_rows else [h[rows] for h in histograms]
            own, step.dropped_mass[rows] = self._cut(some_rows, words)
            answers = []
            for part, some in zip(words.parts, own, strict=True):
                places = np.ix_(np.array(part.models), rows, part.target)
                start = None if log_v is None else log_v[places]
                answer = self._solve(some, part, start, keep_scalings=keep_scalings)
                answers.append(answer)
                if answer.result is None:  # by a formula
                    continue
                step.converged[rows] &= np.asarray(answer.result.converged)
                if not part.is_alone:
                    step.n_sweeps[rows] = answer.result.sweeps
                if step.log_v is not None:
                    scalings = np.asarray(answer.result.log_scalings())
                    step.log_v[places] = scalings[:, :, : len(part.target)]
            mass = np.sum([answer.p.sum(axis=1, keepdims=True) for answer in answers], axis=0)
            if not (mass > 0).all():
                fail(
                    "some word must be possible for every model that has a say on it; got none.",
                    hint="an arithmetic mean, or a kernel that joins more words",
                )
            for answer in answers:
                target = answer.part.target
                logs = log_of(answer.p[:, : len(target)]) - np.log(mass)
                if words.is_said is not None:
                    logs[:, ~words.is_said[target]] = -np.inf
                step.log_probabilities[rows[:, None], target] = logs
        return step

    def solve_row(
        self, log_probabilities: Sequence[np.ndarray], word: int
    ) -> tuple[WordPart, list[np.ndarray]] | None:
        """What each model sends to one word of the consensus, from a row ``(1, n_words)`` each.

        Gives the words that it has to do with, and what each model of that part sent from its
        words there; None if the word takes no part.
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
    ) -> Iterator[tuple[np.ndarray, Selection]]:
        """Rows that share their words, and the words."""
        if self.n_top is None or self.n_top >= len(self.selector.generated):
            if len(items):
                yield np.arange(len(items)), self.selector.whole
            return
        # Debiasing needs a symmetric kernel: one word for all others would not leave it so.
        gather = not self.rule.is_debiased
        for item in np.unique(items):
            rows = np.flatnonzero(items == item)
            some = [histogram[rows] for histogram in histograms]
            yield rows, self.selector.top(some, self.n_top, gather=gather)

    def _cut(
        self, histograms: list[np.ndarray], words: Selection
    ) -> tuple[list[list[np.ndarray]], np.ndarray]:
        """For each part each model's histograms of its words, and the largest share left out."""
        own = [
            [_with_gathered(histograms[model], part, i) for i, model in enumerate(part.models)]
            for part in words.parts
        ]
        # Words that take no part leave the others with all of the mass.
        if self.rule.is_balanced or not self.rule.transports:
            pieces: list[list[np.ndarray]] = [[] for _ in histograms]
            for part, some in zip(words.parts, own, strict=True):
                for model, piece in zip(part.models, some, strict=True):
                    pieces[model].append(piece)
            for each in pieces:
                total = sum(piece.sum(axis=1, keepdims=True) for piece in each)
                for piece in each:
                    np.divide(piece, total, out=piece)
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
        if not self.rule.transports or (self.rule.is_balanced and part.is_alone):
            # Where mass cannot go anywhere else Algorithm 1 gives the geometric mean at once.
            mean = GEOMETRIC if self.rule.transports else self.rule
            fused = mean.fuse(own, part.kernels, weights=part.weights, holds="partial")
            return _Answer(part, own, np.asarray(fused.scores))
        posed = _Posed(own, part.kernels, part.weights)
        if self.rule.is_balanced:
            posed = _with_rest(own, part) if part.weights.ndim == 2 else _level(own, part)
        problem = self.rule.pose(posed.histograms, posed.kernels, weights=posed.weights)
        if log_v is not None:  # without those of what is no word of its own
            n_more = problem.n_target - log_v.shape[2]
            problem.initial = np.pad(log_v, ((0, 0), (0, 0), (0, n_more)))
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

    def mass_sent(self, place: int) -> list[np.ndarray]:
        """What each model's words sent to a word of the consensus, in the first row."""
        if self.result is not None:
            sent = map(np.asarray, self.result.mass_sent(place))
            # Without what is gathered.
            return [m[: len(own)] for m, own in zip(sent, self.part.sources, strict=True)]
        masses = []
        for histogram, kernel in zip(self.histograms, self.part.kernels, strict=True):
            only = np.zeros(kernel.shape[1], dtype=np.float32)
            only[place] = 1
            mass = histogram[0] * (np.asarray(kernel.apply(only)) > 0)
            masses.append(mass * self.p[0, place] / (mass.sum() or 1))
        return masses


@dataclass(frozen=True)
class _Posed:
    """A problem for the solver; its barycenter times ``factor`` is the consensus."""

    histograms: list[np.ndarray]
    kernels: list[Kernel]
    weights: np.ndarray
    factor: np.ndarray | float = 1.0


def _level(histograms: list[np.ndarray], part: WordPart) -> _Posed:
    """Histograms of mass 1, as Algorithm 1 takes them, of a part of the words that has less.

    Mass never crosses from one component to another. Where models put different mass on
    one, Algorithm 1 settles on the geometric mean of it while its scalings grow without
    end. Bringing the masses there first gives the same consensus after every sweep, and
    scalings that stay where they are. With a weight for each word this does not hold.
    """
    is_one = part.n_components == 1
    masses = np.stack(
        [
            h.sum(axis=1, keepdims=True) if is_one else np.asarray(h @ members)
            for h, members in zip(histograms, part.members, strict=True)
        ]
    )  # (n_models, n_rows, n_components)
    common = np.asarray(GEOMETRIC.fuse(masses, weights=part.weights, holds="scores").scores)
    total = common.sum(axis=1, keepdims=True)
    factors = np.divide(common, masses, out=np.zeros_like(masses), where=masses > 0)
    level = [
        h * (factor if is_one else np.take(factor, members.indices, axis=1))
        for h, factor, members in zip(histograms, factors, part.members, strict=True)
    ]
    # A row whose words some model rules out has no consensus here: any histograms will do.
    empty = total[:, 0] == 0
    for each in level:
        each[empty] = 1
        np.divide(each, each.sum(axis=1, keepdims=True), out=each)
    return _Posed(level, part.kernels, part.weights, factor=total)


def _with_rest(histograms: list[np.ndarray], part: WordPart) -> _Posed:
    """The words, and one more for what is missing to mass 1: where weights differ by word."""
    wide = []
    for histogram in histograms:
        rest = np.maximum(1 - histogram.sum(axis=1, keepdims=True), _LEAST_REST)
        whole = np.hstack([histogram, rest])
        wide.append(whole / whole.sum(axis=1, keepdims=True))
    equal = np.full((len(histograms), 1), 1 / len(histograms))
    return _Posed(wide, part.kernels_with_rest, np.hstack([part.weights, equal]))


def _with_gathered(histogram: np.ndarray, part: WordPart, index: int) -> np.ndarray:
    """A model's histogram of its words in a part, the mass of those gathered into one last."""
    own = np.take(histogram, part.sources[index], axis=1)
    if part.gathered is None:
        return own
    whole = np.take(histogram, part.gathered[index], axis=1).sum(axis=1, keepdims=True)
    others = np.maximum(whole - own.sum(axis=1, keepdims=True), _LEAST_GATHERED)
    return np.hstack([own, others])
