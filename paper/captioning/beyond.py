"""Three ideas beyond the paper, on captions with and without shuffles.

Costs measured by each word's neighbours, a barycenter without its blur, and an epsilon that
follows how much captioners disagree: each beside the paper's barycenter, on three draws of images
and shuffles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from paper.captioners import SEEING
from paper.captioning.gallery import Captioned, Gallery, SearchConfig
from paper.captioning.shuffle import ShuffledNextWord, word_stars
from paper.record.findings import Claim, Findings, Progress, Table, fill, ticker
from paper.record.judging import Judge
from paper.record.verdicts import conclude, held, smallest_visible
from paper.words.models import KernelAt, epsilon_at, glove_kernels
from wassemble.kernels import LabelledKernel
from wassemble.metrics import MEAN, entropy
from wassemble.solvers import PowerMean
from wassemble.text import FusedNextWord, NextWordModel
from wassemble.text.fused import FusedState

_TEXT = """\
Five captioners ({names}) are fused as they are, and under stars: at every step the {n_hubs} best
content words of each change places with their {n_near} nearest by GloVe (see "Captions from
shuffled predictions"). All barycenters are Algorithm 1 with GloVe kernels, at most {max_sweeps}
sweeps, between the {n_top} words that some captioner finds likeliest. *Local*: each cost is
measured by those of both words' neighbours of number {local_bandwidth}. *Debiased*: Janati et al.
2020. *Following disagreement*: a step's epsilon goes by the Jensen-Shannon divergence of the
captioners there, as a share of the largest there can be: below a threshold they are fused by the
geometric mean, from it on through the nearest K, from twice the threshold on through the farthest.
Distances of K to the identity ({distances}) and thresholds ({thresholds}) are those of best CIDEr
on {n_validation} validation images, for each draw anew. A draw has images and shuffles of its own:
{n_test} test images each, {n_draws} draws, no image twice. Top-k search, beam {width}, sentences
ranked by their mean log probability per word. Captioners are those of 2,504 words, not of 10,192:
{n_captioned:,} captions of test images are searched for, and each takes a fraction of the time."""

_NOTE = """\
CIDEr on test images, all draws together with 95 % bootstrap intervals, and each draw alone; gains,
paired, are over the barycenter. Chosen is what validation images chose, by draw: the distance of K
or a threshold. Words are those of a caption. Means through K send each captioner through K first
and transport nothing: an idea that gains over the barycenter alone has nothing that a mean has
not."""

_MEANS = {"arithmetic mean": 1.0, "geometric mean": 0.0}
_SIMPLE = (*_MEANS, *(f"{mean} through K" for mean in _MEANS))
_BARYCENTER = "barycenter"
_IDEAS = {
    "barycenter, local": "local bandwidths",
    "barycenter, debiased": "debiasing",
    "barycenter, following disagreement": "an epsilon that follows disagreement",
}
_CONDITIONS = ("without shuffles", "under stars")


@dataclass(frozen=True, kw_only=True)
class Config(SearchConfig):
    """Knobs: draws, stars, and what is tried on validation images."""

    captioners: tuple[str, ...] = SEEING
    n_draws: int = 3
    size: int = 5  # of stars
    n_hubs: int = 10
    n_top: int = 300
    distances: tuple[float, ...] = (15.9, 48.5)
    local_bandwidth: int = 5
    thresholds: tuple[float, ...] = (0.15, 0.3)
    n_validation: int = 30
    n_test: int = 100


Models = Sequence[NextWordModel]
Ways = Mapping[str, Callable[[Models], NextWordModel]]
"""What is tried for a rule, by its setting in words: from captioners to what is searched."""


Side = tuple[Gallery, Models]
"""Images, and the captioners for them."""


@dataclass(frozen=True, eq=False)
class _Draws:
    """What became of one rule, draw by draw."""

    chosen: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)  # CIDEr of validation images
    said: list[Captioned] = field(default_factory=list)  # of test images

    @property
    def cider(self) -> np.ndarray:
        """Of all test images, (n_draws * n_test,)."""
        return np.concatenate([each.cider for each in self.said])


Found = dict[str, _Draws]
"""By rule."""


def run(config: Config, progress: Progress = None) -> Findings:
    """CIDEr of each idea and of what it must beat, with and without shuffles."""
    captioners = config.read_captioners()
    trial = _Trial(config, list(captioners.values()), progress)
    found = {condition: trial.run(condition) for condition in _CONDITIONS}
    judge = Judge(MEAN, np.zeros(config.n_draws * config.n_test), seed=config.seed)
    claims = [_claim(idea, *each, judge) for each in found.items() for idea in _IDEAS]
    lists = {
        name: ", ".join(f"{each:g}" for each in getattr(config, name))
        for name in ("distances", "thresholds")
    }
    return Findings(
        text=fill(
            _TEXT,
            config,
            names=", ".join(captioners),
            n_near=config.size - 1,
            n_captioned=len(trial.rules) * len(_CONDITIONS) * config.n_draws * config.n_test,
            **lists,
        ),
        tables=[_table(*each, judge) for each in found.items()],
        claims=claims,
        verdict=_conclude(claims, config.n_draws * config.n_test),
    )


class _Trial:
    """Every rule on every draw."""

    def __init__(self, config: Config, captioners: Models, progress: Progress) -> None:
        self.config, self.captioners = config, captioners
        self.vocabulary = FusedNextWord(captioners).vocabulary
        self.kernel_at = glove_kernels(self.vocabulary.words)
        self.rules = self._list_rules()
        n_each = sum(len(ways) + 1 for ways in self.rules.values())
        self._tick = ticker(progress, n_each * config.n_draws * len(_CONDITIONS))

    def run(self, condition: str) -> Found:
        """What each rule said of the test images of each draw, chosen on validation images."""
        config = self.config
        found: Found = {rule: _Draws() for rule in self.rules}
        for draw in range(config.n_draws):
            seen = self._side(condition, draw, "val", config.n_validation)
            held_out = self._side(condition, draw, "test", config.n_test)
            for rule, ways in self.rules.items():
                _add_draw(found[rule], ways, seen, held_out)
        return found

    def _side(self, condition: str, draw: int, split: str, n_images: int) -> Side:
        """Images of a draw, and captioners with shuffles for them."""
        gallery = self.config.gallery(split, n_images, self._tick, first=draw * n_images)
        return gallery, self._models(condition, [self.config.seed, draw, int(split == "test")])

    def _models(self, condition: str, seed: Sequence[int]) -> Models:
        """The captioners, each with shuffles of its own if there are any."""
        if condition != _CONDITIONS[1]:
            return self.captioners
        n_hubs = self.config.n_hubs
        return [
            ShuffledNextWord(model, self._stars, [*seed, place], n_hubs=n_hubs)
            for place, model in enumerate(self.captioners)
        ]

    @cached_property
    def _stars(self) -> np.ndarray:
        return word_stars(self.kernel_at(1.0), self.vocabulary, self.config.size)

    def _list_rules(self) -> dict[str, Ways]:
        """What is tried for each rule."""
        config, plain = self.config, self._kernels(self.kernel_at)
        near = config.local_bandwidth
        local = self._kernels(glove_kernels(self.vocabulary.words, local_bandwidth=near))
        ladder = [None, plain[min(plain)], plain[max(plain)]]
        through: dict[str, tuple[Callable[..., NextWordModel], Mapping[float, Any]]] = {
            **{
                f"{mean} through K": (partial(self._mean_through, order=order), plain)
                for mean, order in _MEANS.items()
            },
            _BARYCENTER: (self._barycenter, plain),
            "barycenter, local": (self._barycenter, local),
            "barycenter, debiased": (partial(self._barycenter, debias=True), plain),
        }
        return {
            **{mean: {"": partial(_mean, order=order)} for mean, order in _MEANS.items()},
            **{
                rule: {f"{each:g}": partial(way, kernel=kernel) for each, kernel in kernels.items()}
                for rule, (way, kernels) in through.items()
            },
            "barycenter, following disagreement": {
                f"{each:g}": partial(self._following, ladder=ladder, threshold=each)
                for each in config.thresholds
            },
        }

    def _kernels(self, kernel_at: KernelAt) -> dict[float, LabelledKernel]:
        return {each: kernel_at(epsilon_at(kernel_at, each)) for each in self.config.distances}

    def _mean_through(self, models: Models, order: float, kernel: LabelledKernel) -> NextWordModel:
        rule, n_top = PowerMean(order), self.config.n_top
        return FusedNextWord(models, kernel=kernel, rule=rule, n_top=n_top)

    def _barycenter(
        self, models: Models, kernel: LabelledKernel | None, *, debias: bool = False
    ) -> FusedNextWord:
        config = self.config
        return config.barycenter(models, kernel, n_top=config.n_top, debias=debias)

    def _following(
        self, models: Models, ladder: Sequence[LabelledKernel | None], threshold: float
    ) -> NextWordModel:
        rungs = [self._barycenter(models, kernel) for kernel in ladder]
        return FollowingDisagreement(rungs, (threshold, 2 * threshold))


def _mean(models: Models, order: float) -> NextWordModel:
    return FusedNextWord(models, rule=PowerMean(order))


def _add_draw(draws: _Draws, ways: Ways, seen: Side, held_out: Side) -> None:
    """Choose a way on one side, and judge it on the other."""
    (validation, known), (test, new) = seen, held_out
    tried = {name: validation.caption(way(known)).mean_cider for name, way in ways.items()}
    best = max(tried, key=tried.__getitem__)
    draws.chosen.append(best)
    draws.scores.append(tried[best])
    draws.said.append(test.caption(ways[best](new)))


class FollowingDisagreement:
    """Next-word models fused through the kernel that their disagreement asks for, row by row.

    ``rungs`` are the same models fused through wider and wider kernels; a row goes up one for each
    of ``thresholds`` that its disagreement reaches.
    """

    def __init__(self, rungs: Sequence[FusedNextWord], thresholds: Sequence[float]) -> None:
        self._rungs, self._thresholds = rungs, thresholds
        self.vocabulary = rungs[0].vocabulary
        self.start, self.reorder = rungs[0].start, rungs[0].reorder

    def step(self, state: FusedState, words: np.ndarray) -> tuple[np.ndarray, FusedState]:
        """Fused log probabilities of the next word, and the state after ``words``."""
        logs, states = self._rungs[0].step_models(state.states, words)
        places = np.searchsorted(self._thresholds, disagreement(logs), side="right")
        fused = np.empty_like(logs[0])
        for place in np.unique(places):
            rows = np.flatnonzero(places == place)
            own, fusion = [each[rows] for each in logs], self._rungs[place].fusion
            fused[rows] = fusion.fuse(own, state.items[rows]).log_probabilities
        return fused, replace(state, states=states)


def disagreement(logs: Sequence[np.ndarray]) -> np.ndarray:
    """Jensen-Shannon divergence of models in each row, as a share of the largest there can be.

    ``logs`` has log probabilities of shape (n_rows, n_words) by model.
    """
    histograms = np.exp(logs)
    apart = entropy(histograms.mean(axis=0)) - entropy(histograms).mean(axis=0)
    return np.asarray(apart / np.log(len(histograms)))


def _best_simple(found: Found) -> str:
    """The simple rule of best CIDEr on validation images."""
    return max(_SIMPLE, key=lambda rule: float(np.mean(found[rule].scores)))


def _table(condition: str, found: Found, judge: Judge) -> Table:
    rows = []
    over = found[_BARYCENTER].cider
    for rule, draws in found.items():
        cider = draws.cider
        rows.append(
            {
                "rule": rule,
                "CIDEr": judge.figure(cider),
                **{f"draw {place}": each.mean_cider for place, each in enumerate(draws.said, 1)},
                "gain": None if rule == _BARYCENTER else judge.gain(cider, over),
                "words": float(np.mean([each.n_words for each in draws.said])),
                "chosen": ", ".join(filter(None, draws.chosen)),
            }
        )
    title = f"Test images, {condition}"
    return Table.of(title, rows, {"rule": 0, "words": 1, "chosen": 0}, _NOTE)


def _claim(idea: str, condition: str, found: Found, judge: Judge) -> Claim:
    """That an idea gains over the paper's barycenter, and in no draw loses."""
    own, paper, simple = found[idea], found[_BARYCENTER], _best_simple(found)
    gain, beside = (judge.gain(own.cider, found[over].cider) for over in (_BARYCENTER, simple))
    pairs = zip(own.said, paper.said, strict=True)
    by_draw = [mine.mean_cider - theirs.mean_cider for mine, theirs in pairs]
    return Claim(
        f"{_IDEAS[idea]}, {condition}: a gain over the barycenter (CIDEr)",
        "ours",
        # Draws that contradict each other leave it open.
        held(gain) if min(by_draw) > 0 or max(by_draw) < 0 else None,
        f"{gain.words()}; by draw {', '.join(f'{each:+.3f}' for each in by_draw)};"
        f" {beside.words()} over the {simple}",
        f"{smallest_visible(gain):.3f}",
    )


def _conclude(claims: Sequence[Claim], n_images: int) -> str:
    """What became of the ideas, and what the images could have shown."""
    powers = [float(claim.power) for claim in claims]
    shown = (
        f"{n_images} test images show a gain from {min(powers):.3f} to {max(powers):.3f} CIDEr on"
    )
    return conclude(claims, f"{shown}, and the draws must agree", whose="our")
