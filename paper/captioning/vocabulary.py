"""Two captioners that know different words, fused into all words of both (beyond the paper).

The paper's framework allows a label set, and a kernel, for each model; its captioners share
one. Here one captioner knows frequent words only, and from the other a fifth is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from paper.captioning.gallery import Captioned, Rules, SearchConfig, judged_table
from paper.record.findings import Claim, Findings, Plot, Progress, fill, ticker
from paper.record.judging import Judge
from paper.record.verdicts import claim_gains, conclude
from paper.words.models import epsilon_at, glove_kernels
from wassemble._arrays import Array
from wassemble.kernels import LabelledKernel
from wassemble.solvers import ARITHMETIC, GEOMETRIC, PowerMean
from wassemble.solvers.power_means import weighted_sum
from wassemble.solvers.rules import CarriedRule
from wassemble.text import FusedNextWord, NextWordModel

_TEXT = """\
{names} are fused at every step into the {n_union:,} words of both ({n_words} words). Means are over
the captioners that know a word; "silence is a no" counts what a captioner does not know as 0. The
barycenter is Algorithm 1 with a GloVe kernel for each captioner, from its own words to those of
both, at most {max_sweeps} sweeps. A captioner reads the nearest word that it knows. Epsilon goes by
the distance of K to the identity (see "Captions through GloVe"), between all words of both. It and
the order of the power mean are those of best CIDEr on {n_validation} validation images; top-k
search, beam {width}, sentences ranked by their mean log probability per word. {other}, which knows
every word, is for comparison and is not fused. Captioners are those of 2,504 words, not of 10,192:
what two of them lack was taken from that vocabulary when they were trained."""

_NOTE = """\
Rare words are those that only one of the two captioners knows: how many the captions have, all
together."""

_WHY = """\
a word that one captioner lacks is rarely the best one, so that there is little for a kernel to
bring"""

_POWER = "power mean, order tuned"
_BARYCENTER = "barycenter, distance tuned"
_THROUGH = "arithmetic mean through the kernels, distance tuned"


@dataclass(frozen=True, kw_only=True)
class Config(SearchConfig):
    """Knobs: captioners, images, and what is tried on validation images."""

    captioners: tuple[str, ...] = ("frequent-words", "missing-words")
    other: str = "cross-entropy"
    distances: tuple[float, ...] = (4.2, 15.9, 48.5)
    orders: tuple[float, ...] = (0.5, 2.0)
    n_validation: int = 40
    n_test: int = 120


def run(config: Config, progress: Progress = None) -> Findings:
    """CIDEr and meaning of each rule."""
    captioners = config.read_captioners()
    models = list(captioners.values())
    [other] = config.read_captioners(config.other).values()
    simple, tuned = _simple_rules(captioners, config), _tuned_rules(models, config)
    rules: dict[str, NextWordModel] = {**simple, f"{config.other} (all words)": other}
    n_all = len(simple) + len(rules) + sum(len(each) + 1 for each in tuned.values())
    tick = ticker(progress, n_all)
    validation = config.gallery("val", config.n_validation, tick)
    test = config.gallery("test", config.n_test, tick)
    scores = {name: validation.caption(model).mean_cider for name, model in simple.items()}
    tried: dict[str, dict[float, Captioned]] = {}
    for name, ways in tuned.items():
        each = tried[name] = {knob: validation.caption(make()) for knob, make in ways.items()}
        best = max(each, key=lambda knob: each[knob].mean_cider)
        title = f"{name} ({best:g})"
        rules[title] = ways[best]()
        if name == _POWER:
            scores[title] = each[best].mean_cider
    said = {name: test.caption(model) for name, model in rules.items()}
    over, judge = max(scores, key=scores.__getitem__), test.judge(config.seed)
    counts = Counter(word for model in models for word in model.vocabulary.words)
    rare = {word for word, n_models in counts.items() if n_models < len(models)}
    n_rare = {
        name: sum(word in rare for text in each.texts for word in text.split())
        for name, each in said.items()
    }
    extra = {"rare words": n_rare}
    claims = _claims(said, judge, list(captioners), over)
    table = judged_table("Test images", said, test, judge, over=over, extra=extra, note=_NOTE)
    return Findings(
        text=fill(
            _TEXT,
            config,
            names=" and ".join(captioners),
            n_union=len(FusedNextWord(models).vocabulary),
            n_words=" and ".join(f"{len(model.vocabulary):,}" for model in models),
            n_validation=len(validation.references),
        ),
        tables=[table],
        plots=[_plot(tried)],
        claims=claims,
        verdict=conclude(claims, _WHY, whose="our"),
    )


@dataclass(frozen=True)
class _CountingSilence(CarriedRule):
    """The mean over all captioners, whoever knows a word."""

    @property
    def mean_order(self) -> float:
        return 1.0

    def _combine(self, images: Array, weights: Array) -> Array:
        return weighted_sum(np.full((len(images), 1, 1), 1 / len(images)), images)

    def __str__(self) -> str:
        return "arithmetic mean, silence is a no"


def _simple_rules(
    captioners: Mapping[str, NextWordModel], config: Config
) -> dict[str, NextWordModel]:
    """Rules without a knob, on the models' own words."""
    models = list(captioners.values())
    return {
        **captioners,
        "arithmetic mean, silence is a no": FusedNextWord(models, rule=_CountingSilence()),
        "arithmetic mean": FusedNextWord(models, rule=ARITHMETIC),
        "geometric mean": FusedNextWord(models, rule=GEOMETRIC),
        "barycenter, by name alone": config.barycenter(models, None),
    }


