"""Which words take part in a step, and the kernels and weights between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.kernels import Kernel
from wassemble.kernels.bags import with_bags
from wassemble.solvers.weights import check_weights
from wassemble.text.vocabulary import Vocabulary
from wassemble.text.word_cuts import gather_others
from wassemble.text.kernels import lone_words, matched_words, nearest_words, word_kernel
from wassemble.text.word_parts import WordPart

__all__ = ["WordSet", "WordSets"]


@dataclass(frozen=True)
class WordSet:
    """Words that take part in a step.

    Words that keep to themselves, such as the end of the sentence, are one part, words that
    are joined to others another.
    """

    parts: list[WordPart]
    sources: list[np.ndarray]  # places of each model's words that take part
    is_said: np.ndarray | None = None  # by word of the consensus; all words of the parts if None


class WordSets:
    """Vocabularies matched and kernels in place, to cut sets of words from.

    Parameters
    ----------
    vocabularies : sequence of Vocabulary
        One per model.
    target : Vocabulary
        Of the consensus.
    kernel : see `FusedNextWord`
    weights : array of shape (n_models,) or (n_models, n_target), optional
    """

    def __init__(
        self, vocabularies: Sequence[Vocabulary], target: Vocabulary, kernel: Any, weights: Any
    ) -> None:
        self.vocabularies = list(vocabularies)
        self.target = target
        self.kernels = _read_kernels(kernel, self.vocabularies, target)
        n_models, n_target = len(self.vocabularies), len(target)
        self._weights = check_weights(weights, n_models, n_target, like=np.empty(0))
        self._homes = [
            _homes(kernel, vocabulary, target)
            for kernel, vocabulary in zip(self.kernels, self.vocabularies, strict=True)
        ]
        self.generated = _generated(target)
        self._same_words = all(
            vocabulary == target and np.array_equal(home[self.generated], self.generated)
            for vocabulary, home in zip(self.vocabularies, self._homes, strict=True)
        )
        self._read_alone()
        self.whole = self._cut(self.generated)

    def top(self, histograms: Sequence[np.ndarray], n_top: int, *, gather: bool) -> WordSet:
        """The words that some model finds most likely in some row, ``n_top`` of them, and the end.

        A model's word counts for the word of the consensus that it comes to first. With
        ``gather`` all others are one word more where mass may move; else they are left out.
        """
        best = np.zeros(len(self.target), dtype=np.float32)
        for histogram, home in zip(histograms, self._homes, strict=True):
            likely = histogram.max(axis=0)
            if self._same_words:
                np.maximum(best, likely, out=best)
            else:
                arrives = home >= 0
                np.maximum.at(best, home[arrives], likely[arrives])
        top = np.argpartition(best[self.generated], -n_top)[-n_top:]
        target = np.union1d(self.generated[top], self.target.end_index)
        return self._gather(target) if gather else self._cut(target)

    def _gather(self, target: np.ndarray) -> WordSet:
        """These words of the consensus, the others as one; words alone cost nothing to keep."""
        sources = self._sources(target)
        is_said = np.zeros(len(self.target), dtype=bool)
        is_said[target] = True
        parts = []
        for part in self.whole.parts:
            kept = np.flatnonzero(is_said[part.target])
            if part.is_alone or len(kept) == len(part.target):
                parts.append(part)
                continue
            own = [
                np.flatnonzero(np.isin(places, sources[model], assume_unique=True))
                if not self._same_words
                else kept
                for model, places in zip(part.models, part.sources, strict=True)
            ]
            parts.append(gather_others(part, own, kept))
        return WordSet(parts, sources, is_said)

    def _read_alone(self) -> None:
        """Which words nothing joins to another: of the consensus, and of each model."""
        found = {id(kernel): lone_words(kernel) for kernel in self.kernels}
        self._is_alone = np.logical_and.reduce([is_alone for is_alone, _ in found.values()])
        # The last place is nowhere, -1.
        is_alone = np.append(self._is_alone, False)
        self._source_is_alone = [is_alone[found[id(kernel)][1]] for kernel in self.kernels]

    def _cut(self, target: np.ndarray) -> WordSet:
        """These words of the consensus, and each model's words that come to them first."""
        sources = self._sources(target)
        if not all(len(source) for source in sources):
            fail("every model must have a word that the consensus can use; one has none.")
        is_alone = self._is_alone[target]
        both = ((True, target[is_alone]), (False, target[~is_alone]))
        parts = [self._part(sources, own, is_alone=a) for a, own in both if len(own)]
        return WordSet(parts, sources)

    def _sources(self, target: np.ndarray) -> list[np.ndarray]:
        """Each model's words that come to these words of the consensus first."""
        taken = np.zeros(len(self.target) + 1, dtype=bool)  # the last place is nowhere, -1
        taken[target] = True
        return [target if self._same_words else np.flatnonzero(taken[home]) for home in self._homes]

    def _part(self, sources: list[np.ndarray], target: np.ndarray, *, is_alone: bool) -> WordPart:
        own = [
            source[alone[source] == is_alone]
            for source, alone in zip(sources, self._source_is_alone, strict=True)
        ]
        models = [model for model, source in enumerate(own) if len(source)]
        cut: dict[int, Kernel] = {}
        for model in models:
            kernel = self.kernels[model]
            if id(kernel) not in cut:  # models that share a kernel share its products
                cut[id(kernel)] = with_bags(kernel.select(own[model], target))
        kernels = [cut[id(self.kernels[model])] for model in models]
        weights = self._weights if self._weights.ndim == 1 else self._weights[:, target]
        weights = _say(weights[models], kernels)
        return WordPart(
            models, [own[model] for model in models], target, kernels, weights, is_alone
        )


def _read_kernels(kernel: Any, vocabularies: list[Vocabulary], target: Vocabulary) -> list[Kernel]:
    """One kernel per model, float32; models with the same words and kernel share one."""
    each = list(kernel) if isinstance(kernel, list | tuple) else [kernel] * len(vocabularies)
    if len(each) != len(vocabularies):
        fail(
            f"`kernel` must be one kernel for all {len(vocabularies)} models or one per model;"
            f" got {len(each)}."
        )
    made: list[tuple[Any, Vocabulary, Kernel]] = []
    for own, vocabulary in zip(each, vocabularies, strict=True):
        same = [k for given, words, k in made if given is own and words == vocabulary]
        ready = same[0] if same else word_kernel(own, vocabulary, target).convert(None, np.float32)
        made.append((own, vocabulary, ready))
    return [kernel for *_, kernel in made]


def _generated(vocabulary: Vocabulary) -> np.ndarray:
    """Places of the words that may be generated: all but the first."""
    places = np.arange(len(vocabulary))
    if vocabulary.start_index == vocabulary.end_index:
        return places
    return np.delete(places, vocabulary.start_index)


def _homes(kernel: Kernel, source: Vocabulary, target: Vocabulary) -> np.ndarray:
    """The consensus' word that each word of a model comes to first, -1 for nowhere.

    The word itself if the kernel leads there, else the most similar one.
    """
    homes = nearest_words(kernel, matched_words(source, target))
    if source.start_index != source.end_index:
        homes[source.start_index] = -1
    return homes


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
