"""The words that a model can say, in the order of its scores."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.labels import LabelSpace


@dataclass(frozen=True)
class Vocabulary:
    """Words by number, and which of them begin a sentence, end it, or stand for others.

    Parameters
    ----------
    words : LabelSpace or iterable of str
        Every word, in the order of the model's scores.
    start : str
        What a model is given before the first word; never generated. A vocabulary without
        it starts with ``end``, as if a sentence had just ended.
    end : str
        Ends a sentence; one of the words.
    unknown : str or None
        Stands for every word that is not in the vocabulary, if it is one of the words.

    Examples
    --------
    >>> vocabulary = Vocabulary(["<start>", "<end>", "<unk>", "a", "cat"])
    >>> vocabulary.encode(["a", "lynx"])
    array([3, 2])
    >>> vocabulary.decode([3, 4])
    ['a', 'cat']
    """

    words: LabelSpace
    start: str = "<start>"
    end: str = "<end>"
    unknown: str | None = "<unk>"

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", LabelSpace(self.words))
        if self.end not in self.words:
            fail(
                f"`end` must be one of the vocabulary's words; got {self.end!r}.",
                hint="a search stops where a model generates it",
            )

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.words

    @cached_property
    def start_index(self) -> int:
        """Number of the word that a model is given first."""
        return self.words.place(self.start if self.start in self.words else self.end)

    @cached_property
    def end_index(self) -> int:
        """Number of the word that ends a sentence."""
        return self.words.place(self.end)

    @cached_property
    def unknown_index(self) -> int | None:
        """Number of the word for words that are not in the vocabulary; None without one."""
        if self.unknown is None or self.unknown not in self.words:
            return None
        return self.words.place(self.unknown)

    @cached_property
    def is_generated(self) -> np.ndarray:
        """Which words may be generated, by number: all but one that is there to start with."""
        return (np.arange(len(self)) != self.start_index) | (self.start_index == self.end_index)

    @cached_property
    def special(self) -> frozenset[str]:
        """The words that are no words: start, end and unknown."""
        words = (self.start, self.end, self.unknown)
        return frozenset(word for word in words if word is not None and word in self.words)

    def index(self, word: str) -> int:
        """Number of ``word``, or of the unknown word."""
        if word in self.words:
            return self.words.place(word)
        if self.unknown_index is None:
            return self.words.place(word)  # which fails, and names the words near it
        return self.unknown_index

    def encode(self, words: Iterable[str]) -> np.ndarray:
        """Numbers of ``words``, int64; others become the unknown word, or an error without one."""
        if isinstance(words, str):
            fail(f"`words` must be a list of words; got one text, {words!r}.")
        return np.array([self.index(word) for word in words], dtype=np.int64)

    def decode(self, numbers: Any) -> list[str]:
        """Words of ``numbers``, special ones included."""
        return [self.words[int(number)] for number in numbers]
