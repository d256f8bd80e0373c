"""Captions from shuffled predictions (the paper's section 6.3, figure 2, right panel).

At each step the best words of each captioner change places with their neighbours by K. A mean
takes them at their word; the barycenter knows through K which words are neighbours.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from paper.captioners import SEEING
from paper.captioning.gallery import Captioned, Gallery, Rules, SearchConfig, judged_table
from paper.record.findings import Claim, Figure, Findings, Plot, Progress, Table, fill, ticker
from paper.record.judging import Judge
from paper.record.verdicts import claim_gains, conclude, held, smallest_visible
from paper.words.models import (
    FUNCTION_WORDS,
    KernelAt,
    epsilon_at,
    glove_kernels,
    synonym_kernels,
)
from wassemble.ensemble.shuffling import make_stars, shuffle_stars
from wassemble.kernels import LabelledKernel
from wassemble.solvers import PowerMean
from wassemble.text import FusedNextWord, NextWordModel, Vocabulary
from wassemble.text.kernels import has_letters

_TEXT = """\
At every step of every captioner ({names}) the probabilities of its {n_hubs} best content words and
of their nearest words by K, a star of each, change places: at random, anew for each image,
captioner, step and sentence of the beam. Function words, digits and the end of the sentence keep
theirs. Stars are of GloVe neighbours (K = exp(-squared distance of unit vectors / epsilon)) or of
synonyms, and a rule that uses a kernel uses the same one. Stars of 1 are no shuffle, and the
ceiling. Top-k search, beam {width}, sentences ranked by their mean log probability per word. The
barycenter is Algorithm 1, at most {max_sweeps} sweeps, between the {n_top} words that some
captioner finds likeliest; all others count as one ({dropped}). For each size of stars, the distance
of K to the identity (of {distances}), the order of the power mean and the best single captioner are
those of best CIDEr on {n_validation} shuffled validation images; {n_test} test images have shuffles
of their own. Captioners are those of 2,504 words, not of 10,192: more images can be judged in the
same time. Claims are about stars of {judged}: a word with its four nearest."""

_NOTE = """\
CIDEr on test images. "Arithmetic mean through K" and "geometric mean through K" send each captioner
through K and then take the mean; the second is the first sweep of the barycenter."""

_ALIKE_NOTE = """\
Test images; the distance of K is that of the table above. Here a star is shuffled in the same way
by every captioner that has it. Where words that K does not tell apart change places in all
captioners alike, the histograms are those of captioners that mean the other words, and no rule can
recover. What is left of the gain is from stars that captioners do not share, and from words that
are nearer to the hub than to each other. Means through K are the control: what they gain too is
K's, not the transport's. Gains in CIDEr, paired, are over the arithmetic mean."""

_DIFFERENCE = """\
the paper's figure has no numbers and does not say how many words changed places; its
neighbourhoods grow with epsilon, ours are given and K is tuned. Our captioners are small and
learned from 3,000 images."""

_MEANS = ("arithmetic mean", "geometric mean")
_SIMPLE = ("best single captioner", *_MEANS, "power mean")
_THROUGH = tuple(f"{mean} through K" for mean in _MEANS)
_BARYCENTER = "barycenter"
_RECOVERS = 0.9  # of CIDEr without shuffles: what we take "recovers" to be
_ALIKE = (*_MEANS, *_THROUGH, _BARYCENTER)


@dataclass(frozen=True, kw_only=True)
class Config(SearchConfig):
    """Knobs: stars, and what is tried on validation images."""

    captioners: tuple[str, ...] = SEEING
    sizes: tuple[int, ...] = (1, 3, 5, 9)  # of stars; 1 is no shuffle
    judged: int = 5  # the size that claims are about; it and 1 must be among the sizes
    n_hubs: int = 10
    n_top: int = 500
    glove_distances: tuple[float, ...] = (15.9, 48.5)
    synonym_distances: tuple[float, ...] = (15.8, 59.4)
    orders: tuple[float, ...] = (0.5, 2.0)
    n_validation: int = 20
    n_test: int = 100


Models = Mapping[str, NextWordModel]
Way = Callable[[Models], NextWordModel]
"""From captioners to what is searched."""


def run(config: Config, progress: Progress = None) -> Findings:
    """CIDEr and meaning of each rule as stars grow, for each kernel."""
    captioners = config.read_captioners()
    vocabulary = FusedNextWord(list(captioners.values())).vocabulary
    kernels = {
        "GloVe": (glove_kernels(vocabulary.words), config.glove_distances),
        "synonyms": (synonym_kernels(vocabulary.words), config.synonym_distances),
    }
    tick = ticker(progress, sum(_count(config, len(tried)) for _, tried in kernels.values()))
    validation = config.gallery("val", config.n_validation, tick)
    test = config.gallery("test", config.n_test, tick)
    trials = {
        name: _Trial(config, captioners, vocabulary, *each, validation, test)
        for name, each in kernels.items()
    }
    tables, plots, claims, dropped = [], [], [], []
    kept: dict[str, dict[str, float]] = {}
    for name, trial in trials.items():
        by_size = {size: trial.at(size) for size in config.sizes}
        judged = by_size[config.judged]
        tables += [
            _by_size(name, by_size),
            trial.table(name, judged),
            trial.alike_table(name, judged),
        ]
        plots.append(_plot(name, by_size))
        claims += trial.claims(name, judged, by_size[1])
        kept[name] = {
            rule: said.mean_cider / by_size[1].said[rule].mean_cider
            for rule, said in judged.said.items()
        }
        dropped.append(
            f"{name}: {100 * judged.dropped:.1f} % of the mass of the captioner hit hardest"
        )
    return Findings(
        text=fill(
            _TEXT,
            config,
            names=", ".join(captioners),
            distances="; ".join(
                f"{name} {', '.join(f'{each:g}' for each in tried)}"
                for name, (_, tried) in kernels.items()
            ),
            n_validation=len(validation.references),
            n_test=len(test.references),
            dropped="; ".join(dropped),
        ),
        tables=tables,
        plots=plots,
        claims=claims,
        verdict=conclude(claims, _why(kept)),
        difference=_DIFFERENCE,
    )


def _why(kept: Mapping[str, Mapping[str, float]]) -> str:
    """What is left of CIDEr under shuffles; ``kept`` has shares by kernel and by rule."""
    parts = []
    for name, shares in kept.items():
        mean = max(_MEANS, key=shares.__getitem__)
        parts.append(
            f"under stars of {name} the barycenter keeps {shares[_BARYCENTER]:.0%} of the CIDEr"
            f" that it has without shuffles, the {mean} {shares[mean]:.0%}, and the {_THROUGH[-1]},"
            f" which is the barycenter's first sweep, {shares[_THROUGH[-1]]:.0%}"
        )
    return "; ".join(parts)


def _count(config: Config, n_distances: int) -> int:
    """Galleries that one kernel captions."""
    n_simple = len(config.captioners) + len(_MEANS) + len(config.orders) + len(_SIMPLE)
    n_through = (len(_THROUGH) + 1) * (n_distances + 1)
    return len(config.sizes) * (n_simple + n_through) + len(_ALIKE)


@dataclass(frozen=True, eq=False)
class _AtSize:
    """What became of every rule with stars of one size."""

    chosen: dict[str, Way]  # on validation images
    scores: dict[str, float]  # CIDEr there
    said: Rules  # of test images
    dropped: float  # mean share of mass that a step of the barycenter had on words left out


@dataclass(frozen=True, eq=False)
class _Trial:
    """Stars of one kernel, and every rule on them."""

    config: Config
    captioners: Models
    vocabulary: Vocabulary
    kernel_at: KernelAt
    distances: Sequence[float]
    validation: Gallery
    test: Gallery

    @cached_property
    def judge(self) -> Judge:
        return self.test.judge(self.config.seed)

    @cached_property
    def rules(self) -> dict[str, list[Way]]:
        """Every rule, with what is tried for it."""
        kernels = [self.kernel_at(epsilon_at(self.kernel_at, each)) for each in self.distances]
        orders = dict(zip(_MEANS, (1.0, 0.0), strict=True))
        return {
            "best single captioner": [itemgetter(name) for name in self.config.captioners],
            **{mean: [partial(_mean, order=order)] for mean, order in orders.items()},
            "power mean": [partial(_mean, order=order) for order in self.config.orders],
            **{
                f"{mean} through K": [
                    partial(self._through, order=order, kernel=k) for k in kernels
                ]
                for mean, order in orders.items()
            },
            _BARYCENTER: [partial(self._barycenter, kernel=kernel) for kernel in kernels],
        }

    def at(self, size: int) -> _AtSize:
        """Every rule, chosen on validation images, on test images with shuffles of their own."""
        seen, held_out = (self.shuffled(size, side) for side in (0, 1))
        chosen: dict[str, Way] = {}
        scores: dict[str, float] = {}
        said: Rules = {}
        dropped = 0.0
        for rule, ways in self.rules.items():
            tried = [self.validation.caption(way(seen)).mean_cider for way in ways]
            chosen[rule], scores[rule] = ways[int(np.argmax(tried))], max(tried)
            model = chosen[rule](held_out)
            said[rule] = self.test.caption(model)
            if rule == _BARYCENTER:
                assert isinstance(model, FusedNextWord)
                dropped = model.account.mean_dropped
        return _AtSize(chosen, scores, said, dropped)

    def shuffled(self, size: int, side: int, *, alike: bool = False) -> Models:
        """The captioners with shuffles of their own, or all shuffled ``alike``."""
        if size == 1:
            return self.captioners
        stars = word_stars(self.kernel_at(1.0), self.vocabulary, size)
        return {
            name: ShuffledNextWord(
                model,
                stars,
                [self.config.seed, size, side, 0 if alike else place],
                n_hubs=self.config.n_hubs,
            )
            for place, (name, model) in enumerate(self.captioners.items())
        }

    def table(self, name: str, judged: _AtSize) -> Table:
        over = max(_SIMPLE, key=judged.scores.__getitem__)
        title = f"Test images, stars of {self.config.judged} by {name}"
        return judged_table(title, judged.said, self.test, self.judge, over=over)

    def alike_table(self, name: str, judged: _AtSize) -> Table:
        """The control: all captioners are shuffled alike."""
        models = self.shuffled(self.config.judged, 1, alike=True)
        said = {rule: self.test.caption(judged.chosen[rule](models)) for rule in _ALIKE}
        ciders = {rule: each.cider for rule, each in said.items()}
        rows = [
            [rule, judged.said[rule].mean_cider, *cells]
            for rule, cells in self.judge.compare(ciders, _ALIKE[0]).items()
        ]
        title = f"All captioners shuffled alike, stars of {self.config.judged} by {name}"
        columns = ["rule", "CIDEr, each in its way", "CIDEr, all alike", "gain, all alike"]
        return Table(title, columns, rows, note=_ALIKE_NOTE)

    def claims(self, name: str, judged: _AtSize, clean: _AtSize) -> list[Claim]:
        """The barycenter beside itself without shuffles, and beside means without and with K."""
        said, where = judged.said, f"{name}, stars of {self.config.judged}"
        ceiling = clean.said[_BARYCENTER].cider
        back = self.judge.gain(said[_BARYCENTER].cider, _RECOVERS * ceiling)

        def claim(metric: str, values: Callable[[Captioned], np.ndarray], digits: int) -> Claim:
            own = values(said[_BARYCENTER])

            def gain(rule: str) -> Figure:
                return self.judge.gain(own, values(said[rule]))

            words = ", ".join(f"{gain(rule).words(digits)} over the {rule}" for rule in _THROUGH)
            kept = (
                f"{rule} {values(said[rule]).mean():.{digits}f} of"
                f" {values(clean.said[rule]).mean():.{digits}f}"
                for rule in (*_MEANS, *_THROUGH, _BARYCENTER)
            )
            words += f"; of what there is without shuffles: {', '.join(kept)}"
            return claim_gains(
                f"the barycenter suffers less from shuffles than both means ({where}, {metric})",
                "section 6.3, figure 2",
                {f"the {rule}": gain(rule) for rule in _MEANS},
                beside=words,
                digits=digits,
            )

        return [
            Claim(
                f"the barycenter recovers from shuffles: it keeps {_RECOVERS:.0%} of its CIDEr"
                f" ({where})",
                "section 6.3, figure 2",
                held(back),
                f"{said[_BARYCENTER].mean_cider:.3f} of {ceiling.mean():.3f}: {back.words()} beside"
                f" {_RECOVERS:.0%} of it",
                f"{smallest_visible(back):.3f}",
            ),
            claim("CIDEr", lambda each: each.cider, 3),
            claim("WMD, as the paper's", lambda each: each.paper_similarity, 4),
        ]

    def _through(self, models: Models, order: float, kernel: LabelledKernel) -> NextWordModel:
        rule, n_top = PowerMean(order), self.config.n_top
        return FusedNextWord(list(models.values()), kernel=kernel, rule=rule, n_top=n_top)

    def _barycenter(self, models: Models, kernel: LabelledKernel) -> NextWordModel:
        return self.config.barycenter(models.values(), kernel, n_top=self.config.n_top)


def _mean(models: Models, order: float) -> NextWordModel:
    return FusedNextWord(list(models.values()), rule=PowerMean(order))


def _by_size(name: str, by_size: Mapping[int, _AtSize]) -> Table:
    first, *_ = by_size.values()
    rows = [
        [rule, *(each.said[rule].mean_cider for each in by_size.values())] for rule in first.said
    ]
    columns = ["rule", *(f"stars of {size}" for size in by_size)]
    return Table(f"CIDEr as stars by {name} grow", columns, rows, note=_NOTE)


def _plot(name: str, by_size: Mapping[int, _AtSize]) -> Plot:
    first, *_ = by_size.values()
    series = {
        rule: [(size, each.said[rule].mean_cider) for size, each in by_size.items()]
        for rule in first.said
    }
    title = f"CIDEr of shuffled captioners, {name}"
    return Plot(name.lower(), title, "words of a star", "CIDEr", series)


def word_stars(kernel: LabelledKernel, vocabulary: Vocabulary, size: int) -> np.ndarray:
    """Stars of content words by a kernel between all words; see `make_stars`.

    Special words, digits and function words are in none.
    """
    similar = np.asarray(kernel.kernel.to_dense()).copy()
    np.fill_diagonal(similar, 0)
    stays = [place for place, word in enumerate(kernel.target) if not _moves(word, vocabulary)]
    similar[stays] = 0
    similar[:, stays] = 0
    return make_stars(similar, size)


def _moves(word: str, vocabulary: Vocabulary) -> bool:
    return word not in vocabulary.special and word not in FUNCTION_WORDS and has_letters(word)


class ShuffledState(NamedTuple):
    """The model's state, the number of the step, and the item that each row belongs to."""

    inner: Any
    step: int
    items: np.ndarray  # (n_rows,)


