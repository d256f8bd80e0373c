"""Which words take part in a step, and the kernels and weights between them.

All words that may be generated, or the likeliest one by one and all others as one. Words that
keep to themselves, such as the end of the sentence, are apart from words that are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._checks import fail
from wassemble.kernels import DenseKernel, Kernel, SparseKernel
from wassemble.kernels.bags import with_bags
from wassemble.kernels.base import connect
from wassemble.solvers.weights import check_weights
from wassemble.text.kernels import lone_words, matched_words, nearest_words, word_kernel
from wassemble.text.vocabulary import Vocabulary

# Differences of sums below this share of them are rounding.
_ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class WordPart:
    """Words between which mass may move, and what joins them; it moves nowhere else."""

    models: list[int]  # those that have words here; what follows is in their order
    sources: list[np.ndarray]  # places of each model's words
    target: np.ndarray  # places of the consensus' words
    kernels: list[Kernel]
    weights: np.ndarray  # (n_models,) or (n_models, n_target)
    is_alone: bool  # nothing joins a word of the consensus to another one
    # Words of each model whose mass, but for that of ``sources``, is one more word at the end
    # of the kernels: all that do not take part.
    gathered: list[np.ndarray] | None = None

    @cached_property
    def n_components(self) -> int:
        """Into how many components the kernels divide the words."""
        return int(self._target_components.max()) + 1

    @cached_property
    def members(self) -> list[sp.csr_array]:
        """By model, 1 where a word belongs to a component: sums over components as products.

        Every word belongs to one, so that the column indices are the words' components.
        """
        return list(map(cache(self._members_of), self.kernels))

    def _members_of(self, kernel: Kernel) -> sp.csr_array:
        components = np.zeros(kernel.shape[0], dtype=np.int64)
        if self.n_components > 1:
            links = kernel.links()
            components[links.row] = self._target_components[links.col]
        ones = np.ones(len(components), np.float32)
        shape = (len(components), self.n_components)
        return sp.csr_array((ones, components, np.arange(len(components) + 1)), shape=shape)

    @cached_property
    def kernels_with_rest(self) -> list[Kernel]:
        """The kernels with one more word at the end, similar to itself alone."""
        return list(map(cache(_with_rest), self.kernels))

    @cached_property
    def _target_components(self) -> np.ndarray:
        distinct = dict.fromkeys(self.kernels)
        if not any(kernel.entries.has_zeros for kernel in distinct):
            return np.zeros(self.kernels[0].shape[1], dtype=np.int64)
        return connect([kernel.links() for kernel in distinct])

    def gather_others(self, sources: list[np.ndarray], target: np.ndarray) -> WordPart:
        """The part with only some of its words, and one more that stands for all others.

        What a word is similar to among the others in all, it is similar to in the one, so that
        no mass stays in the words that take part because the way out was cut. Among themselves
        the others are taken to be alike. ``sources`` and ``target`` are the places of words that
        take part in those of the part.
        """
        by_kernel = dict(zip(self.kernels, sources, strict=True))
        cut = {kernel: _gather(kernel, own, target) for kernel, own in by_kernel.items()}
        weights = self.weights
        if weights.ndim == 2:  # those of the others: their mean
            mean = np.delete(weights, target, axis=1).mean(axis=1, keepdims=True)
            weights = np.hstack([weights[:, target], mean])
        return replace(
            self,
            sources=[places[own] for places, own in zip(self.sources, sources, strict=True)],
            target=self.target[target],
            kernels=[cut[kernel] for kernel in self.kernels],
            weights=weights,
            gathered=self.sources,
        )


@dataclass(frozen=True, eq=False)
class Selection:
    """Words that take part in a step: those that keep to themselves, and those that are joined."""

    parts: list[WordPart]
    sources: list[np.ndarray]  # places of each model's words that take part
    is_said: np.ndarray | None = None  # by word of the consensus; all words of the parts if None


class Selector:
    """Vocabularies matched and kernels in place, to select words from; see `FusedNextWord`."""

    def __init__(
        self, vocabularies: Sequence[Vocabulary], target: Vocabulary, kernel: Any, weights: Any
    ) -> None:
        self.target = target
        self.kernels = _read_kernels(kernel, vocabularies, target)
        n_models = len(vocabularies)
        self._weights = check_weights(weights, n_models, len(target), like=np.empty(0))
        self._homes = list(map(_homes, self.kernels, vocabularies, [target] * n_models))
        self.generated = np.flatnonzero(target.is_generated)
        lone = list(map(cache(lone_words), self.kernels))
        self._is_alone = np.logical_and.reduce([is_alone for is_alone, _ in lone])
        is_alone = np.append(self._is_alone, False)  # the last place is nowhere, -1
        self._source_is_alone = [is_alone[only] for _, only in lone]
        self.whole = self._cut(self.generated)

    def top(self, histograms: Sequence[np.ndarray], n_top: int, *, gather: bool) -> Selection:
        """The words that some model finds most likely in some row, ``n_top`` of them, and the end.

        A model's word counts for the word of the consensus that it comes to first. With
        ``gather`` all others are one word more where mass may move; else they are left out.
        """
        best = np.zeros(len(self.target) + 1, dtype=np.float32)  # the last place is nowhere, -1
        for histogram, home in zip(histograms, self._homes, strict=True):
            np.maximum.at(best, home, histogram.max(axis=0))
        top = np.argpartition(best[self.generated], -n_top)[-n_top:]
        target = np.union1d(self.generated[top], self.target.end_index)
        return self._gather(target) if gather else self._cut(target)

    def _gather(self, target: np.ndarray) -> Selection:
        """These words of the consensus, the others as one; words alone cost nothing to keep."""
        arrives = self._arriving(target)
        is_said = np.zeros(len(self.target), dtype=bool)
        is_said[target] = True
        parts = []
        for part in self.whole.parts:
            kept = np.flatnonzero(is_said[part.target])
            if not part.is_alone and len(kept) < len(part.target):
                pairs = zip(part.models, part.sources, strict=True)
                own = [np.flatnonzero(arrives[model][places]) for model, places in pairs]
                part = part.gather_others(own, kept)  # noqa: PLW2901
            parts.append(part)
        return Selection(parts, list(map(np.flatnonzero, arrives)), is_said)

    def _cut(self, target: np.ndarray) -> Selection:
        """These words of the consensus, and each model's words that come to them first."""
        sources = list(map(np.flatnonzero, self._arriving(target)))
        if not all(len(source) for source in sources):
            fail("every model must have a word that the consensus can use; one has none.")
        is_alone = self._is_alone[target]
        both = ((True, target[is_alone]), (False, target[~is_alone]))
        parts = [self._part(sources, own, is_alone=a) for a, own in both if len(own)]
        return Selection(parts, sources)

    def _arriving(self, target: np.ndarray) -> list[np.ndarray]:
        """Which of each model's words come to these words of the consensus first."""
        is_taken = np.zeros(len(self.target) + 1, dtype=bool)  # the last place is nowhere, -1
        is_taken[target] = True
        return [is_taken[home] for home in self._homes]

    def _part(self, sources: list[np.ndarray], target: np.ndarray, *, is_alone: bool) -> WordPart:
        own = [
            source[alone[source] == is_alone]
            for source, alone in zip(sources, self._source_is_alone, strict=True)
        ]
        models = [model for model, source in enumerate(own) if len(source)]
        by_kernel = {self.kernels[model]: own[model] for model in models}
        # Models that share a kernel share its products.
        cut = {
            kernel: with_bags(kernel.select(source, target)) for kernel, source in by_kernel.items()
        }
        kernels = [cut[self.kernels[model]] for model in models]
        weights = self._weights if self._weights.ndim == 1 else self._weights[:, target]
        weights = _say(weights[models], kernels)
        own = [own[model] for model in models]
        return WordPart(models, own, target, kernels, weights, is_alone)


