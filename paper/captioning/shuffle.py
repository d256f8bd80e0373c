"""Captions from shuffled predictions (the paper's section 6.3, figure 2, right panel).

Next-word probabilities change places among words of like meaning. A mean takes them at their
word; the barycenter knows through K which words are neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

import numpy as np

from paper.captioning.gallery import FIVE, Captioned, Gallery, read_captioners
from paper.captioning.kernels import KernelAt, glove_kernels
from paper.captioning.shuffled_words import ShuffledNextWord, word_groups
from paper.captioning.study import Rules
from paper.captioning.tables import judged_table
from paper.record.findings import Cell, Claim, Figure, Findings, Plot, Progress, Table
from wassemble.solvers import ARITHMETIC, Barycenter, PowerMean
from wassemble.text.fused import FusedNextWord
from wassemble.text.models import NextWordModel

__all__ = ["Config", "run"]

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


@dataclass(frozen=True)
class Config:
    """Knobs: sizes of neighbourhoods, and what is tried on validation images."""

    captioners: tuple[str, ...] = FIVE
    sizes: tuple[int, ...] = (1, 2, 3, 5)
    epsilons: tuple[float, ...] = (0.15, 0.2, 0.25)
    orders: tuple[float, ...] = (0.5, 2.0)
    n_validation: int = 40
    n_test: int = 120
    width: int = 5
    length_power: float = 1.0
    max_words: int = 14
    max_sweeps: int = 5
    tolerance: float = 1e-3
    seed: int = 0


Way = Callable[[dict[str, NextWordModel]], NextWordModel]
"""From captioners to what is searched."""


def run(config: Config, progress: Progress = None) -> Findings:
    """CIDEr and meaning of each rule as neighbourhoods grow."""
    captioners = read_captioners(config.captioners)
    search = {
        "width": config.width,
        "length_power": config.length_power,
        "max_words": config.max_words,
    }
    validation = Gallery("val", config.n_validation, **search)
    test = Gallery("test", config.n_test, **search)
    vocabulary = FusedNextWord(list(captioners.values())).vocabulary
    kernels = glove_kernels(vocabulary.words)
    rules = _rules(config, kernels)
    by_size: dict[int, Rules] = {}
    n_done, n_all = 0, len(config.sizes) * sum(len(ways) + 1 for ways in rules.values())

    def caption(gallery: Gallery, way: Way, models: dict[str, NextWordModel]) -> Captioned:
        nonlocal n_done
        found = gallery.caption(way(models))
        n_done += 1
        if progress is not None:
            progress(n_done, n_all)
        return found

    for size in config.sizes:
        groups = word_groups(kernels(config.epsilons[0]), vocabulary, size)
        # Validation and test images have shuffles of their own.
        seen, held_out = (
            _shuffled(captioners, groups, [config.seed, size, side]) for side in (0, 1)
        )
        scores: dict[str, float] = {}
        by_size[size] = {}
        for rule, ways in rules.items():
            tried = [float(caption(validation, way, seen).cider.mean()) for way in ways]
            scores[rule] = max(tried)
            best = ways[int(np.argmax(tried))]
            by_size[size][rule] = caption(test, best, held_out)
        over = max(_SIMPLE, key=lambda rule: scores[rule])
    last = by_size[config.sizes[-1]]
    judge = test.judge(config.seed)
    own, other = last[_BARYCENTER], last[over]
    return Findings(
        text=_TEXT.format(
            names=", ".join(captioners),
            width=config.width,
            sweeps=config.max_sweeps,
            epsilons=", ".join(f"{epsilon:g}" for epsilon in config.epsilons),
            n_validation=len(validation.references),
            n_test=len(test.references),
        ),
        tables=[
            _table(by_size),
            judged_table(
                f"Test images, neighbourhoods of {config.sizes[-1]}",
                last,
                test,
                over=over,
                seed=config.seed,
            ),
        ],
        plots=[
            _plot("cider", "CIDEr", by_size, lambda each: each.cider),
            _plot("wmd", "WMD similarity", by_size, lambda each: each.similarity),
        ],
        claims=[
            _recovers("CIDEr", judge.gain(own.cider, other.cider), over, config.sizes[-1]),
            _recovers("WMD", judge.gain(own.similarity, other.similarity), over, config.sizes[-1]),
            _drops_less(by_size),
        ],
        difference=_DIFFERENCE,
    )


def _shuffled(
    captioners: Mapping[str, NextWordModel], groups: Sequence[Sequence[int]], seed: list[int]
) -> dict[str, NextWordModel]:
    return {
        name: ShuffledNextWord(model, groups, [*seed, place])
        for place, (name, model) in enumerate(captioners.items())
    }


def _rules(config: Config, kernels: KernelAt) -> dict[str, list[Way]]:
    """Every rule, with what is tried for it."""

    def mean(models: dict[str, NextWordModel], order: float) -> NextWordModel:
        return FusedNextWord(list(models.values()), rule=PowerMean(order))

    def through(models: dict[str, NextWordModel], epsilon: float) -> NextWordModel:
        every = list(models.values())
        return FusedNextWord(every, kernel=kernels(epsilon), rule=ARITHMETIC)

    def barycenter(models: dict[str, NextWordModel], epsilon: float) -> NextWordModel:
        return FusedNextWord(
            list(models.values()),
            kernel=kernels(epsilon),
            rule=Barycenter(max_sweeps=config.max_sweeps, tolerance=config.tolerance),
        )

    return {
        "best single captioner": [itemgetter(name) for name in config.captioners],
        "arithmetic mean": [partial(mean, order=1.0)],
        "geometric mean": [partial(mean, order=0.0)],
        "power mean": [partial(mean, order=order) for order in config.orders],
        "arithmetic mean through K": [partial(through, epsilon=each) for each in config.epsilons],
        _BARYCENTER: [partial(barycenter, epsilon=each) for each in config.epsilons],
    }


def _table(by_size: dict[int, Rules]) -> Table:
    rows: list[list[Cell]] = [
        [rule, *(float(found[rule].cider.mean()) for found in by_size.values())]
        for rule in next(iter(by_size.values()))
    ]
    columns = ["rule", *(f"neighbourhoods of {size}" for size in by_size)]
    return Table("CIDEr as neighbourhoods grow", columns, rows, note=_NOTE)


def _plot(
    name: str, title: str, by_size: dict[int, Rules], value: Callable[[Captioned], np.ndarray]
) -> Plot:
    series = {
        rule: [(size, float(value(found[rule]).mean())) for size, found in by_size.items()]
        for rule in next(iter(by_size.values()))
    }
    return Plot(name, f"{title} of shuffled captioners", "words of a neighbourhood", title, series)


def _recovers(metric: str, gain: Figure, over: str, size: int) -> Claim:
    return Claim(
        f"the barycenter is better than the best simple rule when shuffled ({metric})",
        "section 6.3, figure 2",
        gain.low > 0,
        f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}] over the {over}, neighbourhoods"
        f" of {size}",
    )


def _drops_less(by_size: dict[int, Rules]) -> Claim:
    """The share of its own CIDEr that a rule loses from the first size to the last."""
    first, *_, last = by_size.values()
    lost = {
        rule: float(1 - last[rule].cider.mean() / first[rule].cider.mean())
        for rule in (_BARYCENTER, "arithmetic mean", "geometric mean")
    }
    return Claim(
        "shuffling hurts the means more than the barycenter",
        "section 6.3, figure 2",
        all(lost[_BARYCENTER] < loss for rule, loss in lost.items() if rule != _BARYCENTER),
        "CIDEr lost: " + ", ".join(f"{rule} {loss:.0%}" for rule, loss in lost.items()),
    )