def _tuned_rules(
    models: Sequence[NextWordModel], config: Config
) -> dict[str, dict[float, Callable[[], NextWordModel]]]:
    """Rules with a knob, made when they are used: kernels take much room."""
    target = FusedNextWord(models).vocabulary.words
    between_all = glove_kernels(target)
    at = [glove_kernels(model.vocabulary.words, target) for model in models]

    def kernels(distance: float) -> list[LabelledKernel]:
        epsilon = epsilon_at(between_all, distance)
        return [kernel_at(epsilon) for kernel_at in at]

    def through(distance: float) -> NextWordModel:
        return FusedNextWord(models, kernel=kernels(distance), rule=ARITHMETIC)

    def barycenter(distance: float) -> NextWordModel:
        return config.barycenter(models, kernels(distance))

    return {
        _POWER: {
            order: partial(FusedNextWord, models, rule=PowerMean(order)) for order in config.orders
        },
        _THROUGH: {each: partial(through, each) for each in config.distances},
        _BARYCENTER: {each: partial(barycenter, each) for each in config.distances},
    }


def _plot(tried: Mapping[str, Mapping[float, Captioned]]) -> Plot:
    """CIDEr on validation images against the distance of K to the identity."""
    series = {
        name: [(distance, said.mean_cider) for distance, said in tried[name].items()]
        for name in (_THROUGH, _BARYCENTER)
    }
    title = "CIDEr on validation images"
    return Plot("distance", title, "distance to the identity", "CIDEr", series, log_x=True)


def _claims(said: Rules, judge: Judge, singles: Sequence[str], over: str) -> list[Claim]:
    """What different label sets should bring; the paper allows them and has no figures."""
    [best] = [each for name, each in said.items() if name.startswith(_BARYCENTER)]

    def better(than: str, other: str) -> Claim:
        gains = {other: judge.gain(best.cider, said[other].cider)}
        statement = f"the barycenter over all words is better than {than} (CIDEr)"
        return claim_gains(statement, "ours (section 2 allows different label sets)", gains)

    single = max(singles, key=lambda name: said[name].mean_cider)
    return [better("each captioner alone", single), better("the best simple rule", over)]
