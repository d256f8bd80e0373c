"""CIDEr-D of one caption at a time, against references that were prepared once.

For training and stopping rules, where a caption's score is wanted thousands of times; it
needs no package. `wassemble.metrics.captions` has the scores to report.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import final

__all__ = ["CiderD"]

_N = 4  # n-grams of one to four words
_SIGMA = 6.0  # how much a difference in length may be, in words


@final
class CiderD:
    """Scores captions by the n-grams that they share with the references of an image.

    N-grams that are in the references of many images count less. Vedantam et al. 2015,
    in the clipped form CIDEr-D, as COCO's server and pycocoevalcap compute it.

    Parameters
    ----------
    references : sequence of sequences of captions
        Some captions for each image; a caption is a sequence of words.

    Examples
    --------
    >>> cider = CiderD([["a cat on a mat".split()], ["two dogs in the park".split()]])
    >>> round(cider.score(0, "a cat on a mat".split()), 3)
    10.0
    >>> cider.score(0, "two dogs in the park".split())
    0.0
    """

    def __init__(self, references: Sequence[Sequence[Sequence[str]]]) -> None:
        self._log_n_images = math.log(len(references))
        counts = [[_count_ngrams(caption) for caption in each] for each in references]
        n_images_with: Counter[tuple[str, ...]] = Counter()
        for each in counts:
            n_images_with.update(set().union(*each))
        self._log_frequency = {ngram: math.log(n) for ngram, n in n_images_with.items()}
        self._lengths = [[len(caption) for caption in each] for each in references]
        self._norms = []
        # Per image: which references have an n-gram, and with what weight.
        self._holders: list[dict[tuple[str, ...], list[tuple[int, float]]]] = []
        for each in counts:
            holders = defaultdict(list)
            norms = []
            for place, ngrams in enumerate(each):
                weights, norm = self._weigh(ngrams)
                norms.append(norm)
                for ngram, weight in weights.items():
                    holders[ngram].append((place, weight))
            self._holders.append(dict(holders))
            self._norms.append(norms)

    def score(self, image: int, caption: Sequence[str]) -> float:
        """Score of ``caption`` for an image, by its place; from 0 to 10."""
        weights, norm = self._weigh(_count_ngrams(caption))
        lengths, norms, holders = self._lengths[image], self._norms[image], self._holders[image]
        shared = [[0.0] * _N for _ in lengths]
        for ngram, weight in weights.items():
            for place, theirs in holders.get(ngram, ()):
                shared[place][len(ngram) - 1] += min(weight, theirs) * theirs
        total = 0.0
        for place, length in enumerate(lengths):
            # In bigrams, as the reference code counts: a caption of one word is as long as none.
            gap = max(len(caption), 1) - max(length, 1)
            near = math.exp(-(gap**2) / (2 * _SIGMA**2))
            for mine, theirs, both in zip(norm, norms[place], shared[place], strict=True):
                if mine > 0 and theirs > 0:
                    total += near * both / (mine * theirs)
        return 10 * total / (_N * len(lengths))

    def _weigh(
        self, counts: Counter[tuple[str, ...]]
    ) -> tuple[dict[tuple[str, ...], float], list[float]]:
        """Weight of each n-gram: its count by its rarity; and the norm for each n."""
        squares = [0.0] * _N
        weights = {}
        for ngram, count in counts.items():
            weight = count * (self._log_n_images - self._log_frequency.get(ngram, 0.0))
            weights[ngram] = weight
            squares[len(ngram) - 1] += weight**2
        return weights, [math.sqrt(square) for square in squares]


def _count_ngrams(caption: Sequence[str]) -> Counter[tuple[str, ...]]:
    words = tuple(caption)
    return Counter(
        words[start : start + n] for n in range(1, _N + 1) for start in range(len(words) - n + 1)
    )
