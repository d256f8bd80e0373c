"""Pictures to caption: a search over any next-word model, and the scores of what it says.

What all experiments on captions share.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from paper.captioners import TOLD
from paper.captioners.captioner import Captioner, read_captioner
from paper.captioners.recipes import RECIPES
from paper.captioning import scores
from paper.data.captions import CaptionsData, load_captions
from paper.data.files import find_data
from paper.record.findings import Figure, Table, paper_figures
from paper.record.judging import Judge
from paper.words.models import FUNCTION_WORDS, load_caption_vectors
from wassemble._threads import count_threads
from wassemble.errors import MissingExtraError
from wassemble.kernels import LabelledKernel
from wassemble.metrics import MEAN, entropy
from wassemble.solvers import Barycenter
from wassemble.text import FusedNextWord, NextWordModel, beam_search
from wassemble.text.fused import StepAccount

_TEST_NOTE = """\
Gains in CIDEr are over the simple rule that is best on validation images ({over}), paired, with
95 % bootstrap intervals over images. WMD is exp(-Word Mover's Distance) to the nearest
reference, the higher the closer in meaning; "WMD, as the paper's" is 1 / (1 + distance), with
GloVe vectors of their own lengths, without function words, the mean over references: what has the
level of the paper's .20. Entropy is the mean over the first {n_read} images of that of a caption's
steps, between all words, in nats; words are those of a caption, on average, and the different
words of all captions."""

_N_TOGETHER = 15
"""Images that are searched in one batch, by one thread."""

_N_READ_AGAIN = 6
"""Images whose captions are read again, with all words, for their entropy."""


@dataclass(frozen=True, eq=False)
class Captioned:
    """What a model said of each picture."""

    texts: list[str]
    entropies: np.ndarray  # of the first captions: mean over their steps, between all words, nats
    cider: np.ndarray  # CIDEr-D; how rare an n-gram is, is counted on every image of the split
    similarity: np.ndarray  # exp(-Word Mover's Distance) to the nearest reference, or 0
    paper_similarity: np.ndarray  # 1 / (1 + distance), as the paper seems to have it, or 0

    @property
    def entropy(self) -> float:
        """Mean entropy of a step, over the captions that were read again."""
        return float(self.entropies.mean())

    @property
    def n_words(self) -> float:
        """Words of a caption, on average."""
        return float(np.mean([len(text.split()) for text in self.texts]))

    @property
    def mean_cider(self) -> float:
        """CIDEr over all images."""
        return float(self.cider.mean())

    @property
    def mean_similarity(self) -> float:
        """Similarity over all images."""
        return float(self.similarity.mean())

    @property
    def mean_paper_similarity(self) -> float:
        """The paper's similarity over all images."""
        return float(self.paper_similarity.mean())


Rules = dict[str, Captioned]
"""What each rule said, by its name."""


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Knobs of every search, and of every barycenter that it goes through."""

    captioners: tuple[str, ...] = TOLD
    width: int = 5
    length_power: float = 1.0
    max_words: int = 14
    max_sweeps: int = 5  # the paper's; fewer where a row has reached `tolerance`
    tolerance: float = 1e-3
    seed: int = 0

    @property
    def with_concepts(self) -> bool:
        """Whether the captioners are told concepts."""
        return RECIPES[self.captioners[0]].is_blind

    def read_captioners(self, *names: str) -> dict[str, Captioner]:
        """The captioners of these names, else those to fuse."""
        files = {name: find_data(f"captioners/{name}.npz") for name in names or self.captioners}
        return {name: read_captioner(path) for name, path in files.items()}

    def gallery(
        self,
        split: str,
        n_images: int,
        tick: Callable[[], None] | None = None,
        *,
        first: int = 0,
    ) -> Gallery:
        """Images of a split, from the ``first`` on, and this search."""
        return Gallery(
            split,
            n_images,
            first=first,
            with_concepts=self.with_concepts,
            tick=tick,
            width=self.width,
            length_power=self.length_power,
            max_words=self.max_words,
        )

    def barycenter(
        self,
        models: Iterable[NextWordModel],
        kernel: LabelledKernel | Sequence[LabelledKernel] | None,
        *,
        n_top: int | None = None,
        debias: bool = False,
    ) -> FusedNextWord:
        """The models fused through ``kernel``, of all words or of the ``n_top`` likeliest."""
        rule = Barycenter(max_sweeps=self.max_sweeps, tolerance=self.tolerance, debias=debias)
        return FusedNextWord(list(models), kernel=kernel, rule=rule, n_top=n_top)


class Gallery:
    """Images of a split, by their numbers, and a search with options of `beam_search`.

    There are ``n_images`` from the ``first`` on. ``tick`` is called whenever a model has captioned
    them all.
    """

    def __init__(
        self,
        split: str,
        n_images: int,
        *,
        first: int = 0,
        with_concepts: bool = False,
        tick: Callable[[], None] | None = None,
        **search: Any,
    ) -> None:
        data, self._cider = _read_split(split, with_concepts)
        self._first, self._tick = first, tick
        some = slice(first, first + n_images)
        self.image_ids = data.image_ids[some]
        self.features = data.features[some]
        self.references = data.captions[some]
        self._search = search
        self._vectors = load_caption_vectors(unit_norm=True)
        self._raw_vectors = load_caption_vectors()

    def caption(self, model: NextWordModel, *, seed: int = 0, **search: Any) -> Captioned:
        """The best sentence for each picture; ``search`` is added to the gallery's.

        What is sampled for a picture depends on ``seed`` and its number.
        """
        options = self._search | search

        def caption_some(first: int) -> list[str]:
            # Products are small: threads inside them cost more than they bring.
            with threadpool_limits(1, user_api="openmp"):
                some = slice(first, first + _N_TOGETHER)
                seeds = [[seed, int(number)] for number in self.image_ids[some]]
                best = beam_search(model, self.features[some], seed=seeds, **options)
            return [sentences[0].text for sentences in best]

        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(count_threads(None)) as pool:
            parts = list(pool.map(caption_some, range(0, len(self.features), _N_TOGETHER)))
        texts = [text for part in parts for text in part]
        whole = _with_all_words(model)
        spread = _mean_entropies(whole, self.features[:_N_READ_AGAIN], texts[:_N_READ_AGAIN])
        if self._tick is not None:
            self._tick()
        return Captioned(texts, spread, *self.score(texts))

    def score(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """CIDEr and both similarities of each caption."""
        numbered = enumerate(texts, start=self._first)
        rare = np.array([self._cider.score(i, text.split()) for i, text in numbered])
        distance = partial(scores.word_movers_distance, texts, self.references)
        near = np.exp(-distance(self._vectors).per_image)
        options: dict[str, Any] = {"leave_out": FUNCTION_WORDS, "to_nearest": False}
        raw = 1 / (1 + distance(self._raw_vectors, **options).per_image)
        return rare, np.nan_to_num(near, nan=0.0), np.nan_to_num(raw, nan=0.0)

    def judge(self, seed: int) -> Judge:
        """Of scores that are one number per image."""
        return Judge(MEAN, np.zeros(len(self.features)), seed=seed)


def entropy_gain(wide: Captioned, near: Captioned, seed: int) -> Figure:
    """How much more entropy the steps of one rule's captions have than another's, paired by image.

    With an interval over the captions that were read again.
    """
    judge = Judge(MEAN, np.zeros(len(wide.entropies)), seed=seed)
    return judge.gain(wide.entropies, near.entropies)


@cache
def _read_split(split: str, with_concepts: bool) -> tuple[CaptionsData, scores.CiderD]:
    """A split's images, and how rare the n-grams of their captions are."""
    data = load_captions(split, with_concepts=with_concepts)
    return data, scores.CiderD([[text.split() for text in texts] for texts in data.captions])


def _mean_entropies(model: NextWordModel, features: np.ndarray, texts: Sequence[str]) -> np.ndarray:
    """By caption, of what a model expects before each word and at the end, in nats."""
    vocabulary = model.vocabulary
    left = [[*vocabulary.encode(text.split()), vocabulary.end_index] for text in texts]
    state, words = model.start(features), np.full(len(left), vocabulary.start_index)
    sums, n_steps = np.zeros(len(left)), np.array([len(each) for each in left])
    captions = np.arange(len(left))
    while left:
        logs, state = model.step(state, words)
        sums[captions] += entropy(np.exp(logs))
        rows = np.flatnonzero([len(each) > 1 for each in left])
        state, words = model.reorder(state, rows), np.array([left[row][0] for row in rows])
        left, captions = [left[row][1:] for row in rows], captions[rows]
    return sums / n_steps


def _with_all_words(model: NextWordModel) -> NextWordModel:
    """A model whose steps leave out no word."""
    if not isinstance(model, FusedNextWord):
        return model
    whole = copy(model)
    whole.fusion = replace(model.fusion, n_top=None)
    whole.account = StepAccount()  # what a search left out stays told by itself
    return whole


def java_scores(
    rules: Rules, references: Sequence[Sequence[str]]
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """METEOR and SPICE by rule, means over images, and why one of them is not there.

    The captions of all rules are scored in one call: the programs are slow to start.
    """
    texts = [text for said in rules.values() for text in said.texts]
    each = list(references) * len(rules)
    by_metric: dict[str, dict[str, float]] = {}
    notes = []
    for name, metric in (("METEOR", scores.meteor), ("SPICE", scores.spice)):
        try:
            per_image = metric(texts, each).per_image.reshape(len(rules), -1)
        except MissingExtraError as error:
            notes.append(str(error).splitlines()[0])
        else:
            by_metric[name] = dict(zip(rules, per_image.mean(axis=1).tolist(), strict=True))
    return by_metric, notes


def judged_table(
    title: str,
    rules: Rules,
    gallery: Gallery,
    judge: Judge,
    *,
    over: str,
    paper: str = "",
    extra: Mapping[str, Mapping[str, Any]] | None = None,
    note: str = "",
) -> Table:
    """Every rule on test images, with more columns where there are.

    Figures of the experiment ``paper`` are found by a rule's name without what is in brackets.
    """
    by_java, missing = java_scores(rules, gallery.references)
    expected = paper_figures(paper) if paper else None

    def row(name: str, said: Captioned) -> dict[str, Any]:
        cells = {
            "rule": name,
            "CIDEr": judge.figure(said.cider),
            "gain in CIDEr": judge.gain(said.cider, rules[over].cider) if name != over else None,
            **{metric: each[name] for metric, each in by_java.items()},
            "WMD": judge.figure(said.similarity),
            "WMD, as the paper's": judge.figure(said.paper_similarity),
            "entropy": said.entropy,
            "words": said.n_words,
            "different words": scores.vocabulary_size(said.texts),
            **{column: each[name] for column, each in (extra or {}).items()},
        }
        if expected is not None:
            key = re.sub(r" \(.*?\)", "", name)
            metrics = ("CIDEr", "entropy", "WMD")
            cells |= {f"paper: {metric}": expected.get(key, metric) for metric in metrics}
        return cells

    note = " ".join(
        filter(None, [_TEST_NOTE.format(over=over, n_read=_N_READ_AGAIN), note, *missing])
    )
    digits = {"rule": 0, "entropy": 2, "words": 1, "different words": 0, "paper: entropy": 2}
    return Table.of(title, itertools.starmap(row, rules.items()), digits, note)