def _read_kernels(
    kernel: Any, vocabularies: Sequence[Vocabulary], target: Vocabulary
) -> list[Kernel]:
    """One kernel per model, float32; models with the same words and kernel share one."""
    each = list(kernel) if isinstance(kernel, list | tuple) else [kernel] * len(vocabularies)
    if len(each) != len(vocabularies):
        fail(
            f"`kernel` must be one kernel for all {len(vocabularies)} models or one per model;"
            f" got {len(each)}."
        )
    made: dict[tuple[int, Vocabulary], Kernel] = {}
    for own, vocabulary in zip(each, vocabularies, strict=True):
        if (id(own), vocabulary) not in made:
            ready = word_kernel(own, vocabulary, target).convert(None, np.float32)
            made[id(own), vocabulary] = ready
    return [made[id(own), vocabulary] for own, vocabulary in zip(each, vocabularies, strict=True)]


def _homes(kernel: Kernel, source: Vocabulary, target: Vocabulary) -> np.ndarray:
    """The consensus' word that each word of a model comes to first, -1 for nowhere.

    The word itself if the kernel leads there, else the most similar one.
    """
    homes = nearest_words(kernel, matched_words(source, target))
    return np.where(source.is_generated, homes, -1)


def _say(weights: np.ndarray, kernels: list[Kernel]) -> np.ndarray:
    """Weights by model and word, 0 where the model cannot reach the word.

    A model that does not know a word has no say on it: its silence is not a "no".
    """
    reached = np.stack([np.asarray(kernel.T.row_sums) > 0 for kernel in kernels])
    # A word that nobody can reach gets no mass, whatever the weights.
    if (reached == reached[0]).all() and weights.ndim == 1 and weights.sum() > 0:
        return weights / weights.sum()
    each = np.where(reached, weights[:, None] if weights.ndim == 1 else weights, 0)
    each = np.where(each.sum(axis=0) > 0, each, 1 / len(kernels))
    return each / each.sum(axis=0)


