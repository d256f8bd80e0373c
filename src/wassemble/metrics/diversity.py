"""How varied a set of texts is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from wassemble._checks import check_count, fail

__all__ = ["distinct_n", "self_bleu", "vocabulary_size"]


def distinct_n(texts: Sequence[str], n: int = 2) -> float:
    """Share of different n-grams among all n-grams (Li et al. 2016); nan if there is none.

    Examples
    --------
    >>> distinct_n(["a cat sat", "a cat ran"], 1)
    0.6666666666666666
    """
    ngrams = [ngram for text in texts for ngram in _ngrams(text.split(), n)]
    return len(set(ngrams)) / len(ngrams) if ngrams else math.nan


def vocabulary_size(texts: Sequence[str]) -> int:
    """Number of different words.

    Examples
    --------
    >>> vocabulary_size(["a cat sat", "a cat ran"])
    4
    """
    return len({word for text in texts for word in text.split()})


def self_bleu(texts: Sequence[str], n: int = 4) -> float:
    """Mean BLEU of each text with all others as its references (Zhu et al. 2018).

    The larger, the more the texts are alike.

    Parameters
    ----------
    texts : sequence of str
        At least two.
    n : int
        N-grams of one to this many words.

    Examples
    --------
    >>> self_bleu(["a cat sat on it", "a cat sat on it", "a cat sat on it"])
    1.0
    """
    n = check_count(n, "n")
    if len(texts) < 2:
        fail(f"`texts` must hold at least two, to compare; got {len(texts)}.")
    words = [text.split() for text in texts]
    lengths = Counter(len(each) for each in words)
    counts = [[Counter(_ngrams(each, size)) for size in range(1, n + 1)] for each in words]
    # An n-gram's largest count in the others is the largest of all, or, for the text that has
    # that one, the second largest.
    largest = [_two_largest([each[size] for each in counts]) for size in range(n)]
    total = 0.0
    for each, ngrams in zip(words, counts, strict=True):
        lengths[len(each)] -= 1
        others = [length for length, number in lengths.items() if number]
        lengths[len(each)] += 1
        nearest = min(others, key=lambda length: (abs(length - len(each)), length))
        total += _bleu(len(each), nearest, ngrams, largest)
    return total / len(words)


def _bleu(
    length: int,
    reference_length: int,
    ngrams: list[Counter[tuple[str, ...]]],
    largest: list[dict[tuple[str, ...], tuple[int, int]]],
) -> float:
    log_precision = 0.0
    for counted, most in zip(ngrams, largest, strict=True):
        shared = 0
        for ngram, count in counted.items():
            first, second = most[ngram]
            shared += min(count, second if count == first else first)
        if not shared:
            return 0.0
        log_precision += math.log(shared / counted.total()) / len(ngrams)
    return math.exp(log_precision + min(0.0, 1 - reference_length / length))


def _two_largest(
    counts: list[Counter[tuple[str, ...]]],
) -> dict[tuple[str, ...], tuple[int, int]]:
    """The two largest counts of each n-gram, equal ones twice."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for counted in counts:
        for ngram, count in counted.items():
            first, second = found.get(ngram, (0, 0))
            found[ngram] = (max(first, count), max(second, min(first, count)))
    return found


def _ngrams(words: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]