class ShuffledNextWord:
    """A next-word model whose best words change places with their neighbours, anew in each row.

    ``stars`` are those of `make_stars`, of words by number. A shuffle belongs to an item of the
    context, a step and a sentence of its beam, whatever else is searched with it. An item is known
    by its features, for a search hands on no other name. Models with the same seed are shuffled
    alike.
    """

    def __init__(
        self, model: NextWordModel, stars: np.ndarray, seed: Sequence[int], *, n_hubs: int
    ) -> None:
        self.vocabulary, self._model = model.vocabulary, model
        self._stars, self._seed, self._n_hubs = stars, seed, n_hubs

    def start(self, context: Any) -> ShuffledState:
        """The model's state before the first word, and which item each row is."""
        items = [zlib.crc32(np.ascontiguousarray(each).tobytes()) for each in context]
        return ShuffledState(self._model.start(context), 0, np.array(items, dtype=np.int64))

    def step(self, state: ShuffledState, words: np.ndarray) -> tuple[np.ndarray, ShuffledState]:
        """The model's log probabilities, shuffled."""
        logs, inner = self._model.step(state.inner, words)
        keys = np.empty(logs.shape)
        for item in np.unique(state.items):
            # Drawn from these numbers alone: threads and earlier searches change nothing.
            rng = np.random.default_rng([*self._seed, int(item), state.step])
            rows = state.items == item
            keys[rows] = rng.random((int(rows.sum()), logs.shape[1]))
        shuffled = shuffle_stars(logs, self._stars, keys, n_hubs=self._n_hubs)
        return shuffled, ShuffledState(inner, state.step + 1, state.items)

    def reorder(self, state: ShuffledState, rows: np.ndarray) -> ShuffledState:
        """The model's state with the given rows."""
        return ShuffledState(self._model.reorder(state.inner, rows), state.step, state.items[rows])