def _with_rest(kernel: Kernel) -> Kernel:
    n_source, n_target = kernel.shape
    rest = np.array([n_source]), np.array([n_target])
    shape = n_source + 1, n_target + 1
    return with_bags(kernel.embed(shape, np.arange(n_source), np.arange(n_target), rest))


def _gather(kernel: Kernel, source: np.ndarray, target: np.ndarray) -> Kernel:
    """Some words of a kernel, and one more on either side for all others."""
    n_others = max(kernel.shape[0] - len(source), 1)
    rows, columns = (np.asarray(each.row_sums, np.float64) for each in (kernel, kernel.T))
    to_others, from_others = rows[source], columns[target]
    some = None
    if len(source) and len(target):
        some = kernel.select(source, target)
        to_others = _rest(to_others, some.row_sums)
        from_others = _rest(from_others, some.T.row_sums)
    among = _rest(rows.sum(), rows[source].sum() + from_others.sum())
    last = np.append(from_others, among)[None] / n_others
    if some is not None and some.is_sparse:
        blocks = [[some.to_sparse(), to_others[:, None]], [last[:, :-1], last[:, -1:]]]
        return SparseKernel(sp.csr_array(sp.block_array(blocks), dtype=kernel.dtype))
    table = np.zeros((len(source) + 1, len(target) + 1), dtype=kernel.dtype)
    if some is not None:
        table[:-1, :-1] = some.to_dense()
    table[:-1, -1] = to_others
    table[-1] = last
    return DenseKernel._trusted(table)


def _rest(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """``whole - part``, 0 where that is rounding."""
    rest = whole - np.asarray(part, np.float64)
    return np.where(rest > _ROUNDING * whole, rest, 0)
