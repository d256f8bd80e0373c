"""Captions from shuffled predictions (the paper's section 6.3, figure 2, right panel).

Next-word probabilities change places among words of like meaning. A mean takes them at their
word; the barycenter knows through K which words are neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from paper.captioning.gallery import Captioned, Rules, SearchConfig, judged_table
from paper.record.findings import Claim, Figure, Findings, Plot, Progress, Table, fill, ticker
from paper.words.models import KernelAt, glove_kernels
from wassemble.ensemble.shuffling import group_labels, label_similarity
from wassemble.kernels import LabelledKernel
from wassemble.solvers import PowerMean
from wassemble.text import FusedNextWord, NextWordModel, Vocabulary
from wassemble.text.kernels import has_letters

_TEXT = """\
Words are put into neighbourhoods of equal size by their GloVe vectors; function words have
neighbours too, the end of the sentence, digits and words without a vector have none. At every
step of every captioner ({names}) the probabilities of a neighbourhood are shuffled, anew for each
sentence of the beam. Top-k search, beam {width}, sentences ranked by their mean log probability
per word. The barycenter is Algorithm 1 through K = exp(-distance / epsilon) of all words, at
most {sweeps} sweeps. At each size epsilon (of {epsilons}), the order of the power mean and the best
single captioner are those of best CIDEr on {n_validation} shuffled validation images; {n_test}
test images have shuffles of their own."""

_NOTE = """\
CIDEr on test images. "Arithmetic mean through K" blurs each captioner by K and then takes the
mean: K without a consensus of transports. Inside a neighbourhood nothing is left to tell words
by but the words before."""

_DIFFERENCE = """\
the paper's figure has no numbers; its neighbourhoods grow with epsilon, ours are given and
epsilon is tuned. Our captioners are small and learned from 3,000 images."""

_SIMPLE = ("best single captioner", "arithmetic mean", "geometric mean", "power mean")
_BARYCENTER = "barycenter"


@dataclass(frozen=True, kw_only=True)
class Config(SearchConfig):
    """Knobs: sizes of neighbourhoods, and what is tried on validation images."""

    sizes: tuple[int, ...] = (1, 2, 3, 5)
    epsilons: tuple[float, ...] = (0.15, 0.2, 0.25)
    orders: tuple[float, ...] = (0.5, 2.0)
    n_validation: int = 40
    n_test: int = 120


Models = Mapping[str, NextWordModel]
Way = Callable[[Models], NextWordModel]
"""From captioners to what is searched."""


def run(config: Config, progress: Progress = None) -> Findings:
    """CIDEr and meaning of each rule as neighbourhoods grow."""
    captioners = config.read_captioners()
    vocabulary = FusedNextWord(list(captioners.values())).vocabulary
    kernels = glove_kernels(vocabulary.words)
    rules = _rules(config, kernels)
    by_size: dict[int, Rules] = {}
    tick = ticker(progress, len(config.sizes) * sum(len(ways) + 1 for ways in rules.values()))
    validation = config.gallery("val", config.n_validation, tick)
    test = config.gallery("test", config.n_test, tick)
    for size in config.sizes:
        groups = word_groups(kernels(config.epsilons[0]), vocabulary, size)
        # Validation and test images have shuffles of their own.
        seen, held_out = (
            {
                name: ShuffledNextWord(model, groups, [config.seed, size, side, place])
                for place, (name, model) in enumerate(captioners.items())
            }
            for side in (0, 1)
        )
        scores: dict[str, float] = {}
        by_size[size] = {}
        for rule, ways in rules.items():
            tried = [validation.caption(way(seen)).mean_cider for way in ways]
            scores[rule] = max(tried)
            best = ways[int(np.argmax(tried))]
            by_size[size][rule] = test.caption(best(held_out))
        over = max(_SIMPLE, key=scores.__getitem__)
    last, judge = by_size[size], test.judge(config.seed)
    own, other = last[_BARYCENTER], last[over]
    return Findings(
        text=fill(
            _TEXT,
            config,
            names=", ".join(captioners),
            sweeps=config.max_sweeps,
            epsilons=", ".join(f"{epsilon:g}" for epsilon in config.epsilons),
            n_validation=len(validation.references),
            n_test=len(test.references),
        ),
        tables=[
            _table(by_size),
            judged_table(f"Test images, neighbourhoods of {size}", last, test, judge, over=over),
        ],
        plots=[
            _plot("cider", "CIDEr", by_size, lambda each: each.mean_cider),
            _plot("wmd", "WMD similarity", by_size, lambda each: each.mean_similarity),
        ],
        claims=[
            _recovers("CIDEr", judge.gain(own.cider, other.cider), over, size),
            _recovers("WMD", judge.gain(own.similarity, other.similarity), over, size),
            _drops_less(by_size),
        ],
        difference=_DIFFERENCE,
    )


def _rules(config: Config, kernels: KernelAt) -> dict[str, list[Way]]:
    """Every rule, with what is tried for it."""

    def mean(models: Models, order: float, epsilon: float | None = None) -> NextWordModel:
        kernel = None if epsilon is None else kernels(epsilon)
        return FusedNextWord(list(models.values()), kernel=kernel, rule=PowerMean(order))

    def barycenter(models: Models, epsilon: float) -> NextWordModel:
        return config.barycenter(models.values(), kernels(epsilon))

    return {
        "best single captioner": [itemgetter(name) for name in config.captioners],
        "arithmetic mean": [partial(mean, order=1.0)],
        "geometric mean": [partial(mean, order=0.0)],
        "power mean": [partial(mean, order=order) for order in config.orders],
        "arithmetic mean through K": [
            partial(mean, order=1.0, epsilon=each) for each in config.epsilons
        ],
        _BARYCENTER: [partial(barycenter, epsilon=each) for each in config.epsilons],
    }


def _table(by_size: dict[int, Rules]) -> Table:
    first, *_ = by_size.values()
    rows = [[rule, *(rules[rule].mean_cider for rules in by_size.values())] for rule in first]
    columns = ["rule", *(f"neighbourhoods of {size}" for size in by_size)]
    return Table("CIDEr as neighbourhoods grow", columns, rows, note=_NOTE)


def _plot(
    name: str, title: str, by_size: dict[int, Rules], value: Callable[[Captioned], float]
) -> Plot:
    first, *_ = by_size.values()
    series = {
        rule: [(size, value(rules[rule])) for size, rules in by_size.items()] for rule in first
    }
    return Plot(name, f"{title} of shuffled captioners", "words of a neighbourhood", title, series)


def _recovers(metric: str, gain: Figure, over: str, size: int) -> Claim:
    return Claim(
        f"the barycenter is better than the best simple rule when shuffled ({metric})",
        "section 6.3, figure 2",
        gain.low > 0,
        f"{gain.words()} over the {over}, neighbourhoods of {size}",
    )


def _drops_less(by_size: dict[int, Rules]) -> Claim:
    """The share of its own CIDEr that a rule loses from the first size to the last."""
    first, *_, last = by_size.values()
    lost = {
        rule: 1 - last[rule].mean_cider / first[rule].mean_cider
        for rule in (_BARYCENTER, "arithmetic mean", "geometric mean")
    }
    return Claim(
        "shuffling hurts the means more than the barycenter",
        "section 6.3, figure 2",
        all(lost[_BARYCENTER] < loss for rule, loss in lost.items() if rule != _BARYCENTER),
        "CIDEr lost: " + ", ".join(f"{rule} {loss:.0%}" for rule, loss in lost.items()),
    )


def word_groups(kernel: LabelledKernel, vocabulary: Vocabulary, size: int) -> list[list[int]]:
    """Groups of two to ``size`` words that are neighbours by a kernel between all, as numbers.

    Special words, digits and words without a neighbour are in none.
    """
    similar = label_similarity(kernel)
    stays = [
        place
        for place, word in enumerate(kernel.target)
        if word in vocabulary.special or not has_letters(word)
    ]
    similar[stays] = 0
    similar[:, stays] = 0
    return [group for group in group_labels(similar, size) if len(group) > 1]


class ShuffledNextWord:
    """A next-word model whose words change places inside groups, anew for each row of a step.

    ``groups`` are of words by number, each in one group at most.
    """

    def __init__(
        self, model: NextWordModel, groups: Sequence[Sequence[int]], seed: Sequence[int]
    ) -> None:
        self.vocabulary, self._model, self._seed = model.vocabulary, model, seed
        self._words = np.array([word for group in groups for word in group], dtype=np.int64)
        self._groups = np.repeat(np.arange(len(groups)), [len(group) for group in groups])

    def start(self, context: Any) -> tuple[Any, int]:
        """The model's state, and the number of the step."""
        return self._model.start(context), 0

    def step(self, state: tuple[Any, int], words: np.ndarray) -> tuple[np.ndarray, Any]:
        """The model's log probabilities, shuffled."""
        inner, number = state
        logs, inner = self._model.step(inner, words)
        # Drawn from the step's number alone: threads and earlier searches change nothing.
        rng = np.random.default_rng([*self._seed, number])
        order = (self._groups + rng.random((len(logs), len(self._words)))).argsort(axis=1)
        shuffled = logs.copy()
        shuffled[:, self._words] = np.take_along_axis(logs[:, self._words], order, axis=1)
        return shuffled, (inner, number + 1)

    def reorder(self, state: tuple[Any, int], rows: np.ndarray) -> tuple[Any, int]:
        """The model's state with the given rows."""
        return self._model.reorder(state[0], rows), state[1]
