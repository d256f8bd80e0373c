"""N-gram language models: counts of word sequences, smoothed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from wassemble._checks import check_count, fail
from wassemble._files import whole_file
from wassemble.text.vocabulary import Vocabulary

# Version of the files that `NGramModel.save` writes.
_FORMAT = 1
# Where the text is too small to tell.
_USUAL_DISCOUNT = 0.5


@dataclass(frozen=True)
class _Level:
    """N-grams of one length: how often each word follows each history.

    At the highest level these are counts in the text; below it, numbers of different words
    seen before (continuation counts).
    """

    grams: np.ndarray  # (n_grams, length), sorted: a history, then a word
    counts: np.ndarray  # (n_grams,)

    @cached_property
    def discount(self) -> float:
        """Share of a count that is given to words not seen after the history."""
        once, twice = (int((self.counts == n).sum()) for n in (1, 2))
        return once / (once + 2 * twice) if once and twice else _USUAL_DISCOUNT

    @cached_property
    def places(self) -> dict[tuple[int, ...], slice]:
        """Where the words after each history stand."""
        histories = self.grams[:, :-1]
        new = np.ones(len(histories), dtype=bool)
        new[1:] = (histories[1:] != histories[:-1]).any(axis=1)
        starts = np.flatnonzero(new)
        stops = np.append(starts[1:], len(histories))
        keys = map(tuple, histories[starts].tolist())
        ranges = zip(starts.tolist(), stops.tolist(), strict=True)
        return {key: slice(*ends) for key, ends in zip(keys, ranges, strict=True)}


class NGramModel:
    """Next word from the last few words, by interpolated Kneser-Ney smoothing.

    Each level takes a discount off its counts and gives it to the next shorter history
    (Kneser and Ney 1995; interpolated, with one discount per level, as in Chen and Goodman
    1999). Every word but the first keeps some probability. `fit` makes one.

    A `NextWordModel` that knows nothing of the context but how many items it has.

    Examples
    --------
    >>> model = NGramModel.fit([["a", "cat"], ["a", "dog"]], order=2)
    >>> logs, state = model.step(model.start([None]), np.array([model.vocabulary.start_index]))
    >>> model.vocabulary.words[int(logs[0].argmax())]
    'a'
    """

    def __init__(self, vocabulary: Vocabulary, levels: Sequence[_Level]) -> None:
        self.vocabulary = vocabulary
        self._levels = list(levels)
        self._floor = vocabulary.is_generated / vocabulary.is_generated.sum()

    @classmethod
    def fit(
        cls,
        sentences: Iterable[Sequence[str]],
        *,
        order: int = 3,
        vocabulary: Vocabulary | None = None,
    ) -> NGramModel:
        """The model of some sentences.

        Parameters
        ----------
        sentences : iterable of sequences of str
            Words, without start and end.
        order : int
            Length of the longest sequences counted: 2 looks one word back.
        vocabulary : Vocabulary, optional
            Every word of the sentences if not given, by falling count.
        """
        order = check_count(order, "order")
        texts = [list(sentence) for sentence in sentences]
        if not texts:
            fail("`sentences` must hold at least one sentence; got none.")
        if vocabulary is None:
            counts = Counter(word for words in texts for word in words)
            ranked = sorted(counts, key=lambda word: (-counts[word], word))
            special = ("<start>", "<end>", "<unk>")
            vocabulary = Vocabulary([*special, *(w for w in ranked if w not in special)])  # type: ignore[arg-type]
        windows = [_windows(vocabulary.encode(words), order, vocabulary) for words in texts]
        grams, counts_of = np.unique(np.concatenate(windows), axis=0, return_counts=True)
        levels = [_Level(grams, counts_of)]
        for _ in range(order - 1):
            grams, counts_of = np.unique(grams[:, 1:], axis=0, return_counts=True)
            levels.append(_Level(grams, counts_of))
        return cls(vocabulary, levels[::-1])

    @property
    def order(self) -> int:
        """Length of the longest sequences counted."""
        return len(self._levels)

    def start(self, context: Any) -> list[tuple[int, ...]]:
        return [(self.vocabulary.start_index,) * (self.order - 1)] * len(context)

    def step(
        self, state: list[tuple[int, ...]], words: np.ndarray
    ) -> tuple[np.ndarray, list[tuple[int, ...]]]:
        n_back = self.order - 1
        histories = [
            (*last, int(word))[-n_back:] if n_back else ()
            for last, word in zip(state, words, strict=True)
        ]
        with np.errstate(divide="ignore"):  # the word that starts a sentence never follows
            logs = np.log([self._probabilities(history) for history in histories])
        return logs.astype(np.float32).reshape(len(histories), len(self.vocabulary)), histories

    def reorder(self, state: list[tuple[int, ...]], rows: np.ndarray) -> list[tuple[int, ...]]:
        return [state[row] for row in rows]

    def _probabilities(self, history: tuple[int, ...]) -> np.ndarray:
        histogram = self._floor
        for level in self._levels:
            n_back = level.grams.shape[1] - 1
            some = level.places.get(history[len(history) - n_back :])
            if some is None:  # never seen: neither is any longer history
                break
            words, counts = level.grams[some, -1], level.counts[some]
            total = counts.sum()
            histogram = histogram * (level.discount * len(words) / total)
            histogram[words] += (counts - level.discount) / total
        return histogram

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to ``path``, an ``.npz`` file."""
        special = {part: getattr(self.vocabulary, part) for part in ("start", "end", "unknown")}
        about = {"format": _FORMAT, "words": list(self.vocabulary.words), **special}
        arrays = {"about": np.array(json.dumps(about))}
        for level in self._levels:
            length = level.grams.shape[1]
            arrays[f"grams_{length}"] = level.grams.astype(np.int32)
            arrays[f"counts_{length}"] = level.counts.astype(np.int32)
        with whole_file(Path(path)) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | PathLike[str]) -> NGramModel:
        """The model that `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            if "about" not in arrays:
                fail(f"{path} must be an n-gram model's file; got one without its description.")
            about = json.loads(str(arrays["about"]))
            if about.get("format") != _FORMAT:
                fail(f"{path} must have format {_FORMAT}; got {about.get('format')!r}.")
            order = sum(name.startswith("grams_") for name in arrays)
            levels = [
                _Level(
                    arrays[f"grams_{n}"].astype(np.int64), arrays[f"counts_{n}"].astype(np.int64)
                )
                for n in range(1, order + 1)
            ]
        parts = (about[name] for name in ("words", "start", "end", "unknown"))
        return cls(Vocabulary(*parts), levels)

    def __repr__(self) -> str:
        return f"NGramModel(order {self.order}, {len(self.vocabulary):,} words)"


def _windows(words: np.ndarray, order: int, vocabulary: Vocabulary) -> np.ndarray:
    """Every word of a sentence, its end included, after the ``order - 1`` words before it."""
    before = np.full(order - 1, vocabulary.start_index)
    text = np.concatenate([before, words, [vocabulary.end_index]])
    return np.lib.stride_tricks.sliding_window_view(text, order)
