"""Sentences from a next-word model: beam search, top-k, randomised or diverse.

The search knows `NextWordModel` alone. Every item of the context is searched by itself;
a batch only shares the model's steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._checks import check_count, check_nonnegative_number, fail
from wassemble.labels import enumerate_names
from wassemble.text.models import NextWordModel
from wassemble.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Sentence:
    """Words that a search found."""

    words: tuple[str, ...]  # without the one that ends the sentence
    log_probability: float  # sum over the words, the end included
    score: float  # what sentences are ranked by: log_probability / n_words ** length_power
    is_finished: bool  # whether the model ended the sentence; if not, max_words did

    @property
    def text(self) -> str:
        """The words in a row."""
        return " ".join(self.words)


@dataclass(frozen=True)
class _Beam:
    """What is searched for."""

    width: int
    n_best: int
    max_words: int
    length_power: float
    n_groups: int
    diversity: float
    n_samples: int | None


@dataclass(frozen=True)
class _Path:
    """An unfinished sentence."""

    words: tuple[int, ...]
    log_probability: float
    group: int


@dataclass(frozen=True)
class _Candidates:
    """Some words for each row, with their scores."""

    words: np.ndarray  # (n_rows, n_candidates)
    scores: np.ndarray  # the same; -inf for words that are impossible

    def take(self, rows: Sequence[int]) -> _Candidates:
        """The candidates of some rows."""
        return _Candidates(self.words[rows], self.scores[rows])

    def best(self, totals: Sequence[float], n_best: int) -> list[tuple[int, int]]:
        """Row and word of the best continuations, best first; fewer where words run out.

        ``totals`` are the scores of the rows so far. Equal scores go by row, then by word.
        """
        total = (np.asarray(totals)[:, None] + self.scores).ravel()
        rows, words = np.arange(total.size) // self.words.shape[1], self.words.ravel()
        order = np.lexsort((words, rows, -total))[:n_best]
        return [(int(rows[i]), int(words[i])) for i in order if total[i] > -np.inf]


def beam_search(
    model: NextWordModel,
    context: Sequence[Any] | np.ndarray,
    *,
    width: int = 5,
    n_best: int = 1,
    max_words: int = 20,
    length_power: float = 0.0,
    n_groups: int = 1,
    diversity: float = 0.0,
    n_samples: int | None = None,
    seed: int | Sequence[Any] = 0,
    allow_unknown: bool = False,
) -> list[list[Sentence]]:
    """The best sentences for each item of the context, best first.

    At each step every unfinished sentence is continued by its candidate words, and the
    ``width`` most likely continuations go on. Width 1 is greedy search.

    Parameters
    ----------
    model : NextWordModel
    context : sequence
        What the model starts from: one item per sentence, such as an image's features.
    width : int
        Unfinished sentences kept for each item.
    n_best : int
        Sentences returned for each item; at most ``width``. There are fewer where the search
        finds fewer.
    max_words : int
        Words at most, the end included. Sentences that are cut off here are ranked among
        the others.
    length_power : float
        Scores are log probabilities over the number of words to this power: 0 ranks by
        probability alone, which favours short sentences; 1 by the mean over words.
    n_groups : int
        Diverse beam search (Vijayakumar et al. 2018): the beam is divided into this many
        groups. ``width`` is a multiple of it.
    diversity : float
        What a word costs a group for each time that an earlier group took it at this step.
    n_samples : int, optional
        Randomised beam search (Shao et al. 2017, the paper's): each sentence is continued
        by this many different words, sampled from its histogram, instead of the most
        likely ones.
    seed : int, or a list with one for each item
        Of the sampling. Every item draws from a generator of its own, so that its
        sentences do not depend on the rest of the batch; with one seed for all, equal items
        get equal sentences. A seed is a number or a list of numbers, such as
        ``[seed, image_id]``.
    allow_unknown : bool
        Whether the unknown word may be generated.

    Examples
    --------
    >>> from wassemble.text import NGramModel
    >>> model = NGramModel.fit([["a", "cat"], ["a", "cat"], ["a", "dog"]], order=2)
    >>> [sentence.text for sentence in beam_search(model, [None], n_best=2)[0]]
    ['a cat', 'a dog']
    """
    beam = _Beam(
        check_count(width, "width"),
        check_count(n_best, "n_best"),
        check_count(max_words, "max_words"),
        check_nonnegative_number(length_power, "length_power"),
        check_count(n_groups, "n_groups"),
        check_nonnegative_number(diversity, "diversity"),
        None if n_samples is None else check_count(n_samples, "n_samples"),
    )
    seeds = _read_seeds(seed, len(context))
    if beam.n_best > beam.width:
        fail(f"`n_best` must be at most `width`, {beam.width}; got {beam.n_best}.")
    if beam.width % beam.n_groups:
        fail(f"`width` must be a multiple of `n_groups`, {beam.n_groups}; got {beam.width}.")
    vocabulary = model.vocabulary
    is_banned = ~vocabulary.is_generated
    if vocabulary.unknown_index is not None and not allow_unknown:
        is_banned[vocabulary.unknown_index] = True
    searches = [_ItemSearch(beam, vocabulary, own) for own in seeds]
    state = model.start(context)
    words = np.full(len(context), vocabulary.start_index)
    for _ in range(beam.max_words):
        if not len(words):
            break
        log_probabilities, state = model.step(state, words)
        logs = np.array(log_probabilities, dtype=np.float64)
        if np.isnan(logs).any():
            fail("log probabilities of next words must be numbers or -inf; the model gave nan.")
        logs[:, is_banned] = -np.inf
        parents, chosen, first = [], [], 0
        for search in searches:
            rows = slice(first, first + len(search.paths))
            kept, new = search.advance(logs[rows])
            parents.append(first + kept)
            chosen.append(new)
            first = rows.stop
        words = np.concatenate(chosen)
        state = model.reorder(state, np.concatenate(parents))
    return [search.best() for search in searches]


class _ItemSearch:
    """The search for one item of the context."""

    def __init__(self, beam: _Beam, vocabulary: Vocabulary, seed: Any) -> None:
        self.paths = [_Path((), 0.0, -1)]  # the first step belongs to every group
        self._beam = beam
        self._vocabulary = vocabulary
        self._rng = np.random.default_rng(seed)
        self._finished: dict[tuple[int, ...], Sentence] = {}  # groups may find the same one

    def advance(self, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Continue the paths by a word each; the paths that go on come from these rows."""
        if not self.paths:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        beam = self._beam
        taken = np.zeros(logs.shape[1])
        parents: list[int] = []
        going_on: list[_Path] = []
        candidates = self._candidates(logs, taken)
        for group in range(beam.n_groups):
            if group and beam.diversity:
                candidates = self._candidates(logs, taken)
            rows = [i for i, path in enumerate(self.paths) if path.group in (group, -1)]
            totals = [self.paths[row].log_probability for row in rows]
            chosen = candidates.take(rows).best(totals, beam.width // beam.n_groups)
            for place, word in chosen:
                row = rows[place]
                total = self.paths[row].log_probability + float(logs[row, word])
                path = _Path((*self.paths[row].words, word), total, group)
                taken[word] += beam.diversity
                if word == self._vocabulary.end_index:
                    self._finish(path, is_finished=True)
                else:
                    parents.append(row)
                    going_on.append(path)
        if not (going_on or self._finished):
            fail(
                "after every unfinished sentence some word must be possible; none is after"
                f" {enumerate_names(self._vocabulary.decode(self.paths[0].words)) or 'the start'}.",
                hint="`allow_unknown` lets the unknown word be generated",
            )
        self.paths = going_on
        if self._is_decided():
            self.paths, parents = [], []
        words = [path.words[-1] for path in self.paths]
        return np.array(parents, dtype=np.int64), np.array(words, dtype=np.int64)

    def _candidates(self, logs: np.ndarray, taken: np.ndarray) -> _Candidates:
        """The likeliest words that may continue each path, or sampled ones."""
        beam = self._beam
        scores = logs - taken
        if beam.n_samples is None:
            return _highest(scores, scores, beam.width // beam.n_groups)
        # Different words, drawn in proportion to exp(score): the Gumbel top-k trick.
        return _highest(scores + self._rng.gumbel(size=scores.shape), scores, beam.n_samples)

    def _finish(self, path: _Path, *, is_finished: bool) -> None:
        n_words = len(path.words)
        words = self._vocabulary.decode(path.words[:-1] if is_finished else path.words)
        score = path.log_probability / n_words**self._beam.length_power
        sentence = Sentence(tuple(words), path.log_probability, score, is_finished)
        self._finished[path.words] = sentence

    def _is_decided(self) -> bool:
        """Whether no unfinished sentence can still be among the best."""
        beam = self._beam
        if len(self._finished) < beam.n_best or beam.n_groups > 1:
            return False
        least = sorted(sentence.score for sentence in self._finished.values())[-beam.n_best]
        # Log probabilities only fall; the most that length can make up is the longest's.
        longest = beam.max_words**beam.length_power
        return all(path.log_probability / longest <= least for path in self.paths)

    def best(self) -> list[Sentence]:
        """The best sentences, those that were cut off among them."""
        for path in self.paths:
            self._finish(path, is_finished=False)
        self.paths = []
        ranked = sorted(self._finished.values(), key=lambda sentence: -sentence.score)
        return ranked[: self._beam.n_best]


def _read_seeds(seed: int | Sequence[Any], n_items: int) -> list[Any]:
    """The seed of each item."""
    if isinstance(seed, int | np.integer):
        return [check_count(seed, "seed", at_least=0)] * n_items
    seeds = list(seed)
    if len(seeds) != n_items:
        fail(f"`seed` must be one number, or one for each of {n_items} items; got {len(seeds)}.")
    for own in seeds:
        for part in own if isinstance(own, list | tuple) else [own]:
            check_count(part, "seed", at_least=0)
    return seeds


def _highest(keys: np.ndarray, scores: np.ndarray, n_words: int) -> _Candidates:
    """The words of the highest keys in each row, in no order, with their scores."""
    n_words = min(n_words, scores.shape[1])
    words = np.argpartition(-keys, n_words - 1, axis=1)[:, :n_words]
    return _Candidates(words, np.take_along_axis(scores, words, axis=1))
